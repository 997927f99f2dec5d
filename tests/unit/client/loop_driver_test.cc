// SPDX-License-Identifier: Apache-2.0
// LoopDriver: who turns the loop when callers come and go, and when nobody calls.
#include "client/library/loop_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LoopDriverTest : public testing::Test {
 protected:
  LoopDriverTest() : driver_(std::move(LoopDriver::create()).value()) {}

  static Task<int> give(int number) { co_return number; }
  /// Arms the timer on the loop.
  static Task<int> arm(Timer& timer, EventLoop& loop, Duration after) {
    timer.arm_after(loop, after);
    co_return 0;
  }
  template <typename Condition>
  static bool comes_true(Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }

  std::unique_ptr<LoopDriver> driver_;
};

TEST_F(LoopDriverTest, TimersFireWhileNobodyCallsWhenItIsKept) {
  std::atomic<int> fired = 0;
  std::thread::id by;
  Timer timer([&] {
    by = std::this_thread::get_id();
    ++fired;
  });
  driver_->keep();
  driver_->keep();
  EXPECT_EQ(driver_->run(arm(timer, driver_->loop(), milliseconds(1))), 0);
  EXPECT_TRUE(comes_true([&] { return fired == 1; }));
  // It steps back for whoever calls, as often as that is.
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(2 * LoopDriver::kIdle);
    EXPECT_EQ(driver_->run(give(i)), i);
  }
  EXPECT_NE(by, std::this_thread::get_id());
  driver_->while_it_stands([&] { timer.cancel(); });
}

TEST_F(LoopDriverTest, NothingMovesWhileItStands) {
  std::atomic<int> fired = 0;
  Timer timer([&] { ++fired; });
  driver_->keep();
  EXPECT_EQ(driver_->run(arm(timer, driver_->loop(), milliseconds(1))), 0);
  EXPECT_TRUE(comes_true([&] { return fired == 1; }));
  std::atomic<bool> standing = false;
  std::atomic<bool> called = false;
  std::thread caller([&] {
    while (!standing)
      std::this_thread::yield();
    EXPECT_EQ(driver_->run(give(7)), 7);
    called = true;
  });
  driver_->while_it_stands([&] {
    timer.arm_after(driver_->loop(), milliseconds(1));
    standing = true;
    std::this_thread::sleep_for(3 * LoopDriver::kIdle);
    EXPECT_EQ(fired, 1);
    EXPECT_FALSE(called);
  });
  caller.join();
  EXPECT_TRUE(comes_true([&] { return fired == 2; }));
}

TEST_F(LoopDriverTest, ManyCallersBesideTheKeeper) {
  driver_->keep();
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        if (driver_->run(give(i)) != i) ++wrong;
        if (i % 50 == thread) std::this_thread::sleep_for(2 * LoopDriver::kIdle);
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LoopDriverTest, WithoutAKeeperNothingHappensByItself) {
  std::atomic<int> fired = 0;
  Timer timer([&] { ++fired; });
  EXPECT_EQ(driver_->run(arm(timer, driver_->loop(), milliseconds(1))), 0);
  std::this_thread::sleep_for(3 * LoopDriver::kIdle);
  EXPECT_EQ(fired, 0);
}

}  // namespace
}  // namespace nfsrdma
