// SPDX-License-Identifier: Apache-2.0
#include "xdr/encoded_list.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/xdr_bytes.h"
#include "xdr/mount3.h"
#include "xdr/rpcb.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::words;

constexpr mapping kMapping{100003, 3, 6, 2049};

TEST(EncodedList, ElementsComeInOrder) {
  auto bytes = words({1, 1, 2, 3, 4, 1, 5, 6, 7, 8, 0});
  pmaplist list;
  ASSERT_TRUE(decode_exactly(bytes, list));
  std::vector<std::uint32_t> programs;
  for (const mapping& m : list.mappings)
    programs.push_back(m.prog);
  EXPECT_EQ(programs, (std::vector<std::uint32_t>{1, 5}));
  EXPECT_EQ(list.mappings.count, 2u);
}

TEST(EncodedList, AnEmptyListHasNoElements) {
  auto bytes = words({0});
  pmaplist list;
  ASSERT_TRUE(decode_exactly(bytes, list));
  EXPECT_TRUE(list.mappings.empty());
  EXPECT_TRUE(list.mappings.begin() == list.mappings.end());
}

TEST(EncodedList, WithoutItsEndItIsAnError) {
  auto bytes = words({1, 1, 2, 3, 4});
  pmaplist list;
  EXPECT_FALSE(decode_exactly(bytes, list));
  EXPECT_TRUE(list.mappings.empty());
}

TEST(EncodedList, ADamagedElementIsAnErrorOfTheWhole) {
  auto bytes = words({1, 1, 2, 3, 4, 1, 5, 6});
  pmaplist list;
  EXPECT_FALSE(decode_exactly(bytes, list));
}

TEST(EncodedList, MoreElementsThanTheLimitAreRefused) {
  // Groups of one export with empty names: TRUE and a zero length each.
  std::vector<std::byte> bytes((1 + (kMountMaxGroups + 1) * 2 + 1) * 4);
  Encoder encoder(bytes);
  encoder.string("");
  for (std::size_t i = 0; i <= kMountMaxGroups; ++i) {
    encoder.boolean(true);
    encoder.string("");
  }
  encoder.boolean(false);
  exportnode node;
  EXPECT_FALSE(decode_exactly(bytes, node));
}

TEST(EncodedList, AsManyElementsAsTheLimitAreTaken) {
  std::vector<std::byte> bytes((1 + kMountMaxGroups * 2 + 1) * 4);
  Encoder encoder(bytes);
  encoder.string("");
  for (std::size_t i = 0; i < kMountMaxGroups; ++i) {
    encoder.boolean(true);
    encoder.string("");
  }
  encoder.boolean(false);
  exportnode node;
  ASSERT_TRUE(decode_exactly(bytes, node));
  EXPECT_EQ(node.ex_groups.count, kMountMaxGroups);
}

TEST(ListWriter, WritesWhatDecodes) {
  std::array<std::byte, 256> room;
  Encoder encoder(room);
  ListWriter<mapping> writer(encoder);
  EXPECT_TRUE(writer.try_add(kMapping));
  EXPECT_TRUE(writer.try_add(kMapping));
  writer.finish();
  pmaplist list;
  ASSERT_TRUE(decode_exactly(encoder.bytes(), list));
  EXPECT_EQ(list.mappings.count, 2u);
}

TEST(ListWriter, WhatDoesNotFitLeavesNoTrace) {
  std::array<std::byte, 20 + 4 + 19> room;  // one element, the end, not quite another element
  Encoder encoder(room);
  ListWriter<mapping> writer(encoder);
  ASSERT_TRUE(writer.try_add(kMapping));
  std::size_t size = encoder.size();
  EXPECT_FALSE(writer.try_add(kMapping));
  EXPECT_EQ(encoder.size(), size);
  EXPECT_FALSE(encoder.overflowed());
}

TEST(ListWriter, KeepsRoomForItsEnd) {
  std::array<std::byte, 20 + 3> room;
  Encoder encoder(room);
  ListWriter<mapping> writer(encoder);
  EXPECT_FALSE(writer.try_add(kMapping));
}

TEST(ListWriter, KeepsRoomForTheTail) {
  std::array<std::byte, 20 + 4 + 7> room;
  Encoder encoder(room);
  ListWriter<mapping> writer(encoder, ListWriter<mapping>::kUnlimited, 8);
  EXPECT_FALSE(writer.try_add(kMapping));
}

TEST(ListWriter, StopsAtItsLimit) {
  std::array<std::byte, 256> room;
  Encoder encoder(room);
  ListWriter<mapping> writer(encoder, 2 * 20 + 4);
  EXPECT_TRUE(writer.try_add(kMapping));
  EXPECT_TRUE(writer.try_add(kMapping));
  EXPECT_FALSE(writer.try_add(kMapping));
  EXPECT_EQ(writer.count(), 2u);
}

TEST(ListWriter, AfterAnEarlierOverflowItAddsNothing) {
  std::array<std::byte, 4> room;
  Encoder encoder(room);
  encoder.u64(1);
  ListWriter<mapping> writer(encoder);
  EXPECT_FALSE(writer.try_add(kMapping));
  EXPECT_TRUE(writer.list().empty());
}

TEST(ListWriter, ItsListGoesIntoAnOuterList) {
  std::array<std::byte, 64> inner;
  Encoder groups(inner);
  ListWriter<groupnode> group_writer(groups);
  ASSERT_TRUE(group_writer.try_add({"192.0.2.0/24"}));
  ASSERT_TRUE(group_writer.try_add({"*.example"}));
  std::array<std::byte, 256> outer;
  Encoder encoder(outer);
  ListWriter<exportnode> writer(encoder);
  ASSERT_TRUE(writer.try_add({"/srv", group_writer.list()}));
  writer.finish();

  exports back;
  ASSERT_TRUE(decode_exactly(encoder.bytes(), back));
  ASSERT_EQ(back.nodes.count, 1u);
  exportnode node = *back.nodes.begin();
  std::vector<std::string_view> names;
  for (const groupnode& group : node.ex_groups)
    names.push_back(group.gr_name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"192.0.2.0/24", "*.example"}));
}

}  // namespace
}  // namespace nfsrdma::xdr
