// SPDX-License-Identifier: Apache-2.0
#include "client/mount/end_patience.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr TimePoint kStart{hours(1)};

TEST(EndPatience, NeverOverByItself) {
  EndPatience patience;
  EXPECT_FALSE(patience.over(kStart + hours(100), 0, 0));
}

TEST(EndPatience, WithoutDataOnlyGoodbyesAreWaitedFor) {
  EndPatience patience;
  EXPECT_FALSE(patience.over(kStart, 0, 0));
  patience.ending(kStart + hours(1));
  EXPECT_FALSE(patience.over(kStart + hours(1), 0, 0));
  EXPECT_TRUE(patience.over(kStart + hours(1) + EndPatience::kClean, 0, 0));
}

TEST(EndPatience, UnwrittenDataIsWaitedForWithoutLimit) {
  EndPatience patience;
  patience.ending(kStart);
  EXPECT_FALSE(patience.over(kStart + hours(1000), 1, 0));
  EXPECT_FALSE(patience.over(kStart + hours(1001), 0, 1)) << "written now: goodbyes";
  EXPECT_TRUE(patience.over(kStart + hours(1001) + EndPatience::kClean, 0, 1));
}

TEST(EndPatience, ToldToStopASilentServerIsGivenUpOn) {
  EndPatience patience;
  EXPECT_FALSE(patience.over(kStart, 1, 5));
  patience.told(kStart + seconds(100));
  EXPECT_FALSE(patience.over(kStart + seconds(100) + EndPatience::kSilent - seconds(1), 1, 5));
  EXPECT_TRUE(patience.over(kStart + seconds(100) + EndPatience::kSilent, 1, 5));
}

TEST(EndPatience, ToldToStopAnswersProlongItButNotForEver) {
  EndPatience patience;
  patience.told(kStart);
  std::uint64_t answers = 0;
  for (seconds at{1}; at < EndPatience::kAtMost; at += seconds(5)) {
    EXPECT_FALSE(patience.over(kStart + at, 1, ++answers)) << at.count();
  }
  EXPECT_TRUE(patience.over(kStart + EndPatience::kAtMost, 1, ++answers));
}

TEST(EndPatience, BeingToldAgainProlongsNothing) {
  EndPatience patience;
  patience.told(kStart);
  patience.told(kStart + seconds(9));
  EXPECT_TRUE(patience.over(kStart + EndPatience::kSilent, 1, 0));
}

}  // namespace
}  // namespace nfsrdma
