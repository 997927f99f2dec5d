// SPDX-License-Identifier: Apache-2.0
#include "server/files/read_costs.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

constexpr std::size_t kMiB = 1u << 20;

class ReadCostsTest : public ::testing::Test {
 protected:
  /// How many of the next `reads` show pages, when either way takes so many nanoseconds a MiB.
  int shown(int reads, std::uint64_t show_ns, std::uint64_t copy_ns) {
    int shown = 0;
    for (int i = 0; i < reads; ++i) {
      if (costs_.pages_next()) {
        ++shown;
        costs_.shown(kMiB, show_ns);
      } else {
        costs_.copied(kMiB, copy_ns);
      }
    }
    return shown;
  }
  ReadCosts costs_;
};

TEST_F(ReadCostsTest, TheFirstGoBothWays) {
  EXPECT_EQ(shown(32, 20'000, 120'000), 16);
}

TEST_F(ReadCostsTest, ThenTheCheaperOne) {
  shown(32, 20'000, 120'000);
  EXPECT_EQ(shown(1024, 20'000, 120'000), 1020);  // four looks at the other
}

/// Pages have to be given back as well.
TEST_F(ReadCostsTest, ShowingHasToCostLessThanHalf) {
  shown(32, 70'000, 120'000);
  EXPECT_EQ(shown(1024, 70'000, 120'000), 4);
}

TEST_F(ReadCostsTest, AnInterruptionChangesNothing) {
  shown(32, 20'000, 120'000);
  costs_.shown(kMiB, 50'000'000);
  costs_.shown(kMiB, 50'000'000);
  EXPECT_TRUE(costs_.pages_next());
}

TEST_F(ReadCostsTest, WhatChangesForGoodIsNoticed) {
  shown(32, 20'000, 120'000);
  shown(2000, 200'000, 120'000);
  EXPECT_LT(shown(1024, 200'000, 120'000), 10);
  shown(8000, 20'000, 120'000);
  EXPECT_GT(shown(1024, 20'000, 120'000), 1010);
}

TEST_F(ReadCostsTest, FilesThatCannotBeMappedAreTriedNowAndThen) {
  shown(32, 20'000, 120'000);
  for (int i = 0; i < 64; ++i)
    costs_.not_shown(kMiB);
  EXPECT_LT(shown(100, 20'000, 120'000), 2);
}

TEST_F(ReadCostsTest, NeverIsNever) {
  costs_.never_pages();
  EXPECT_EQ(shown(1024, 1, 120'000), 0);
}

}  // namespace
}  // namespace nfsrdma
