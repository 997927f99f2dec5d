// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/caller.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace nfsrdma {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));

TEST(CallerCache, ReadsTheGroupsOfAProcessOncePerSecond) {
  int reads = 0;
  CallerCache cache([&reads](pid_t) {
    ++reads;
    return std::vector<gid_t>{7};
  });
  cache.find(1000, 1000, 42, kStart);
  cache.find(1000, 1000, 42, kStart + std::chrono::milliseconds(999));
  EXPECT_EQ(reads, 1);
  cache.find(1000, 1000, 42, kStart + seconds(1));
  EXPECT_EQ(reads, 2);
}

TEST(CallerCache, AChangedUidIsSeenAtOnce) {
  CallerCache cache([](pid_t) { return std::vector<gid_t>{}; });
  EXPECT_EQ(cache.find(0, 0, 42, kStart)->uid, 0u);
  EXPECT_EQ(cache.find(1000, 1000, 42, kStart)->uid, 1000u);
}

TEST(CallerCache, EqualIdentitiesAreOneObject) {
  CallerCache cache([](pid_t pid) {
    return pid == 1 ? std::vector<gid_t>{9, 7} : std::vector<gid_t>{7, 9};
  });
  EXPECT_EQ(cache.find(1, 1, 1, kStart), cache.find(1, 1, 2, kStart));
}

TEST(CallerCache, DifferentGroupsAreDifferentCallers) {
  CallerCache cache([](pid_t pid) { return std::vector<gid_t>{static_cast<gid_t>(pid)}; });
  EXPECT_NE(cache.find(1, 1, 2, kStart), cache.find(1, 1, 3, kStart));
}

TEST(CallerCache, ThePrimaryGroupIsNotRepeated) {
  CallerCache cache([](pid_t) { return std::vector<gid_t>{5, 1}; });
  EXPECT_EQ(cache.find(1, 1, 2, kStart)->groups, std::vector<gid_t>{5});
}

TEST(CallerCache, AskingForNoProcessReadsNothing) {
  CallerCache cache([](pid_t) -> std::vector<gid_t> {
    ADD_FAILURE() << "read";
    return {};
  });
  EXPECT_TRUE(cache.find(1, 1, 0, kStart)->groups.empty());
}

TEST(CallerCache, ReadsTheRealGroupsOfThisProcess) {
  std::vector<gid_t> expected(65'536);
  expected.resize(static_cast<std::size_t>(
      std::max(0, ::getgroups(static_cast<int>(expected.size()), expected.data()))));
  std::vector<gid_t> found = CallerCache::read_groups(::getpid());
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

TEST(CallerCache, AGoneProcessHasNoGroups) {
  EXPECT_TRUE(CallerCache::read_groups(0x7fffffff).empty());
}

}  // namespace
}  // namespace nfsrdma
