// SPDX-License-Identifier: Apache-2.0
// LoopDriver: who turns the loop when callers come and go, and when nobody calls.
#include "client/library/loop_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLongest{20};

/// A timer that says when it has fired, and on which thread.
class Alarm {
 public:
  static Task<int> arm(Alarm& alarm, EventLoop& loop) {
    alarm.timer_.arm_after(loop, milliseconds(1));
    co_return 0;
  }
  void arm_now(EventLoop& loop) { timer_.arm_after(loop, milliseconds(1)); }
  bool fires_within(std::chrono::milliseconds time) {
    return fired_.wait_for(time) == std::future_status::ready;
  }
  std::thread::id thread() { return fired_.get(); }

 private:
  std::promise<std::thread::id> promise_;
  std::future<std::thread::id> fired_ = promise_.get_future();
  Timer timer_{[this] { promise_.set_value(std::this_thread::get_id()); }};
};

class LoopDriverTest : public testing::Test {
 protected:
  LoopDriverTest() : driver_(std::move(LoopDriver::create()).value()) {}

  static Task<int> give(int number) { co_return number; }

  std::unique_ptr<LoopDriver> driver_;
};

TEST_F(LoopDriverTest, TimersFireWhileNobodyCallsWhenItIsKept) {
  driver_->keep();
  driver_->keep();
  // It steps back for whoever calls, as often as that is.
  for (int i = 0; i < 3; ++i) {
    Alarm alarm;
    EXPECT_EQ(driver_->run(Alarm::arm(alarm, driver_->loop())), 0);
    ASSERT_TRUE(alarm.fires_within(kLongest));
    EXPECT_NE(alarm.thread(), std::this_thread::get_id());
    EXPECT_EQ(driver_->run(give(i)), i);
  }
}

TEST_F(LoopDriverTest, NothingMovesWhileItStands) {
  driver_->keep();
  Alarm first, second;
  EXPECT_EQ(driver_->run(Alarm::arm(first, driver_->loop())), 0);
  ASSERT_TRUE(first.fires_within(kLongest));
  std::promise<void> standing;
  std::atomic<bool> called = false;
  std::thread caller([&] {
    standing.get_future().wait();
    EXPECT_EQ(driver_->run(give(7)), 7);
    called = true;
  });
  driver_->while_it_stands([&] {
    second.arm_now(driver_->loop());
    standing.set_value();
    EXPECT_FALSE(second.fires_within(3 * LoopDriver::kIdle));
    EXPECT_FALSE(called);
  });
  caller.join();
  EXPECT_TRUE(second.fires_within(kLongest));
}

TEST_F(LoopDriverTest, ManyCallersBesideTheKeeper) {
  driver_->keep();
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        if (driver_->run(give(i)) != i) ++wrong;
        if (i % 50 != thread) continue;
        Alarm alarm;
        driver_->run(Alarm::arm(alarm, driver_->loop()));
        if (!alarm.fires_within(kLongest)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

/// One that waits, and says when it has begun.
Task<int> wait_for(WaitList& event, std::promise<void>& begun) {
  begun.set_value();
  co_await event.wait();
  co_return 1;
}
Task<int> let_go(WaitList& event) {
  event.wake_all();
  co_return 2;
}

TEST_F(LoopDriverTest, ACallThatWaitsForNothingIsNotHeldUpByOneThatDoes) {
  WaitList event;
  std::promise<void> begun;
  std::thread leader([&] { EXPECT_EQ(driver_->run(wait_for(event, begun)), 1); });
  begun.get_future().wait();
  auto follower = std::async(std::launch::async, [&] { return driver_->run(give(7)); });
  EXPECT_EQ(follower.wait_for(kLongest), std::future_status::ready);
  EXPECT_EQ(driver_->run(let_go(event)), 2);
  leader.join();
  EXPECT_EQ(follower.get(), 7);
}

TEST_F(LoopDriverTest, WithoutAKeeperNothingHappensByItself) {
  Alarm alarm;
  EXPECT_EQ(driver_->run(Alarm::arm(alarm, driver_->loop())), 0);
  EXPECT_FALSE(alarm.fires_within(3 * LoopDriver::kIdle));
}

}  // namespace
}  // namespace nfsrdma
