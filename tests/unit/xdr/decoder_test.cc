// SPDX-License-Identifier: Apache-2.0
#include "xdr/decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::words;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Decoder, NumbersAreBigEndian) {
  auto bytes = words({0x01020304, 0x05060708, 0x090a0b0c});
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.u32(), 0x01020304u);
  EXPECT_EQ(decoder.u64(), 0x05060708090a0b0cu);
  EXPECT_TRUE(decoder.at_end());
}

TEST(Decoder, AnEmptyMessageIsAtItsEnd) {
  Decoder decoder({});
  EXPECT_TRUE(decoder.at_end());
}

TEST(Decoder, ReadingBehindTheEndGivesZeroAndFails) {
  auto bytes = words({7});
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.u64(), 0u);
  EXPECT_FALSE(decoder.ok());
}

TEST(Decoder, NumbersNeedAllOfTheirBytes) {
  const auto bytes = words({0x01020304, 0x05060708});
  for (std::size_t n = 0; n < 8; ++n) {
    Decoder decoder{std::span(bytes).first(n)};
    EXPECT_EQ(decoder.u64(), 0u);
    EXPECT_FALSE(decoder.ok()) << n;
    if (n >= 4) continue;
    Decoder shorter{std::span(bytes).first(n)};
    EXPECT_EQ(shorter.u32(), 0u);
    EXPECT_FALSE(shorter.ok()) << n;
  }
}

TEST(Decoder, TheFirstErrorSticks) {
  auto bytes = words({2, 5});
  Decoder decoder(bytes);
  EXPECT_FALSE(decoder.boolean());
  EXPECT_EQ(decoder.u32(), 0u);
  EXPECT_FALSE(decoder.ok());
  EXPECT_FALSE(decoder.at_end());
}

TEST(Decoder, BooleansAreZeroOrOne) {
  auto bytes = words({0, 1, 2});
  Decoder decoder(bytes);
  EXPECT_FALSE(decoder.boolean());
  EXPECT_TRUE(decoder.boolean());
  EXPECT_TRUE(decoder.ok());
  decoder.boolean();
  EXPECT_FALSE(decoder.ok());
}

TEST(Decoder, AnOpaqueIsAViewWithoutItsPad) {
  auto bytes = words({5, 0x68656c6c, 0x6fffffff, 9});
  Decoder decoder(bytes);
  auto opaque = decoder.opaque(5);
  EXPECT_EQ(text(opaque), "hello");
  EXPECT_EQ(opaque.data(), bytes.data() + 4);
  EXPECT_EQ(decoder.u32(), 9u);
}

TEST(Decoder, AnOpaqueOfItsLimitIsTaken) {
  auto bytes = words({4, 0});
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.opaque(4).size(), 4u);
  EXPECT_TRUE(decoder.at_end());
}

TEST(Decoder, AnOpaqueOneLongerThanItsLimitIsRefused) {
  auto bytes = words({5, 0, 0});
  Decoder decoder(bytes);
  EXPECT_TRUE(decoder.opaque(4).empty());
  EXPECT_FALSE(decoder.ok());
}

TEST(Decoder, AMissingPadIsAnError) {
  auto bytes = words({5, 0x68656c6c, 0x6f000000});
  for (std::size_t cut = 1; cut <= 3; ++cut) {
    Decoder decoder{std::span(bytes).first(bytes.size() - cut)};
    EXPECT_TRUE(decoder.opaque(5).empty());
    EXPECT_FALSE(decoder.ok()) << cut;
  }
}

TEST(Decoder, TheLargestLengthDoesNotWrap) {
  auto bytes = words({0xffffffff, 0});
  Decoder decoder(bytes);
  EXPECT_TRUE(decoder.opaque(std::numeric_limits<std::size_t>::max()).empty());
  EXPECT_FALSE(decoder.ok());
}

TEST(Decoder, AFixedOpaqueOfImpossibleSizeIsRefused) {
  auto bytes = words({0});
  Decoder decoder(bytes);
  EXPECT_TRUE(decoder.fixed_opaque(std::numeric_limits<std::size_t>::max()).empty());
  EXPECT_FALSE(decoder.ok());
}

TEST(Decoder, AnEmptyStringTakesItsLengthWordOnly) {
  auto bytes = words({0, 3});
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.string(10), "");
  EXPECT_EQ(decoder.u32(), 3u);
}

TEST(DecoderPayload, InLineItIsAnOpaque) {
  auto bytes = words({5, 0x68656c6c, 0x6f000000, 9});
  Decoder decoder(bytes);
  EXPECT_EQ(text(decoder.payload(5)), "hello");
  EXPECT_EQ(decoder.u32(), 9u);
}

/// A message with a word, a payload of 5 bytes and another word, where the payload was moved out.
class ReducedPayload : public ::testing::Test {
 protected:
  std::vector<std::byte> message_ = words({1, 5, 9});
  std::vector<std::byte> chunk_ = words({0x68656c6c, 0x6f000000});
  std::array<ReducedItem, 1> items_{{{8, std::span<const std::byte>(chunk_).first(5)}}};
};

TEST_F(ReducedPayload, ComesFromTheItemAtItsPosition) {
  Decoder decoder(message_, items_);
  EXPECT_EQ(decoder.u32(), 1u);
  auto payload = decoder.payload(100);
  EXPECT_EQ(text(payload), "hello");
  EXPECT_EQ(payload.data(), chunk_.data());
  EXPECT_EQ(decoder.u32(), 9u);
  EXPECT_TRUE(decoder.at_end());
}

TEST_F(ReducedPayload, CountsInThePositionWithItsPad) {
  Decoder decoder(message_, items_);
  decoder.u32();
  (void)decoder.payload(100);
  EXPECT_EQ(decoder.xdr_position(), 16u);
}

TEST_F(ReducedPayload, MayHaveThePadInTheChunk) {
  items_[0].bytes = chunk_;
  Decoder decoder(message_, items_);
  decoder.u32();
  EXPECT_EQ(text(decoder.payload(100)), "hello");
}

TEST_F(ReducedPayload, ShorterThanItsLengthWordIsAnError) {
  items_[0].bytes = std::span<const std::byte>(chunk_).first(4);
  Decoder decoder(message_, items_);
  decoder.u32();
  EXPECT_TRUE(decoder.payload(100).empty());
  EXPECT_FALSE(decoder.ok());
}

TEST_F(ReducedPayload, LongerThanTheLimitIsAnError) {
  Decoder decoder(message_, items_);
  decoder.u32();
  EXPECT_TRUE(decoder.payload(4).empty());
  EXPECT_FALSE(decoder.ok());
}

TEST_F(ReducedPayload, AtAnotherPositionIsNotTaken) {
  items_[0].xdr_position = 12;
  Decoder decoder(message_, items_);
  decoder.u32();
  EXPECT_TRUE(decoder.payload(100).empty());
  EXPECT_FALSE(decoder.ok());
}

TEST_F(ReducedPayload, UnclaimedItIsStillThereAtTheEnd) {
  Decoder decoder(message_, items_);
  decoder.u32();
  decoder.u32();
  decoder.u32();
  EXPECT_TRUE(decoder.at_end());
  EXPECT_EQ(decoder.reduced_left(), 1u);
}

TEST_F(ReducedPayload, ASecondOneIsPlacedInTheUnreducedStream) {
  message_ = words({5, 4, 9});
  std::array<ReducedItem, 2> two{{{4, std::span<const std::byte>(chunk_).first(5)},
                                  {4 + 8 + 4, std::span<const std::byte>(chunk_).first(4)}}};
  Decoder decoder(message_, two);
  EXPECT_EQ(text(decoder.payload(100)), "hello");
  EXPECT_EQ(text(decoder.payload(100)), "hell");
  EXPECT_EQ(decoder.u32(), 9u);
  EXPECT_TRUE(decoder.at_end());
}

}  // namespace
}  // namespace nfsrdma::xdr
