// SPDX-License-Identifier: Apache-2.0
// What must hold for random values of every type of a list (xdr_nfs4_types.h), as the tests of a
// suite of the list's name. The types are in one test for each rule: a test per type takes minutes
// to compile.
#pragma once

#include "tests/support/xdr_nfs4_types.h"
#include "tests/support/xdr_rules.h"

#define NFSRDMA_NFS4_RULE(Types, name, rule)  \
  TEST(Types, name) {                         \
    for_each_type(Types{}, []<typename T>() { \
      SCOPED_TRACE(__PRETTY_FUNCTION__);      \
      rule<T>();                              \
    });                                       \
  }

#define NFSRDMA_NFS4_RULES(Types)                                                     \
  NFSRDMA_NFS4_RULE(Types, DecodingGivesTheValueThatWasEncoded,                       \
                    decoding_gives_the_value_that_was_encoded)                        \
  NFSRDMA_NFS4_RULE(Types, SizeIsKnownBeforehand, size_is_known_beforehand)           \
  NFSRDMA_NFS4_RULE(Types, EveryTruncationIsAnError, every_truncation_is_an_error)    \
  NFSRDMA_NFS4_RULE(Types, TooLittleRoomIsAnOverflow, too_little_room_is_an_overflow) \
  NFSRDMA_NFS4_RULE(Types, PayloadMayComeOutsideOfTheMessage,                         \
                    payload_may_come_outside_of_the_message)                          \
  NFSRDMA_NFS4_RULE(Types, DamagedBytesThatDecodeAreAValueOfTheirOwn,                 \
                    damaged_bytes_that_decode_are_a_value_of_their_own)
