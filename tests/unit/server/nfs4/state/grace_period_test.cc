// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/grace_period.h"

#include <gtest/gtest.h>

namespace nfsrdma::nfs4 {
namespace {

using Verdict = GracePeriod::Verdict;
using std::chrono::seconds;

constexpr TimePoint kStart{};
constexpr TimePoint kEarly = kStart + seconds(89);
constexpr TimePoint kLate = kStart + seconds(90);

GracePeriod two() {
  return {{"a", "b"}, kStart, seconds(90)};
}

TEST(GracePeriod, NobodyHadStateSoThereIsNone) {
  const GracePeriod grace({}, kStart, seconds(90));
  EXPECT_TRUE(grace.over(kStart));
  EXPECT_EQ(grace.make_new("a", false, kStart), Verdict::kGo);
  EXPECT_EQ(grace.reclaim("a", kStart), Verdict::kNoGrace);
}

TEST(GracePeriod, OnlyThoseFromBeforeReclaim) {
  const GracePeriod grace = two();
  EXPECT_EQ(grace.reclaim("a", kEarly), Verdict::kGo);
  EXPECT_EQ(grace.reclaim("c", kEarly), Verdict::kReclaimBad);
  EXPECT_EQ(grace.reclaim("a", kLate), Verdict::kNoGrace);
  EXPECT_EQ(grace.reclaim("c", kLate), Verdict::kNoGrace);
}

TEST(GracePeriod, NewStateWaits) {
  GracePeriod grace = two();
  for (const char* owner : {"a", "c"}) {
    EXPECT_EQ(grace.make_new(owner, false, kEarly), Verdict::kGrace);
    EXPECT_EQ(grace.make_new(owner, true, kEarly), Verdict::kGrace);
    EXPECT_EQ(grace.make_new(owner, false, kLate), Verdict::kGo);
    EXPECT_EQ(grace.make_new(owner, true, kLate), Verdict::kGrace) << "RECLAIM_COMPLETE first";
    EXPECT_TRUE(grace.complete(owner));
    EXPECT_EQ(grace.make_new(owner, true, kLate), Verdict::kGo);
  }
}

TEST(GracePeriod, EndsEarlyWhenAllHaveCompleted) {
  GracePeriod grace = two();
  EXPECT_TRUE(grace.complete("c")) << "it had nothing, and may say so";
  EXPECT_TRUE(grace.complete("a"));
  EXPECT_FALSE(grace.over(kEarly));
  EXPECT_EQ(grace.reclaim("a", kEarly), Verdict::kNoGrace) << "it said that it was done";
  EXPECT_EQ(grace.make_new("a", true, kEarly), Verdict::kGrace) << "the other one is not";
  EXPECT_FALSE(grace.complete("a")) << "twice";
  EXPECT_TRUE(grace.complete("b"));
  EXPECT_TRUE(grace.over(kEarly));
  EXPECT_EQ(grace.make_new("a", true, kEarly), Verdict::kGo);
}

TEST(GracePeriod, AClientThatIsGoneIsNotWaitedFor) {
  GracePeriod grace = two();
  grace.complete("a");
  grace.forget("b");
  EXPECT_TRUE(grace.over(kEarly));
  // Its next life completes for itself.
  grace.forget("a");
  EXPECT_EQ(grace.make_new("a", true, kLate), Verdict::kGrace);
  EXPECT_TRUE(grace.complete("a"));
}

}  // namespace
}  // namespace nfsrdma::nfs4
