// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/slot_table.h"

#include <gtest/gtest.h>

namespace nfsrdma::nfs4 {
namespace {

TEST(SlotTable, GivesTheLowestFreeSlot) {
  SlotTable table;
  table.reset(3);
  EXPECT_EQ(table.take(), 0u);
  EXPECT_EQ(table.take(), 1u);
  EXPECT_EQ(table.highest_taken(), 1u);
  table.give_back(0, true);
  EXPECT_EQ(table.take(), 0u);
  EXPECT_EQ(table.take(), 2u);
  EXPECT_FALSE(table.take().has_value());
}

TEST(SlotTable, CountsOnlyRequestsThatTheServerTookUp) {
  SlotTable table;
  table.reset(1);
  EXPECT_EQ(table.sequence(0), 1u);
  table.give_back(*table.take(), false);
  EXPECT_EQ(table.sequence(0), 1u);
  table.give_back(*table.take(), true);
  EXPECT_EQ(table.sequence(0), 2u);
  table.reset(1);
  EXPECT_EQ(table.sequence(0), 1u);
}

TEST(SlotTable, FollowsTheServersTarget) {
  SlotTable table;
  table.reset(4);
  table.set_highest(0);
  EXPECT_EQ(table.take(), 0u);
  EXPECT_FALSE(table.take().has_value());
  table.set_highest(UINT32_MAX);  // no more than the session has
  EXPECT_EQ(table.usable(), 4u);
  EXPECT_EQ(table.take(), 1u);
}

}  // namespace
}  // namespace nfsrdma::nfs4
