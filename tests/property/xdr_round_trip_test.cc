// SPDX-License-Identifier: Apache-2.0
// What must hold for random values of every wire type.
#include <gtest/gtest.h>

#include "tests/support/xdr_bytes.h"
#include "tests/support/xdr_types.h"
#include "xdr/print.h"
#include "xdr/random.h"

namespace nfsrdma::testing {
namespace {

constexpr std::uint64_t kRounds = 200;

template <typename T>
class XdrRoundTrip : public ::testing::Test {};
using Types = AllWireTypes::In<::testing::Types>;
TYPED_TEST_SUITE(XdrRoundTrip, Types);

TYPED_TEST(XdrRoundTrip, DecodingGivesTheValueThatWasEncoded) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    xdr::RandomSource random(seed);
    auto value = random.make<TypeParam>();
    std::vector<std::byte> bytes = encode_flat(value);
    TypeParam back{};
    ASSERT_TRUE(decode_exactly(bytes, back)) << "seed " << seed << " " << xdr::print(value);
    ASSERT_EQ(xdr::print(back), xdr::print(value)) << "seed " << seed;
    ASSERT_EQ(encode_flat(back), bytes) << "seed " << seed << " " << xdr::print(value);
  }
}

TYPED_TEST(XdrRoundTrip, SizeIsKnownBeforehand) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    xdr::RandomSource random(seed);
    auto value = random.make<TypeParam>();
    ASSERT_EQ(xdr::encoded_size(value), encode_flat(value).size()) << "seed " << seed;
  }
}

TYPED_TEST(XdrRoundTrip, EveryTruncationIsAnError) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    xdr::RandomSource random(seed, 64);
    std::vector<std::byte> bytes = encode_flat(random.make<TypeParam>());
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      // A copy of its own, so that AddressSanitizer sees a read behind its end.
      std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      xdr::Decoder decoder(cut);
      TypeParam value{};
      ASSERT_FALSE(xdr::decode(decoder, value)) << "seed " << seed << ", " << n << " bytes";
    }
  }
}

TYPED_TEST(XdrRoundTrip, TooLittleRoomIsAnOverflow) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    xdr::RandomSource random(seed, 64);
    auto value = random.make<TypeParam>();
    std::size_t needed = xdr::encoded_size_without_payload(value);
    for (std::size_t n = 0; n < needed; ++n) {
      std::vector<std::byte> room(n);
      xdr::Encoder encoder(room);
      xdr::encode(encoder, value);
      ASSERT_TRUE(encoder.overflowed()) << "seed " << seed << ", " << n << " bytes";
    }
  }
}

TYPED_TEST(XdrRoundTrip, PayloadMayComeOutsideOfTheMessage) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    xdr::RandomSource random(seed);
    auto value = random.make<TypeParam>();
    std::vector<std::byte> room(xdr::encoded_size_without_payload(value));
    xdr::Encoder encoder(room);
    xdr::encode(encoder, value);
    std::vector<xdr::ReducedItem> reduced;
    std::size_t payload_bytes = 0;
    for (const xdr::PayloadReference& payload : encoder.payloads()) {
      reduced.push_back({payload.head_bytes + payload_bytes, payload.bytes});
      payload_bytes += (payload.bytes.size() + 3) & ~std::size_t{3};
    }
    xdr::Decoder decoder(encoder.bytes(), reduced);
    TypeParam back{};
    ASSERT_TRUE(xdr::decode(decoder, back)) << "seed " << seed;
    ASSERT_TRUE(decoder.at_end()) << "seed " << seed;
    ASSERT_EQ(decoder.reduced_left(), 0u) << "seed " << seed;
    ASSERT_EQ(encode_flat(back), encode_flat(value)) << "seed " << seed;
  }
}

TYPED_TEST(XdrRoundTrip, DamagedBytesThatDecodeAreAValueOfTheirOwn) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    xdr::RandomSource random(seed, 64);
    std::vector<std::byte> bytes = encode_flat(random.make<TypeParam>());
    for (int round = 0; round < 8 && !bytes.empty(); ++round) {
      std::vector<std::byte> damaged = bytes;
      damaged[random.below(bytes.size())] ^= static_cast<std::byte>(1 + random.below(255));
      xdr::Decoder decoder(damaged);
      TypeParam value{};
      if (!xdr::decode(decoder, value)) continue;
      std::vector<std::byte> again = encode_flat(value);
      TypeParam back{};
      ASSERT_TRUE(decode_exactly(again, back)) << "seed " << seed << " " << xdr::print(value);
      ASSERT_EQ(xdr::print(back), xdr::print(value)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace nfsrdma::testing
