// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/access_cache.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(1000));
constexpr std::uint32_t kRead = 1, kLookup = 2, kModify = 4;

CallerRef caller(uid_t uid) {
  return std::make_shared<const Caller>(Caller{uid, uid, {}});
}

TEST(AccessCache, KnowsNothingAtFirst) {
  AccessCache cache;
  EXPECT_FALSE(cache.find(caller(1), kRead, kStart));
}

TEST(AccessCache, AnswersForTheCallerThatAsked) {
  AccessCache cache;
  CallerRef one = caller(1);
  cache.store(one, kRead | kModify, kRead, kStart + seconds(3));
  EXPECT_EQ(cache.find(one, kRead | kModify, kStart), kRead);
}

TEST(AccessCache, DoesNotAnswerForAnotherCaller) {
  AccessCache cache;
  cache.store(caller(0), kRead, kRead, kStart + seconds(3));
  EXPECT_FALSE(cache.find(caller(1000), kRead, kStart));
}

TEST(AccessCache, DoesNotAnswerForRightsThatWereNotAsked) {
  AccessCache cache;
  CallerRef one = caller(1);
  cache.store(one, kRead, kRead, kStart + seconds(3));
  EXPECT_FALSE(cache.find(one, kRead | kLookup, kStart));
}

TEST(AccessCache, AnswersEnd) {
  AccessCache cache;
  CallerRef one = caller(1);
  cache.store(one, kRead, kRead, kStart + seconds(3));
  EXPECT_FALSE(cache.find(one, kRead, kStart + seconds(3)));
}

TEST(AccessCache, ANewAnswerTakesRightsAway) {
  AccessCache cache;
  CallerRef one = caller(1);
  cache.store(one, kRead, kRead, kStart + seconds(3));
  cache.store(one, kRead, 0, kStart + seconds(4));
  EXPECT_EQ(cache.find(one, kRead, kStart), 0u);
}

TEST(AccessCache, AnAnswerAboutOtherRightsDoesNotProlongTheOldOnes) {
  AccessCache cache;
  CallerRef one = caller(1);
  cache.store(one, kRead, kRead, kStart + seconds(3));
  cache.store(one, kModify, kModify, kStart + seconds(30));
  EXPECT_FALSE(cache.find(one, kRead, kStart + seconds(4)));
}

TEST(AccessCache, ForgetsTheOldestCallerWhenFull) {
  AccessCache cache;
  CallerRef first = caller(1);
  cache.store(first, kRead, kRead, kStart + seconds(3));
  for (std::size_t i = 0; i < AccessCache::kMostCallers; ++i) {
    cache.store(caller(static_cast<uid_t>(100 + i)), kRead, kRead, kStart + seconds(3));
  }
  EXPECT_FALSE(cache.find(first, kRead, kStart));
}

}  // namespace
}  // namespace nfsrdma
