// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/lock_waits.h"

#include <gmock/gmock.h>

namespace nfsrdma::nfs4 {
namespace {

using ::testing::ElementsAre;

class LockWaitsTest : public ::testing::Test {
 protected:
  void add(ClientId client, const std::string& owner, const FileKey& file = "f") {
    waits_.add(file, {client, owner, LockKind::kWrite, {0, 9}, {}});
  }
  std::vector<std::string> take(const FileKey& file = "f") {
    std::vector<std::string> out;
    for (const LockWait& wait : waits_.take(file, [](const LockWait&) { return true; }))
      out.push_back(std::to_string(wait.client) + wait.owner);
    return out;
  }
  LockWaits waits_{{3, 5, 4}};
};

TEST_F(LockWaitsTest, TakenInTheOrderInWhichTheyCame) {
  add(1, "a");
  add(2, "a");
  add(1, "b");
  add(1, "other", "g");
  EXPECT_EQ(waits_.size(), 4u);
  const auto of_two = waits_.take("f", [](const LockWait& wait) { return wait.client == 2; });
  ASSERT_EQ(of_two.size(), 1u);
  EXPECT_THAT(take(), ElementsAre("1a", "1b"));
  EXPECT_THAT(take(), ElementsAre());
  EXPECT_THAT(take("g"), ElementsAre("1other"));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(LockWaitsTest, AnOwnerWaitsForOneThingInAFile) {
  add(1, "a");
  add(2, "a");
  add(1, "a");
  EXPECT_THAT(take(), ElementsAre("2a", "1a"));
  add(1, "a");
  waits_.remove("f", 1, "b");
  waits_.remove("g", 1, "a");
  EXPECT_EQ(waits_.size(), 1u);
  waits_.remove("f", 1, "a");
  EXPECT_TRUE(waits_.empty());
}

TEST_F(LockWaitsTest, AreBoundedAndEndWithTheirClient) {
  for (const char* owner : {"a", "b", "c", "d"})
    add(1, owner);
  EXPECT_EQ(waits_.size(), 3u) << "of one client";
  add(3, "a");
  add(4, "a");
  EXPECT_EQ(waits_.size(), 4u) << "of one file";
  waits_.end_client(3);
  for (const char* owner : {"a", "b", "c"})
    add(2, owner, "g");
  EXPECT_EQ(waits_.size(), 5u) << "in all";
  waits_.end_client(1);
  EXPECT_EQ(waits_.size(), 2u);
  add(1, "d");
  EXPECT_THAT(take(), ElementsAre("1d"));
  waits_.end_client(2);
  EXPECT_TRUE(waits_.empty());
}

}  // namespace
}  // namespace nfsrdma::nfs4
