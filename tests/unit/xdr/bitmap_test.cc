// SPDX-License-Identifier: Apache-2.0
#include "xdr/bitmap.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;
using Map = Bitmap<3>;

TEST(Bitmap, EndsAtItsLastWordWithABit) {
  EXPECT_EQ(encode_flat(Map{}), words({0}));
  EXPECT_EQ(encode_flat(Map::of({1})), words({1, 2}));
  EXPECT_EQ(encode_flat(Map::of({1, 64})), words({3, 2, 0, 1}));
}

TEST(Bitmap, EmptyWordsAtTheEndChangeNothing) {
  Map map;
  ASSERT_TRUE(decode_exactly(words({3, 2, 0, 0}), map));
  EXPECT_EQ(map, Map::of({1}));
}

TEST(Bitmap, BitsWithoutAPlaceAreRememberedByTheLowest) {
  Map map;
  ASSERT_TRUE(decode_exactly(words({5, 0, 0, 0, 0xc0, 1}), map));
  EXPECT_EQ(map.beyond, 102u);
  EXPECT_FALSE(map.empty());
  EXPECT_EQ(map.lowest(), 102u);
  EXPECT_EQ(encode_flat(map), words({0}));
}

TEST(Bitmap, SixtyFourWordsAreTakenAndNotOneMore) {
  std::vector<std::byte> bytes(4 + 65 * 4);
  Encoder(bytes).u32(65);
  Map map;
  EXPECT_FALSE(decode_exactly(bytes, map));
  bytes.resize(4 + 64 * 4);
  Encoder(bytes).u32(64);
  EXPECT_TRUE(decode_exactly(bytes, map));
  EXPECT_TRUE(map.empty());
}

TEST(Bitmap, GoesThroughItsBitsInOrder) {
  std::vector<std::uint32_t> bits;
  Map::of({95, 0, 32, 31}).for_each([&](std::uint32_t bit) { bits.push_back(bit); });
  EXPECT_EQ(bits, (std::vector<std::uint32_t>{0, 31, 32, 95}));
}

TEST(Bitmap, HasNoBitOutsideOfItsWords) {
  Map map = Map::of({95});
  EXPECT_TRUE(map.has(95));
  EXPECT_FALSE(map.has(96));
  EXPECT_FALSE(map.has(0xffffffffu));
}

TEST(Bitmap, WithoutKeepsWhatHasNoPlaceAndAndDropsIt) {
  Map map = Map::of({1, 2});
  map.beyond = 100;
  EXPECT_EQ(map.without(Map::of({1, 2})).lowest(), 100u);
  EXPECT_EQ(map & Map::of({2, 3}), Map::of({2}));
  EXPECT_EQ(Map::of({1}) | Map::of({70}), Map::of({1, 70}));
}

TEST(Bitmap, ABitCanBeTakenAway) {
  Map map = Map::of({40, 41});
  map.clear(40);
  EXPECT_EQ(map, Map::of({41}));
  EXPECT_EQ(map.lowest(), 41u);
}

}  // namespace
}  // namespace nfsrdma::xdr
