// SPDX-License-Identifier: Apache-2.0
// What must hold for random values of every type that a client of NFS version 4 reads.
#include "tests/support/xdr_nfs4_types.h"
#include "tests/support/xdr_rules.h"

namespace nfsrdma::testing {
namespace {

// The types in one test each: a test per type takes minutes to compile.
#define NFS4_RULE(name, rule)                           \
  TEST(Nfs4ClientReads, name) {                         \
    for_each_type(Nfs4ClientReads{}, []<typename T>() { \
      SCOPED_TRACE(__PRETTY_FUNCTION__);                \
      rule<T>();                                        \
    });                                                 \
  }

NFS4_RULE(DecodingGivesTheValueThatWasEncoded, decoding_gives_the_value_that_was_encoded)
NFS4_RULE(SizeIsKnownBeforehand, size_is_known_beforehand)
NFS4_RULE(EveryTruncationIsAnError, every_truncation_is_an_error)
NFS4_RULE(TooLittleRoomIsAnOverflow, too_little_room_is_an_overflow)
NFS4_RULE(PayloadMayComeOutsideOfTheMessage, payload_may_come_outside_of_the_message)
NFS4_RULE(DamagedBytesThatDecodeAreAValueOfTheirOwn,
          damaged_bytes_that_decode_are_a_value_of_their_own)

}  // namespace
}  // namespace nfsrdma::testing
