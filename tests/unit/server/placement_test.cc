// SPDX-License-Identifier: Apache-2.0
// MeasuredPlacement where hand-overs are slow. (Its other rules: dispatch_test.cc.)
#include "server/placement.h"

#include <gtest/gtest.h>

#include <latch>

#include "server/worker_pool.h"

namespace nfsrdma::test {
namespace {

class SlowHandOvers : public ::testing::Test {
 protected:
  // Tests before this one may have had a whole server in this process.
  void SetUp() override { MeasuredPlacement::hand_over_ns() = 0; }
  void TearDown() override { MeasuredPlacement::hand_over_ns() = 0; }
  static bool goes_to_workers(std::uint64_t elapsed_ns) {
    MeasuredPlacement placement;
    for (int i = 0; i < 100; ++i)
      placement.add(elapsed_ns);
    return placement.on_workers();
  }
};

TEST_F(SlowHandOvers, RaiseWhatIsShort) {
  EXPECT_TRUE(goes_to_workers(1'000'000));
  MeasuredPlacement::hand_over_ns() = 10 * MeasuredPlacement::kHandOverNs;
  EXPECT_FALSE(goes_to_workers(1'000'000));
  EXPECT_TRUE(goes_to_workers(10'000'000));
}

TEST_F(SlowHandOvers, AreForgottenWhenNoneHappenAnyMore) {
  MeasuredPlacement::hand_over_ns() = 10 * MeasuredPlacement::kHandOverNs;
  MeasuredPlacement placement;
  for (int i = 0; i < 2000; ++i)
    placement.add(1'000'000);
  EXPECT_TRUE(placement.on_workers());
}

TEST_F(SlowHandOvers, NeverMakeItEndless) {
  MeasuredPlacement::hand_over_ns() = ~std::uint64_t{0};
  EXPECT_TRUE(goes_to_workers(1'000'000'000));
}

TEST_F(SlowHandOvers, FastOnesLowerNothing) {
  MeasuredPlacement::hand_over_ns() = 1;
  EXPECT_FALSE(goes_to_workers(MeasuredPlacement::kToWorkersNs - 1000));
}

class Errand final : public WorkItem {
 public:
  explicit Errand(std::latch& done) : done_(done) {}
  void run_on_worker() override { done_.count_down(); }

 private:
  std::latch& done_;
};

TEST(WorkerPool, KeepsAnAverageOfHowLongFreeWorkersTakeToStart) {
  std::atomic<std::uint64_t> hand_over{0};
  {
    WorkerPool workers(1, &hand_over);
    // The worker may not be waiting yet for the first ones, which then do not count.
    for (int i = 0; hand_over == 0 && i < 100'000; ++i) {
      std::latch done(1);
      Errand errand(done);
      workers.submit(errand);
      done.wait();
    }
  }
  EXPECT_GT(hand_over, 0u);
}

TEST(WorkerPool, DoesNotCountTheWaitForAWorkerThatIsBusy) {
  constexpr std::uint64_t kUntouched = 12345;
  std::atomic<std::uint64_t> hand_over{kUntouched};
  class Blocker final : public WorkItem {
   public:
    void run_on_worker() override {
      started.count_down();
      go.wait();
    }
    std::latch started{1}, go{1};
  } blocker;
  std::latch done(2);
  Errand first(done), second(done);
  {
    WorkerPool workers(1, &hand_over);
    workers.submit(blocker);
    blocker.started.wait();
    hand_over = kUntouched;  // whatever the start of the first one made of it
    workers.submit(first);
    workers.submit(second);
    blocker.go.count_down();
    done.wait();
  }
  EXPECT_EQ(hand_over, kUntouched);
}

}  // namespace
}  // namespace nfsrdma::test
