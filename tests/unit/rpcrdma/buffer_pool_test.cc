// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/buffer_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpcrdma/sim/sim_fabric.h"
#include "tests/support/manual_clock.h"

namespace nfsrdma {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Waiter : BufferWaiter {
  BufferPool& pool;
  BufferShare& share;
  std::size_t wanted;
  std::string& order;
  char name;
  Buffer got;
  Waiter(BufferPool& p, BufferShare& s, std::size_t bytes, std::string& o, char n)
      : pool(p), share(s), wanted(bytes), order(o), name(n) {}
  void on_buffers() override {
    got = pool.acquire(wanted);
    if (got) {
      order += name;
    } else {
      pool.wait_for_buffers(*this, share);
    }
  }
};

class BufferPoolTest : public ::testing::Test {
 protected:
  void turn() {
    for (int i = 0; i < 4; ++i)
      loop_->turn(Duration::zero());
  }
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  BufferPool pool_{*loop_, 16 * kMiB};
  BufferShare share_;
};

TEST_F(BufferPoolTest, BuffersAreAtLeastAsLongAsAsked) {
  for (std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, 65536 + 1ul,
                           kMiB + 4096, BufferPool::kMaxBuffer}) {
    Buffer buffer = pool_.acquire(size);
    ASSERT_TRUE(buffer) << size;
    EXPECT_GE(buffer.size(), size);
    buffer.data()[buffer.size() - 1] = std::byte{1};
  }
}
TEST_F(BufferPoolTest, WindowsCountAsMemoryDoes) {
  const UniqueFd file(::memfd_create("pages", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  Buffer window = pool_.acquire_window(5000);
  ASSERT_TRUE(window);
  EXPECT_EQ(window.size(), 8192u);
  EXPECT_EQ(pool_.in_use(), 8192u);
  EXPECT_NE(window.window(), nullptr);
  const std::byte* place = window.data();
  Buffer moved = std::move(window);
  EXPECT_EQ(moved.data(), place);
  moved.reset();
  EXPECT_EQ(pool_.in_use(), 0u);
  EXPECT_EQ(pool_.acquire_window(1).data(), place);
  EXPECT_EQ(pool_.acquire(5000).window(), nullptr);
  EXPECT_FALSE(pool_.acquire_window(BufferPool::kMaxBuffer + 1));
  std::vector<Buffer> all;
  while (Buffer buffer = pool_.acquire_window(kMiB))
    all.push_back(std::move(buffer));
  EXPECT_EQ(all.size(), 16u);  // the budget
  all.pop_back();
  EXPECT_TRUE(pool_.acquire_window(kMiB));
}

TEST_F(BufferPoolTest, NoWindowPassesThoseWhoWait) {
  std::vector<Buffer> all;
  while (Buffer buffer = pool_.acquire(kMiB))
    all.push_back(std::move(buffer));
  std::string order;
  Waiter waiter(pool_, share_, kMiB, order, 'a');
  pool_.wait_for_buffers(waiter, share_);
  all.pop_back();
  EXPECT_FALSE(pool_.acquire_window(4096));
  turn();
  EXPECT_EQ(order, "a");
}

TEST_F(BufferPoolTest, LargerThanTheLargestClassIsEmpty) {
  EXPECT_FALSE(pool_.acquire(BufferPool::kMaxBuffer + 1));
}
TEST_F(BufferPoolTest, LastReturnedIsFirstTaken) {
  Buffer first = pool_.acquire(100);
  Buffer second = pool_.acquire(100);
  std::byte* warm = first.data();
  first.reset();
  EXPECT_EQ(pool_.acquire(100).data(), warm);
}
TEST_F(BufferPoolTest, BudgetCountsWhatIsHandedOut) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  EXPECT_EQ(held.size(), 15u);  // of 1 MiB + 4 KiB each
  EXPECT_LE(pool_.in_use(), pool_.budget());
  held.clear();
  EXPECT_EQ(pool_.in_use(), 0u);
}
TEST_F(BufferPoolTest, MovedFromBufferIsEmpty) {
  Buffer a = pool_.acquire(10);
  Buffer b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(a.size(), 0u);
  EXPECT_TRUE(b);
}
TEST_F(BufferPoolTest, WaitersAreServedInOrder) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  std::string order;
  Waiter a(pool_, share_, kMiB, order, 'a'), b(pool_, share_, 100'000, order, 'b'),
      c(pool_, share_, kMiB, order, 'c');
  pool_.wait_for_buffers(a, share_);
  pool_.wait_for_buffers(b, share_);
  pool_.wait_for_buffers(c, share_);
  turn();
  EXPECT_EQ(order, "");
  for (int i = 0; i < 3; ++i) {
    held.pop_back();
    turn();
  }
  EXPECT_EQ(order, "abc");
}
TEST_F(BufferPoolTest, ConnectionsTakeTurns) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  std::string order;
  BufferShare greedy, modest, late;
  std::vector<std::unique_ptr<Waiter>> waiters;
  auto wait = [&](BufferShare& share, char name) {
    waiters.push_back(std::make_unique<Waiter>(pool_, share, kMiB, order, name));
    pool_.wait_for_buffers(*waiters.back(), share);
  };
  for (int i = 0; i < 4; ++i)
    wait(greedy, 'g');
  wait(modest, 'm');
  wait(modest, 'm');
  held.pop_back();
  turn();
  wait(late, 'l');
  while (!held.empty()) {
    held.pop_back();
    turn();
  }
  EXPECT_EQ(order, "gmglmgg");
}
TEST_F(BufferPoolTest, ShareOfAnEndedConnectionLosesItsTurn) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  std::string order;
  auto gone = std::make_unique<BufferShare>();
  auto first = std::make_unique<Waiter>(pool_, *gone, kMiB, order, 'x');
  pool_.wait_for_buffers(*first, *gone);
  Waiter second(pool_, share_, kMiB, order, 's');
  pool_.wait_for_buffers(second, share_);
  first.reset();
  gone.reset();
  held.pop_back();
  turn();
  EXPECT_EQ(order, "s");
}
TEST_F(BufferPoolTest, NobodyOvertakesAWaiter) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  std::string order;
  Waiter waiter(pool_, share_, 4 * kMiB, order, 'w');
  pool_.wait_for_buffers(waiter, share_);
  held.pop_back();  // not enough for the waiter, but for somebody else
  EXPECT_FALSE(pool_.acquire(100'000));
  EXPECT_TRUE(pool_.acquire(4096));  // messages are exempt
  held.clear();
  turn();
  EXPECT_EQ(order, "w");
}
/// Wants two at once, as a call with two Read chunks: gives the first back without the second.
struct WaiterForTwo : BufferWaiter {
  BufferPool& pool;
  BufferShare& share;
  int asked = 0;
  Buffer got[2];
  WaiterForTwo(BufferPool& p, BufferShare& s) : pool(p), share(s) {}
  void on_buffers() override {
    ++asked;
    for (Buffer& buffer : got)
      buffer = pool.acquire(4 * kMiB);
    if (got[1]) return;
    got[0].reset();
    pool.wait_for_buffers(*this, share);
  }
};

TEST_F(BufferPoolTest, WhoGivesBackWhatWasNotEnoughIsNotAskedAgainForThat) {
  std::vector<Buffer> held;
  for (int i = 0; i < 3; ++i)
    held.push_back(pool_.acquire(2 * kMiB));
  WaiterForTwo waiter(pool_, share_);
  pool_.wait_for_buffers(waiter, share_);
  held.pop_back();  // enough for the first of the two
  ASSERT_GE(pool_.budget() - pool_.in_use(), BufferPool::charge(4 * kMiB));
  turn();
  EXPECT_EQ(waiter.asked, 1);
  EXPECT_FALSE(loop_->turn(Duration::zero())) << "the loop has nothing to do";
  held.clear();
  turn();
  EXPECT_EQ(waiter.asked, 2);
  EXPECT_TRUE(waiter.got[1]);
}
TEST_F(BufferPoolTest, WhatComesBackWhileSomebodyIsServedIsOfferedAgain) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(4 * kMiB))
    held.push_back(std::move(buffer));
  ASSERT_EQ(held.size(), 3u);
  struct LetsGo : BufferWaiter {
    BufferPool& pool;
    BufferShare& share;
    std::vector<Buffer>& held;
    Buffer got;
    LetsGo(BufferPool& p, BufferShare& s, std::vector<Buffer>& h) : pool(p), share(s), held(h) {}
    void on_buffers() override {
      if ((got = pool.acquire(4 * kMiB))) return;
      pool.wait_for_buffers(*this, share);
      held.clear();
    }
  } waiter(pool_, share_, held);
  Buffer small = pool_.acquire(10);
  pool_.wait_for_buffers(waiter, share_);
  small.reset();
  turn();
  EXPECT_TRUE(waiter.got);
}
TEST_F(BufferPoolTest, EachStageLeavesWhatTheNextOnesNeed) {
  std::vector<Buffer> held;
  const auto fill = [&](std::size_t bytes, BufferStage stage) {
    while (Buffer buffer = pool_.acquire(bytes, stage))
      held.push_back(std::move(buffer));
  };
  fill(4096, BufferStage::kReceive);
  EXPECT_TRUE(pool_.acquire(kMiB / 4, BufferStage::kNewCall));
  fill(4096, BufferStage::kNewCall);
  EXPECT_FALSE(pool_.acquire(4096, BufferStage::kReceive));
  EXPECT_TRUE(pool_.acquire(BufferPool::kMaxBuffer, BufferStage::kData));
  EXPECT_GE(pool_.most_data(), BufferPool::kMaxBuffer);
  fill(4096, BufferStage::kData);
  EXPECT_FALSE(pool_.acquire(4096, BufferStage::kNewCall));
  EXPECT_TRUE(pool_.acquire(65536, BufferStage::kWholeCall));
  fill(4096, BufferStage::kWholeCall);
  EXPECT_FALSE(pool_.acquire(4096, BufferStage::kData));
  EXPECT_TRUE(pool_.acquire(BufferPool::kMaxBuffer));
  fill(4096, BufferStage::kWithHandler);
  EXPECT_EQ(pool_.in_use(), pool_.budget());
}
TEST_F(BufferPoolTest, WhoWaitsInOneStageKeepsNobodyOfALaterOneWaiting) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  struct Newcomer : BufferWaiter {
    BufferPool& pool;
    BufferShare& share;
    int asked = 0;
    Buffer got;
    Newcomer(BufferPool& p, BufferShare& s) : pool(p), share(s) {}
    void on_buffers() override {
      ++asked;
      got = pool.acquire(4096, BufferStage::kNewCall);
      if (!got) pool.wait_for_buffers(*this, share, BufferStage::kNewCall);
    }
  } newcomer(pool_, share_);
  pool_.wait_for_buffers(newcomer, share_, BufferStage::kNewCall);
  std::string order;
  Waiter under_way(pool_, share_, kMiB, order, 'u');
  pool_.wait_for_buffers(under_way, share_);
  held.pop_back();
  turn();
  EXPECT_EQ(order, "u");
  EXPECT_GT(newcomer.asked, 0);
  EXPECT_FALSE(newcomer.got);
  EXPECT_EQ(pool_.waiting(), 1u);
  held.clear();
  EXPECT_FALSE(pool_.acquire(4096, BufferStage::kNewCall)) << "another waits for such";
  turn();
  EXPECT_TRUE(newcomer.got);
  EXPECT_TRUE(pool_.acquire(4096, BufferStage::kNewCall));
}
/// Connections that hold what they hold for as long as their peers like, and somebody who waits.
class BufferHolders : public BufferPoolTest {
 protected:
  struct Holder : BufferHolder {
    std::string name;
    HeldBuffers what;
    int asked = 0;
    Holder(BufferPool& pool, std::string host_name) : name(std::move(host_name)) {
      pool.add_holder(*this);
    }
    HeldBuffers held() override { return what; }
    std::string host() const override { return name; }
    void give_way() override { ++asked; }
  };

  BufferHolders() {
    loop_->set_clock(&clock_);
    while (Buffer buffer = pool_.acquire(kMiB))
      all_.push_back(std::move(buffer));
  }
  ~BufferHolders() override { loop_->set_clock(nullptr); }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.advance(std::chrono::seconds(1));
      turn();
    }
  }
  void hold(Holder& holder, std::size_t bytes) { holder.what.add(bytes, clock_.now()); }

  nfsrdma::test::ManualClock clock_;
  std::vector<Buffer> all_;
  std::string order_;
  Waiter waiter_{pool_, share_, kMiB, order_, 'w'};
  Holder slow_{pool_, "192.0.2.1"};
};

TEST_F(BufferHolders, GiveWayWhenOthersHaveWaitedForLong) {
  hold(slow_, 4 * kMiB);  // 38 s
  pass(32);
  pool_.wait_for_buffers(waiter_, share_);
  pass(9);
  EXPECT_EQ(slow_.asked, 0) << "nobody has waited for long";
  pass(2);
  EXPECT_GT(slow_.asked, 0);
}
TEST_F(BufferHolders, HaveTimeForWhatTheyHold) {
  hold(slow_, 4 * kMiB);
  pool_.wait_for_buffers(waiter_, share_);
  pass(37);
  EXPECT_EQ(slow_.asked, 0);
  pass(2);
  EXPECT_GT(slow_.asked, 0);
}
TEST_F(BufferHolders, HaveAllTheTimeWhileNobodyWaits) {
  hold(slow_, 15 * kMiB);
  pass(3600);
  EXPECT_EQ(slow_.asked, 0);
}
TEST_F(BufferHolders, DoNotGiveWayToTheirOwnHost) {
  Holder same(pool_, "192.0.2.1");
  share_.holder = &same;
  hold(slow_, 15 * kMiB);
  pool_.wait_for_buffers(waiter_, share_);
  pass(3600);
  EXPECT_EQ(slow_.asked, 0);
  Holder other(pool_, "192.0.2.2");
  share_.holder = &other;
  pass(2);
  EXPECT_GT(slow_.asked, 0);
}
TEST_F(BufferHolders, TheHostThatHoldsMostGivesWayFirst) {
  Holder one(pool_, "192.0.2.2"), two(pool_, "192.0.2.2"), quick(pool_, "192.0.2.3");
  hold(slow_, 4 * kMiB);
  hold(one, 3 * kMiB);
  hold(two, 3 * kMiB);
  pool_.wait_for_buffers(waiter_, share_);
  pass(37);
  hold(quick, 15 * kMiB);
  pass(1);
  EXPECT_GT(one.asked, 0);
  EXPECT_GT(two.asked, 0);
  EXPECT_EQ(slow_.asked, 0);
  one.what = two.what = {};
  pass(1);
  EXPECT_GT(slow_.asked, 0) << "when there is still too little";
  EXPECT_EQ(quick.asked, 0);
}
TEST_F(BufferHolders, AreLeftAloneWhenThoseWhoWaitedAreServed) {
  hold(slow_, 4 * kMiB);
  pass(60);
  pool_.wait_for_buffers(waiter_, share_);
  pass(9);
  all_.pop_back();
  turn();
  pass(60);
  EXPECT_EQ(order_, "w");
  EXPECT_EQ(slow_.asked, 0);
}
// Its connection has ended, and nothing is released: what is free is enough for those behind it.
TEST_F(BufferHolders, AWaiterThatGoesFromTheFrontLetsTheNextOnesOn) {
  for (int i = 0; i < 3; ++i)
    all_.pop_back();
  auto first = std::make_unique<Waiter>(pool_, share_, 4 * kMiB, order_, 'f');
  pool_.wait_for_buffers(*first, share_);
  BufferShare other;
  Waiter second(pool_, other, 64 << 10, order_, 's');
  pool_.wait_for_buffers(second, other);
  turn();
  EXPECT_EQ(order_, "");
  first.reset();
  pass(1);
  EXPECT_EQ(order_, "s");
}
TEST_F(BufferPoolTest, DestroyedWaiterIsForgotten) {
  std::vector<Buffer> held;
  while (Buffer buffer = pool_.acquire(kMiB))
    held.push_back(std::move(buffer));
  std::string order;
  {
    Waiter waiter(pool_, share_, kMiB, order, 'w');
    pool_.wait_for_buffers(waiter, share_);
  }
  held.clear();
  turn();
  EXPECT_EQ(order, "");
}
TEST_F(BufferPoolTest, ArenasAreRegisteredWithEveryDomain) {
  SimNetwork network(1);
  SimFabric fabric(network);
  SimDomain one(fabric), two(fabric);
  Buffer before = pool_.acquire(10);
  ASSERT_TRUE(pool_.add_domain(one).ok());
  ASSERT_TRUE(pool_.add_domain(two).ok());
  Buffer after = pool_.acquire(kMiB);
  for (const Buffer* buffer : {&before, &after}) {
    for (SimDomain* domain : {&one, &two}) {
      const Sge sge{buffer->data(), static_cast<std::uint32_t>(buffer->size()),
                    pool_.lkey(*buffer, *domain)};
      EXPECT_TRUE(domain->covers_locally(sge));
    }
  }
  EXPECT_EQ(one.exposed(), 0u);
  pool_.remove_domain(one);
  pool_.remove_domain(two);
}
TEST_F(BufferPoolTest, MemoryGrowsWithUseOnly) {
  EXPECT_EQ(pool_.arena_bytes(), 0u);
  Buffer buffer = pool_.acquire(10);
  EXPECT_EQ(pool_.arena_bytes(), 2 * kMiB);
}

}  // namespace
}  // namespace nfsrdma
