// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/spare_memory.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class SpareMemoryTest : public testing::Test {
 protected:
  /// How often memory was given back, being told of these one after the other, in MiB.
  int given(std::initializer_list<std::uint64_t> in_use) {
    times_ = 0;
    for (const std::uint64_t some : in_use)
      memory_.observe(some * kMiB);
    return times_;
  }

 private:
  int times_ = 0;
  SpareMemory memory_{[this] { ++times_; }};
};

TEST_F(SpareMemoryTest, GoesBackWhenABurstIsOver) {
  EXPECT_EQ(given({0, 700, 10}), 0);
  EXPECT_EQ(given({10}), 1);
  EXPECT_EQ(given({0, 10, 0, 0}), 0);  // there is no more
  EXPECT_EQ(given({700, 0, 0, 700, 0, 0}), 2);
}

TEST_F(SpareMemoryTest, StaysWhileTheWorkGoesOn) {
  EXPECT_EQ(given({700, 0, 700, 0, 700, 0, 700}), 0);
  EXPECT_EQ(given({400, 400, 400, 400}), 0);
}

TEST_F(SpareMemoryTest, OfLittleNothingGoesBack) {
  EXPECT_EQ(given({63, 0, 0, 0}), 0);
  EXPECT_EQ(given({64, 0, 0}), 1);
}

TEST_F(SpareMemoryTest, WhatShrinksGoesBackInSteps) {
  EXPECT_EQ(given({1000, 600, 600}), 0);
  EXPECT_EQ(given({500, 500}), 1);
  EXPECT_EQ(given({300, 300}), 0);
  EXPECT_EQ(given({250, 250}), 1);
}

}  // namespace
}  // namespace nfsrdma
