// SPDX-License-Identifier: Apache-2.0
// What must hold for random values of every wire type.
#include <gtest/gtest.h>

#include "tests/support/xdr_rules.h"
#include "tests/support/xdr_types.h"

namespace nfsrdma::testing {
namespace {

template <typename T>
class XdrRoundTrip : public ::testing::Test {};
using Types = AllWireTypes::In<::testing::Types>;
TYPED_TEST_SUITE(XdrRoundTrip, Types);

TYPED_TEST(XdrRoundTrip, DecodingGivesTheValueThatWasEncoded) {
  decoding_gives_the_value_that_was_encoded<TypeParam>();
}
TYPED_TEST(XdrRoundTrip, SizeIsKnownBeforehand) {
  size_is_known_beforehand<TypeParam>();
}
TYPED_TEST(XdrRoundTrip, EveryTruncationIsAnError) {
  every_truncation_is_an_error<TypeParam>();
}
TYPED_TEST(XdrRoundTrip, TooLittleRoomIsAnOverflow) {
  too_little_room_is_an_overflow<TypeParam>();
}
TYPED_TEST(XdrRoundTrip, PayloadMayComeOutsideOfTheMessage) {
  payload_may_come_outside_of_the_message<TypeParam>();
}
TYPED_TEST(XdrRoundTrip, DamagedBytesThatDecodeAreAValueOfTheirOwn) {
  damaged_bytes_that_decode_are_a_value_of_their_own<TypeParam>();
}

}  // namespace
}  // namespace nfsrdma::testing
