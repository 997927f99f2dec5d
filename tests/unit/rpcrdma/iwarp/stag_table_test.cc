// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/stag_table.h"

#include <gtest/gtest.h>

#include <set>

namespace nfsrdma::iwarp {
namespace {

class StagTableTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kScope = 7;
  StagTable::Added add(Access access = Access::kRemoteWrite) {
    StagTable::Added added;
    EXPECT_TRUE(table_.add(bytes_, access, kScope, &added));
    return added;
  }
  StagFault check(const StagTable::Added& added, std::uint64_t at, std::uint64_t size,
                  std::uint64_t scope = kScope, Access access = Access::kRemoteWrite) {
    return table_.check(added.stag, added.offset + at, size, scope, access).fault;
  }
  StagTable table_{42};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1000);
};

TEST_F(StagTableTest, WholeRegionIsAllowed) {
  auto added = add();
  EXPECT_EQ(check(added, 0, 1000), StagFault::kNone);
}
TEST_F(StagTableTest, LastByteIsAllowedTheNextIsNot) {
  auto added = add();
  EXPECT_EQ(check(added, 999, 1), StagFault::kNone);
  EXPECT_EQ(check(added, 1000, 1), StagFault::kBounds);
  EXPECT_EQ(check(added, 0, 1001), StagFault::kBounds);
}
TEST_F(StagTableTest, ByteInFrontIsRefused) {
  auto added = add();
  EXPECT_EQ(check(added, std::uint64_t{0} - 1, 1), StagFault::kBounds);
}
TEST_F(StagTableTest, WrappingOffsetIsRefused) {
  auto added = add();
  EXPECT_EQ(table_.check(added.stag, 0xfffffffffffffff8u, 16, kScope, Access::kRemoteWrite).fault,
            StagFault::kWrap);
}
TEST_F(StagTableTest, OtherKeyIsRefused) {
  auto added = add();
  added.stag ^= 1;
  EXPECT_EQ(check(added, 0, 1), StagFault::kInvalid);
}
TEST_F(StagTableTest, EveryOtherIndexIsRefused) {
  auto added = add();
  for (std::uint32_t bit = 8; bit < 32; ++bit) {
    StagTable::Added other = added;
    other.stag ^= 1u << bit;
    EXPECT_EQ(check(other, 0, 1), StagFault::kInvalid) << bit;
  }
}
TEST_F(StagTableTest, OtherConnectionIsRefused) {
  EXPECT_EQ(check(add(), 0, 1, kScope + 1), StagFault::kStream);
}
TEST_F(StagTableTest, OtherAccessIsRefused) {
  EXPECT_EQ(check(add(Access::kRemoteRead), 0, 1), StagFault::kAccess);
  EXPECT_EQ(check(add(Access::kReadSink), 0, 1), StagFault::kAccess);
  EXPECT_EQ(check(add(Access::kRemoteWrite), 0, 1, kScope, Access::kRemoteRead),
            StagFault::kAccess);
  EXPECT_EQ(check(add(Access::kRemoteWrite), 0, 1, kScope, Access::kReadSink), StagFault::kAccess);
}
TEST_F(StagTableTest, RemovedIsRefused) {
  auto added = add();
  EXPECT_EQ(table_.remove(added.stag), kScope);
  EXPECT_EQ(check(added, 0, 1), StagFault::kInvalid);
}
TEST_F(StagTableTest, InvalidatedIsRefusedAndStaysTaken) {
  auto added = add();
  EXPECT_TRUE(table_.invalidate(added.stag, kScope));
  EXPECT_EQ(check(added, 0, 1), StagFault::kInvalid);
  EXPECT_EQ(table_.in_use(), 1u);
  table_.remove(added.stag);
  EXPECT_EQ(table_.in_use(), 0u);
}
TEST_F(StagTableTest, InvalidateOfAnothersRegionIsAViolation) {
  auto added = add();
  EXPECT_FALSE(table_.invalidate(added.stag, kScope + 1));
  EXPECT_EQ(check(added, 0, 1), StagFault::kNone);
}
TEST_F(StagTableTest, InvalidateOfAReadSinkIsAViolation) {
  EXPECT_FALSE(table_.invalidate(add(Access::kReadSink).stag, kScope));
}
TEST_F(StagTableTest, InvalidateOfWhatNeverWasIsAViolation) {
  auto added = add();
  EXPECT_FALSE(table_.invalidate(added.stag ^ 0x00100000, kScope));
}
TEST_F(StagTableTest, InvalidateAfterRemovalCountsAsDone) {
  auto added = add();
  table_.remove(added.stag);
  EXPECT_TRUE(table_.invalidate(added.stag, kScope));
}
TEST_F(StagTableTest, StagsDifferOverManyUses) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 10'000; ++i) {
    auto added = add();
    EXPECT_NE(added.stag, 0u);
    EXPECT_TRUE(seen.insert(added.stag).second) << i;
    table_.remove(added.stag);
  }
}
TEST_F(StagTableTest, FullTableSaysSo) {
  StagTable small(1, 64);
  StagTable::Added added;
  for (int i = 0; i < 64; ++i)
    ASSERT_TRUE(small.add(bytes_, Access::kRemoteRead, 1, &added));
  EXPECT_FALSE(small.add(bytes_, Access::kRemoteRead, 1, &added));
}
TEST_F(StagTableTest, SeedsGiveDifferentStags) {
  StagTable one(1);
  StagTable two(2);
  StagTable::Added a;
  StagTable::Added b;
  ASSERT_TRUE(one.add(bytes_, Access::kRemoteRead, 1, &a));
  ASSERT_TRUE(two.add(bytes_, Access::kRemoteRead, 1, &b));
  EXPECT_NE(a.stag, b.stag);
}

}  // namespace
}  // namespace nfsrdma::iwarp
