// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/attribute_timer.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));

TEST(AttributeTimer, KnowsNothingAtFirst) {
  AttributeTimer timer;
  EXPECT_FALSE(timer.fresh(kStart));
}

TEST(AttributeTimer, StartsAtTheMinimumForRegularFiles) {
  AttributeTimer timer;
  timer.changed({}, false, kStart);
  EXPECT_EQ(timer.left(kStart), seconds(3));
  EXPECT_FALSE(timer.fresh(kStart + seconds(3)));
}

TEST(AttributeTimer, StartsAtTheMinimumForDirectories) {
  AttributeTimer timer;
  timer.changed({}, true, kStart);
  EXPECT_EQ(timer.left(kStart), seconds(30));
}

TEST(AttributeTimer, BelievesAgainForTheMinimumWhereTheServerDoesNotSay) {
  AttributeTimer timer;
  timer.changed({}, false, kStart);
  timer.unchanged({}, false, kStart + seconds(3));
  timer.again({}, false, kStart + seconds(20));
  EXPECT_EQ(timer.left(kStart + seconds(20)), seconds(3));
  timer.again({}, true, kStart + seconds(30));
  EXPECT_EQ(timer.left(kStart + seconds(30)), seconds(30));
  AttributePolicy none;
  none.enabled = false;
  AttributeTimer nothing;
  nothing.again(none, false, kStart);
  EXPECT_FALSE(nothing.fresh(kStart));
}

TEST(AttributeTimer, DoublesAfterASpanWithoutChange) {
  AttributeTimer timer;
  timer.changed({}, false, kStart);
  timer.unchanged({}, false, kStart + seconds(3));
  EXPECT_EQ(timer.left(kStart + seconds(3)), seconds(6));
}

TEST(AttributeTimer, DoesNotGrowByBeingAskedOften) {
  AttributeTimer timer;
  timer.changed({}, false, kStart);
  for (int i = 0; i < 10; ++i)
    timer.unchanged({}, false, kStart + seconds(1));
  EXPECT_EQ(timer.left(kStart + seconds(1)), seconds(3));
}

TEST(AttributeTimer, StopsAtTheMaximum) {
  AttributeTimer timer;
  timer.changed({}, false, kStart);
  TimePoint now = kStart;
  for (int i = 0; i < 10; ++i)
    timer.unchanged({}, false, now += seconds(100));
  EXPECT_EQ(timer.left(now), seconds(60));
}

TEST(AttributeTimer, AChangeStartsAgainAtTheMinimum) {
  AttributeTimer timer;
  timer.changed({}, false, kStart);
  timer.unchanged({}, false, kStart + seconds(50));
  timer.changed({}, false, kStart + seconds(60));
  EXPECT_EQ(timer.left(kStart + seconds(60)), seconds(3));
}

TEST(AttributeTimer, NoacIsNeverFresh) {
  AttributeTimer timer;
  AttributePolicy policy;
  policy.enabled = false;
  timer.changed(policy, false, kStart);
  EXPECT_FALSE(timer.fresh(kStart));
}

TEST(AttributeTimer, ZeroActimeoIsNeverFresh) {
  AttributeTimer timer;
  AttributePolicy policy{seconds(0), seconds(0), seconds(0), seconds(0), true};
  timer.changed(policy, false, kStart);
  timer.unchanged(policy, false, kStart + seconds(10));
  EXPECT_FALSE(timer.fresh(kStart + seconds(10)));
}

TEST(AttributeTimer, ExpireEndsBelief) {
  AttributeTimer timer;
  timer.changed({}, true, kStart);
  timer.expire();
  EXPECT_FALSE(timer.fresh(kStart));
}

}  // namespace
}  // namespace nfsrdma
