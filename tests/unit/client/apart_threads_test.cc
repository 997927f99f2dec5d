// SPDX-License-Identifier: Apache-2.0
#include "client/apart_threads.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace nfsrdma {
namespace {

class ApartThreadsTest : public testing::Test {
 protected:
  void turn_until(const bool& over) {
    while (!over)
      loop_->turn(Duration(-1));
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
};

TEST_F(ApartThreadsTest, WorkIsDoneElsewhereAndWhatFollowsHere) {
  ApartThreads apart(*loop_);
  std::thread::id worker;
  std::thread::id follower;
  bool over = false;
  apart.run([&] { worker = std::this_thread::get_id(); },
            [&] {
              follower = std::this_thread::get_id();
              over = true;
            });
  turn_until(over);
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_EQ(follower, std::this_thread::get_id());
}

TEST_F(ApartThreadsTest, OneThatHangsDoesNotHoldUpTheOthers) {
  ApartThreads apart(*loop_);
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  bool hung_over = false;
  apart.run([release] { release.wait(); }, [&] { hung_over = true; });
  for (int i = 0; i < 20; ++i) {
    bool over = false;
    apart.run([] {}, [&] { over = true; });
    turn_until(over);
  }
  EXPECT_FALSE(hung_over);
  released.set_value();
  turn_until(hung_over);
}

TEST_F(ApartThreadsTest, NobodyWaitsForOneThatHangs) {
  std::promise<void> released;
  std::promise<void> done;
  bool told = false;
  {
    ApartThreads apart(*loop_);
    std::promise<void> started;
    apart.run(
        [&started, &done, release = released.get_future().share()] {
          started.set_value();
          release.wait();
          done.set_value();
        },
        [&] { told = true; });
    started.get_future().wait();
  }
  loop_.reset();
  released.set_value();
  done.get_future().wait();
  EXPECT_FALSE(told);
}

TEST_F(ApartThreadsTest, WhatIsPostedIsDroppedWhenNobodyIsThereAnyMore) {
  bool told = false;
  {
    ApartThreads apart(*loop_);
    std::promise<void> first;
    std::promise<void> second;
    apart.run([&first] { first.set_value(); }, [&told] { told = true; });
    first.get_future().wait();
    apart.run([&second] { second.set_value(); }, [] {});
    second.get_future().wait();
  }
  loop_->turn(std::chrono::milliseconds(20));
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace nfsrdma
