// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace nfsrdma {
namespace {

class VirtualClock final : public Clock {
 public:
  TimePoint time{std::chrono::hours(1)};
  TimePoint now() const override { return time; }
};

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() {
    loop_->set_clock(&clock_);
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    read_.reset(fds[0]);
    write_.reset(fds[1]);
  }
  void turn() { loop_->turn(Duration::zero()); }
  void make_readable() { ASSERT_EQ(::write(write_.get(), "x", 1), 1); }

  VirtualClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  UniqueFd read_, write_;
};

struct CountingWatcher : FdWatcher {
  int count = 0;
  std::function<void()> then;
  void on_fd_ready(std::uint32_t) override {
    ++count;
    if (then) then();
  }
};

struct CountingDeferred : Deferred {
  int count = 0;
  std::function<void()> then;
  void run_deferred() override {
    ++count;
    if (then) then();
  }
};

TEST_F(EventLoopTest, ReadyDescriptorReachesItsWatcher) {
  CountingWatcher watcher;
  ASSERT_TRUE(loop_->add(read_.get(), EPOLLIN, watcher).ok());
  turn();
  EXPECT_EQ(watcher.count, 0);
  make_readable();
  turn();
  EXPECT_EQ(watcher.count, 1);
  loop_->remove(read_.get(), watcher);
}

TEST_F(EventLoopTest, RemovedWatcherHearsNothingEvenInTheSameTurn) {
  UniqueFd other(::dup(read_.get()));
  CountingWatcher first, second;
  // Whoever runs first removes the other one.
  first.then = [&] { loop_->remove(other.get(), second); };
  second.then = [&] { loop_->remove(read_.get(), first); };
  ASSERT_TRUE(loop_->add(read_.get(), EPOLLIN, first).ok());
  ASSERT_TRUE(loop_->add(other.get(), EPOLLIN, second).ok());
  make_readable();
  turn();
  EXPECT_EQ(first.count + second.count, 1);
  loop_->remove(read_.get(), first);
  loop_->remove(other.get(), second);
}

TEST_F(EventLoopTest, DeferredRunsOnceHoweverOftenItIsQueued) {
  CountingDeferred item;
  loop_->defer(item);
  loop_->defer(item);
  turn();
  turn();
  EXPECT_EQ(item.count, 1);
}

TEST_F(EventLoopTest, ItemThatDefersItselfWaitsForTheNextTurn) {
  CountingDeferred item;
  item.then = [&] { loop_->defer(item); };
  loop_->defer(item);
  turn();
  EXPECT_EQ(item.count, 1);
  turn();
  EXPECT_EQ(item.count, 2);
}

TEST_F(EventLoopTest, DestroyedDeferredIsForgotten) {
  auto item = std::make_unique<CountingDeferred>();
  loop_->defer(*item);
  item.reset();
  turn();
  SUCCEED();  // the sanitizer is the judge
}

TEST_F(EventLoopTest, PostFromAnotherThreadRunsOnTheLoop) {
  std::thread::id ran_on;
  std::thread poster([&] { loop_->post([&] { ran_on = std::this_thread::get_id(); }); });
  poster.join();
  turn();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_F(EventLoopTest, StopEndsRun) {
  std::thread stopper([&] { loop_->stop(); });
  loop_->run();
  stopper.join();
  SUCCEED();
}

TEST_F(EventLoopTest, TimersFireInOrderOfTime) {
  std::string order;
  Timer late([&] { order += 'l'; }), early([&] { order += 'e'; });
  late.arm(*loop_, clock_.time + std::chrono::seconds(2));
  early.arm(*loop_, clock_.time + std::chrono::seconds(1));
  clock_.time += std::chrono::seconds(3);
  turn();
  EXPECT_EQ(order, "el");
}

TEST_F(EventLoopTest, TimerDoesNotFireEarly) {
  bool fired = false;
  Timer timer([&] { fired = true; });
  timer.arm(*loop_, clock_.time + std::chrono::milliseconds(1));
  turn();
  EXPECT_FALSE(fired);
}

TEST_F(EventLoopTest, RearmingMovesATimer) {
  int fired = 0;
  Timer timer([&] { ++fired; });
  timer.arm(*loop_, clock_.time + std::chrono::seconds(1));
  timer.arm(*loop_, clock_.time + std::chrono::seconds(5));
  clock_.time += std::chrono::seconds(2);
  turn();
  EXPECT_EQ(fired, 0);
  clock_.time += std::chrono::seconds(4);
  turn();
  EXPECT_EQ(fired, 1);
}

TEST_F(EventLoopTest, CancelledAndDestroyedTimersDoNotFire) {
  int fired = 0;
  Timer cancelled([&] { ++fired; });
  cancelled.arm(*loop_, clock_.time);
  cancelled.cancel();
  {
    Timer destroyed([&] { ++fired; });
    destroyed.arm(*loop_, clock_.time);
  }
  clock_.time += std::chrono::seconds(1);
  turn();
  EXPECT_EQ(fired, 0);
}

TEST_F(EventLoopTest, TimerMayRearmItselfWhileFiring) {
  int fired = 0;
  Timer timer([&] {
    if (++fired < 3) timer.arm(*loop_, clock_.time);
  });
  timer.arm(*loop_, clock_.time);
  for (int i = 0; i < 5; ++i) {
    clock_.time += std::chrono::seconds(1);
    turn();
  }
  EXPECT_EQ(fired, 3);
}

// --- polling ---

/// Every look at it takes a microsecond.
class TickingClock final : public Clock {
 public:
  mutable TimePoint time{std::chrono::hours(1)};
  TimePoint now() const override { return time += std::chrono::microseconds(1); }
};

struct CountingPolled final : Polled {
  EventLoop* again = nullptr;  // enlist there again
  int work_at = 0;             // the look that finds something
  int looks = 0;
  int last_looks = 0;
  bool look(bool last) override {
    ++looks;
    if (last) ++last_looks;
    if (looks == work_at) return true;
    if (again != nullptr && !last) again->look_at(*this);
    return false;
  }
};

class EventLoopPollingTest : public ::testing::Test {
 protected:
  EventLoopPollingTest() { loop_->set_clock(&clock_); }
  void event() {
    loop_->post([] {});
    EXPECT_TRUE(loop_->turn(Duration::zero()));
  }

  TickingClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
};

TEST_F(EventLoopPollingTest, WithoutPollingThereIsOneLookBeforeItBlocks) {
  CountingPolled polled;
  polled.again = loop_.get();
  loop_->look_at(polled);
  event();
  event();
  EXPECT_FALSE(loop_->polls());
  polled.looks = polled.last_looks = 0;
  EXPECT_FALSE(loop_->turn(std::chrono::milliseconds(1)));
  EXPECT_EQ(polled.looks, 1);
  EXPECT_EQ(polled.last_looks, 1);
  EXPECT_FALSE(loop_->turn(std::chrono::milliseconds(1)));
  EXPECT_EQ(polled.looks, 1) << "it was not enlisted again";
}

TEST_F(EventLoopPollingTest, WhatTheLastLookFindsKeepsItFromBlocking) {
  CountingPolled polled;
  polled.work_at = 1;
  loop_->look_at(polled);
  EXPECT_TRUE(loop_->turn(std::chrono::hours(1)));
  EXPECT_EQ(polled.last_looks, 1);
}

TEST_F(EventLoopPollingTest, ItPollsWhileEventsComeFastAndNeverForLong) {
  loop_->set_spin(std::chrono::microseconds(40));
  EXPECT_FALSE(loop_->polls());
  for (int i = 0; i < 4; ++i)
    event();
  ASSERT_TRUE(loop_->polls());
  CountingPolled polled;
  polled.again = loop_.get();
  loop_->look_at(polled);
  EXPECT_FALSE(loop_->turn(std::chrono::milliseconds(1)));
  EXPECT_GT(polled.looks, 1);
  EXPECT_LE(polled.looks, 42);
  EXPECT_EQ(polled.last_looks, 1);
  clock_.time += std::chrono::seconds(1);
  event();
  EXPECT_FALSE(loop_->polls()) << "the next event came too late for polling";
}

TEST_F(EventLoopPollingTest, WhatAPolledOneFindsIsAnEvent) {
  loop_->set_spin(std::chrono::microseconds(40));
  for (int i = 0; i < 4; ++i)
    event();
  CountingPolled polled;
  polled.again = loop_.get();
  polled.work_at = 2;
  loop_->look_at(polled);
  EXPECT_TRUE(loop_->turn(std::chrono::hours(1)));
  EXPECT_EQ(polled.looks, 2);
  EXPECT_EQ(polled.last_looks, 0);
  EXPECT_TRUE(loop_->polls());
}

/// Finds nothing to tell, but leaves something to be done, as a completion queue does that finds
/// nothing but flushed receives.
struct LeavingPolled final : Polled {
  std::function<void()> leave;
  bool look(bool) override {
    leave();
    return false;
  }
};

TEST_F(EventLoopPollingTest, WhatTheLastLookPutOffIsNotBlockedFor) {
  CountingDeferred deferred;
  LeavingPolled polled;
  polled.leave = [&] { loop_->defer(deferred); };
  loop_->look_at(polled);
  EXPECT_TRUE(loop_->turn(std::chrono::hours(1)));
  EXPECT_EQ(deferred.count, 1);
}

TEST(EventLoopPolling, ATimerOfTheLastLookIsOnTime) {
  auto loop = std::move(EventLoop::create()).value();
  bool fired = false;
  Timer timer([&] { fired = true; });
  LeavingPolled polled;
  polled.leave = [&] { timer.arm_after(*loop, std::chrono::milliseconds(1)); };
  loop->look_at(polled);
  EXPECT_TRUE(loop->turn(std::chrono::hours(1)));
  EXPECT_TRUE(fired);
}

TEST_F(EventLoopPollingTest, ABusyLoopLooksAsWell) {
  CountingPolled polled;
  polled.again = loop_.get();
  loop_->look_at(polled);
  event();
  event();
  EXPECT_EQ(polled.looks, 2);
  EXPECT_EQ(polled.last_looks, 0);
}

TEST(EventLoopEnd, GivesBackWhatIsKeptForTheLoop) {
  auto loop = std::move(EventLoop::create()).value();
  Timer timer([] {});
  timer.arm_after(*loop, std::chrono::hours(1));
  bool in_time = false;
  std::unique_ptr<LoopEnd> end;
  end = std::make_unique<LoopEnd>([&] {
    in_time = timer.armed();
    timer.cancel();
    end.reset();
  });
  loop->at_end(*end);
  loop.reset();
  EXPECT_TRUE(in_time);
  EXPECT_EQ(end, nullptr);
}

TEST(EventLoopEnd, IsNotHeardOfByWhatWasGivenBackBefore) {
  auto loop = std::move(EventLoop::create()).value();
  int given_back = 0;
  {
    LoopEnd end([&] { ++given_back; });
    loop->at_end(end);
  }
  loop.reset();
  EXPECT_EQ(given_back, 0);
}

}  // namespace
}  // namespace nfsrdma
