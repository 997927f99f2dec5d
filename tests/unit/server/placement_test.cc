// SPDX-License-Identifier: Apache-2.0
// MeasuredPlacement where hand-overs are slow. (Its other rules: dispatch_test.cc.)
#include "server/placement.h"

#include <gtest/gtest.h>

#include "server/worker_pool.h"

namespace nfsrdma::test {
namespace {

class SlowHandOvers : public ::testing::Test {
 protected:
  void TearDown() override { MeasuredPlacement::set_hand_over(0); }
  static bool goes_to_workers(std::uint64_t elapsed_ns) {
    MeasuredPlacement placement;
    for (int i = 0; i < 200; ++i)
      placement.add(elapsed_ns);
    return placement.on_workers();
  }
};

TEST_F(SlowHandOvers, RaiseWhatIsShort) {
  EXPECT_TRUE(goes_to_workers(1'000'000));
  MeasuredPlacement::set_hand_over(10 * MeasuredPlacement::kHandOverNs);
  EXPECT_FALSE(goes_to_workers(1'000'000));
  EXPECT_TRUE(goes_to_workers(10'000'000));
}

TEST_F(SlowHandOvers, NeverMakeItEndless) {
  MeasuredPlacement::set_hand_over(~std::uint64_t{0});
  EXPECT_TRUE(goes_to_workers(1'000'000'000));
}

TEST_F(SlowHandOvers, FastOnesLowerNothing) {
  MeasuredPlacement::set_hand_over(1);
  EXPECT_FALSE(goes_to_workers(MeasuredPlacement::kToWorkersNs - 1000));
}

TEST(WorkerPool, MeasuresAHandOver) {
  WorkerPool workers(2);
  EXPECT_GT(workers.measure_hand_over(), 0u);
  EXPECT_EQ(workers.waiting(), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
