// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/buffer_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpcrdma/sim/sim_fabric.h"

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
