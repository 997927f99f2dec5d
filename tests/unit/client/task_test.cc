// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace nfsrdma {
namespace {

Task<int> ready(int n) {
  co_return n;
}

Task<int> sum_of_ready(int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i)
    sum += co_await ready(1);
  co_return sum;
}

Task<int> one_after(WaitList& list) {
  co_await list.wait();
  co_return 1;
}

Task<int> sum_of_waits(WaitList& list, int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i)
    sum += co_await one_after(list);
  co_return sum;
}

Task<void> store(Task<int> task, int* out) {
  *out = co_await std::move(task);
}

TEST(Task, ChildrenThatFinishAtOnceDoNotGrowTheStack) {
  int result = 0;
  TaskGroup group;
  group.spawn(store(sum_of_ready(1'000'000), &result));
  EXPECT_EQ(result, 1'000'000);
}

TEST(Task, ChildrenThatWaitDoNotGrowTheStack) {
  WaitList list;
  int result = 0;
  TaskGroup group;
  group.spawn(store(sum_of_waits(list, 200'000), &result));
  while (group.running() != 0)
    list.wake_all();
  EXPECT_EQ(result, 200'000);
}

Task<Result<int>> failing() {
  co_return Error{Errc::kClosed, 0, "here"};
}

Task<Result<std::string>> through_try() {
  NFSRDMA_CO_TRY(int n, co_await failing());
  co_return std::to_string(n);
}

Task<void> check_error(bool* seen) {
  auto result = co_await through_try();
  *seen = !result.ok() && result.error().code == Errc::kClosed;
}

TEST(Task, CoTryReturnsTheError) {
  bool seen = false;
  TaskGroup group;
  group.spawn(check_error(&seen));
  EXPECT_TRUE(seen);
}

Task<std::unique_ptr<int>> move_only() {
  co_return std::make_unique<int>(7);
}

Task<void> take_move_only(int* out) {
  std::unique_ptr<int> value = co_await move_only();
  *out = *value;
}

TEST(Task, CarriesMoveOnlyValues) {
  int result = 0;
  TaskGroup group;
  group.spawn(take_move_only(&result));
  EXPECT_EQ(result, 7);
}

Task<void> wait_for(WaitList& list) {
  co_await list.wait();
}

Task<void> gather(WaitList& list, int count, bool* done) {
  TaskGroup pieces;
  for (int i = 0; i < count; ++i)
    pieces.spawn(wait_for(list));
  co_await pieces.wait();
  *done = true;
}

TEST(TaskGroup, WaitEndsWhenTheLastPieceEnds) {
  WaitList list;
  bool done = false;
  TaskGroup group;
  group.spawn(gather(list, 3, &done));
  list.wake_one();
  list.wake_one();
  EXPECT_FALSE(done);
  list.wake_one();
  EXPECT_TRUE(done);
}

Task<void> wait_twice(WaitList& list, int* rounds) {
  co_await list.wait();
  ++*rounds;
  co_await list.wait();
  ++*rounds;
}

TEST(WaitList, WakeAllLeavesThoseThatWaitAgain) {
  WaitList list;
  int rounds = 0;
  TaskGroup group;
  group.spawn(wait_twice(list, &rounds));
  list.wake_all();
  EXPECT_EQ(rounds, 1);
  list.wake_all();
  EXPECT_EQ(rounds, 2);
}

Task<void> locked_section(AsyncMutex& mutex, WaitList& inside, std::vector<int>* order, int id) {
  AsyncMutex::Guard guard = co_await mutex.lock();
  order->push_back(id);
  co_await inside.wait();
}

TEST(AsyncMutex, LetsOneInAtATimeInOrder) {
  AsyncMutex mutex;
  WaitList inside;
  std::vector<int> order;
  TaskGroup group;
  for (int id = 0; id < 3; ++id)
    group.spawn(locked_section(mutex, inside, &order, id));
  EXPECT_EQ(order, (std::vector<int>{0}));
  inside.wake_one();
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
  inside.wake_one();
  inside.wake_one();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(mutex.locked());
}

}  // namespace
}  // namespace nfsrdma
