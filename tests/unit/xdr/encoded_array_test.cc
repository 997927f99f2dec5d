// SPDX-License-Identifier: Apache-2.0
#include "xdr/encoded_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/xdr_bytes.h"
#include "xdr/archive.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::words;

struct Pair {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};
template <typename A, Is<Pair> V>
void visit(A& ar, V& v) {
  ar("a", v.a);
  ar("b", v.b);
}

struct Pairs {
  EncodedArray<Pair> items{};
};
template <typename A, Is<Pairs> V>
void visit(A& ar, V& v) {
  ar.counted("items", v.items, 3);
}

TEST(EncodedArray, IsAViewOfItsElements) {
  auto bytes = words({2, 1, 2, 3, 4, 99});
  Decoder decoder(bytes);
  Pairs pairs;
  ASSERT_TRUE(decode(decoder, pairs));
  EXPECT_EQ(decoder.remaining(), 4u);
  EXPECT_EQ(pairs.items.count, 2u);
  EXPECT_EQ(pairs.items.encoded.data(), bytes.data() + 4);
  std::uint32_t sum = 0;
  for (const Pair& pair : pairs.items)
    sum = sum * 100 + pair.a * 10 + pair.b;
  EXPECT_EQ(sum, 1234u);
}

TEST(EncodedArray, MoreElementsThanTheLimitAreRefused) {
  Pairs pairs;
  auto three_bytes = words({3, 1, 1, 1, 1, 1, 1});
  Decoder three(three_bytes);
  EXPECT_TRUE(decode(three, pairs));
  auto four_bytes = words({4, 1, 1, 1, 1, 1, 1, 1, 1});
  Decoder four(four_bytes);
  EXPECT_FALSE(decode(four, pairs));
  EXPECT_TRUE(pairs.items.empty());
}

TEST(EncodedArray, EncodesWhatEncodeArrayMade) {
  std::array<Pair, 2> items{{{1, 2}, {3, 4}}};
  std::array<std::byte, 16> room;
  Encoder scratch(room);
  Pairs pairs{encode_array<Pair>(scratch, items)};
  EXPECT_EQ(testing::encode_flat(pairs), words({2, 1, 2, 3, 4}));
}

TEST(EncodedArray, ScratchTooSmallGivesAnEmptyOne) {
  std::array<Pair, 2> items{};
  std::array<std::byte, 12> room;
  Encoder scratch(room);
  EXPECT_TRUE(encode_array<Pair>(scratch, items).empty());
  EXPECT_TRUE(scratch.overflowed());
}

TEST(ArrayWriter, SetsTheCountAtTheEnd) {
  std::array<std::byte, 64> room;
  Encoder encoder(room);
  encoder.u32(7);
  ArrayWriter<Pair> writer(encoder);
  EXPECT_TRUE(writer.try_add({1, 2}));
  EXPECT_TRUE(writer.try_add({3, 4}));
  writer.finish();
  auto expected = words({7, 2, 1, 2, 3, 4});
  EXPECT_TRUE(std::ranges::equal(encoder.bytes(), expected));
}

TEST(ArrayWriter, AnElementOverTheLimitLeavesNoTrace) {
  std::array<std::byte, 64> room;
  Encoder encoder(room);
  ArrayWriter<Pair> writer(encoder, 4 + 8 + 4, 4);
  EXPECT_TRUE(writer.try_add({1, 2}));
  EXPECT_FALSE(writer.try_add({3, 4}));
  writer.finish();
  EXPECT_EQ(writer.count(), 1u);
  EXPECT_EQ(encoder.size(), 12u);
}

TEST(ArrayWriter, AnElementWithoutRoomLeavesNoTrace) {
  std::array<std::byte, 16> room;
  Encoder encoder(room);
  ArrayWriter<Pair> writer(encoder);
  EXPECT_TRUE(writer.try_add({1, 2}));
  EXPECT_FALSE(writer.try_add({3, 4}));
  EXPECT_FALSE(encoder.overflowed());
  EXPECT_EQ(encoder.size(), 12u);
}

TEST(ArrayWriter, WithoutRoomForTheCountNothingIsAdded) {
  std::array<std::byte, 2> room;
  Encoder encoder(room);
  ArrayWriter<Pair> writer(encoder);
  EXPECT_FALSE(writer.try_add({1, 2}));
  writer.finish();
  EXPECT_TRUE(encoder.overflowed());
}

}  // namespace
}  // namespace nfsrdma::xdr
