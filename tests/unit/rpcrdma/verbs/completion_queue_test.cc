// SPDX-License-Identifier: Apache-2.0
// What becomes of completions that wait when a queue pair ends.
#include "tests/unit/rpcrdma/verbs/fake_rig.h"

namespace nfsrdma::verbs::test {
namespace {

class VerbsCompletionQueueTest : public FakeRig {
 protected:
  std::vector<std::uint64_t> received() const {
    std::vector<std::uint64_t> ids;
    for (const WorkCompletion& completion : done_) {
      if (completion.opcode == WorkOpcode::kReceive) ids.push_back(completion.wr_id);
    }
    return ids;
  }
  using Ids = std::vector<std::uint64_t>;
};

/// Without a shared receive queue, where a buffer that is dealt out twice is written to by one peer
/// and read as another's message. The first of two pairs received two messages of four buffers, and
/// one of them waits in the queue.
class DealtReceives : public VerbsCompletionQueueTest {
 protected:
  void SetUp() override {
    VerbsOptions options;
    options.per_queue_pair_receives = true;
    options.drain_timeout = std::chrono::milliseconds(0);
    start(options);
    ASSERT_TRUE(connect().ok());
    const std::uint32_t first = number();
    ASSERT_TRUE(connect().ok());
    post_receives(0, 4);
    provider_.receive_ends(first);
    provider_.receive_ends(first);
    std::array<WorkCompletion, 1> one;
    ASSERT_EQ(queue_->poll(one), 1U);
    ASSERT_EQ(provider_.receives.size(), 2U);
  }
  void expect_one_more_posted() {
    turn();
    EXPECT_EQ(received(), Ids{});
    EXPECT_EQ(provider_.receives.size(), 3U);
    // Nothing of it is left in two places.
    for (int i = 0; i < 3; ++i)
      provider_.receive_ends(number());
    run_handler();
    EXPECT_EQ(received().size(), 3U);
  }
};

TEST_F(DealtReceives, AreDealtOutOnceWhenTheirPairIsDestroyed) {
  pairs_.erase(pairs_.begin());
  expect_one_more_posted();
}

TEST_F(DealtReceives, AreNotDeliveredAsWellWhenTheirPairsTimeIsOver) {
  batch_ = 0;  // busy with others
  pairs_.front()->disconnect();
  for (int i = 0; i < 3; ++i)
    loop_->turn(Duration::zero());
  batch_ = 16;
  expect_one_more_posted();
}

TEST_F(VerbsCompletionQueueTest, ReceivesOfAnSrqSurviveADriverThatDropsTheirCompletions) {
  start();
  post_receives(0, 4);
  ASSERT_TRUE(connect().ok());
  const std::uint32_t first = number();
  ASSERT_TRUE(connect().ok());
  provider_.receive_ends(first);
  provider_.receive_ends(first, IBV_WC_WR_FLUSH_ERR);
  pairs_.erase(pairs_.begin());
  EXPECT_EQ(provider_.receives.size(), 4U);
  for (int i = 0; i < 4; ++i)
    provider_.receive_ends(number());
  run_handler();
  EXPECT_EQ(received().size(), 4U);
}

// What was taken out of the queue when another pair ended, and what came behind it.
TEST_F(VerbsCompletionQueueTest, APollingLoopKeepsTheOrderOfMessages) {
  start();
  post_receives(0, 4);
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(connect().ok());
  const std::uint32_t second = number();
  loop_->set_spin(std::chrono::hours(1));
  for (int i = 0; i < 3; ++i) {
    provider_.raise_event();
    loop_->turn(Duration::zero());
  }
  ASSERT_TRUE(loop_->polls());
  provider_.receive_ends(second);
  pairs_.erase(pairs_.begin());
  provider_.receive_ends(second);
  loop_->turn(Duration::zero());
  EXPECT_EQ(received(), (Ids{0, 1}));
}

/// Of servers without SRQ, where each holds so many receives.
class RoomForQueuePairs : public VerbsCompletionQueueTest {
 protected:
  static constexpr std::uint32_t kShare = 64;

  void start_with(std::uint32_t receives, std::uint32_t completions) {
    provider_.attr.max_cqe = static_cast<int>(completions);
    VerbsOptions options;
    options.per_queue_pair_receives = true;
    start(options, receives);
  }
  bool connects() { return connect(VerbsQueuePair::Role::kServer).ok(); }
};

TEST_F(RoomForQueuePairs, IsForWhatTheyHoldAndNotForAllThereIs) {
  start_with(1000, 2 * (kSends + kShare));
  EXPECT_TRUE(connects());
  EXPECT_EQ(provider_.capacity.max_recv_wr, kShare);
  EXPECT_TRUE(connects());
  EXPECT_FALSE(connects()) << "an overrun would end all of them";
}

TEST_F(RoomForQueuePairs, IsForNoMoreThanThereIs) {
  start_with(kShare + 36, 2 * kSends + kShare + 36);
  EXPECT_TRUE(connects());
  EXPECT_TRUE(connects());
  EXPECT_FALSE(connects());
}

TEST_F(RoomForQueuePairs, ComesBack) {
  start_with(kShare + 36, 2 * kSends + kShare + 36);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(connects());
    EXPECT_TRUE(connects());
    EXPECT_FALSE(connects());
    pairs_.clear();
  }
}

class CompletionVectors : public VerbsCompletionQueueTest {
 protected:
  /// Makes a queue as another thread's loop does.
  void add_loop() {
    auto loop = std::move(EventLoop::create()).value();
    auto channel = std::move(CmChannel::create(*loop, commands_)).value();
    const SocketAddress local = std::move(SocketAddress::parse("192.0.2.1", 0)).value();
    auto device = std::move(VerbsDevice::create(*loop, *channel, &provider_.context, local, events_,
                                                commands_, options_))
                      .value();
    struct Handler final : nfsrdma::CompletionHandler {
      void on_completions() override {}
    } handler;
    EXPECT_TRUE(device->create_completion_queue(*loop, handler, 16).ok());
  }
};

TEST_F(CompletionVectors, AreTakenInTurnsByAllLoops) {
  provider_.context.num_comp_vectors = 4;
  start();
  for (int i = 0; i < 7; ++i)
    add_loop();
  ASSERT_EQ(provider_.vectors.size(), 8U);
  std::array<int, 4> queues{};
  for (int vector : provider_.vectors) {
    ASSERT_GE(vector, 0);
    ASSERT_LT(vector, 4);
    ++queues[static_cast<std::size_t>(vector)];
  }
  EXPECT_EQ(queues, (std::array{2, 2, 2, 2}));
}

TEST_F(CompletionVectors, AreTheFirstWhereThereIsNoOther) {
  provider_.context.num_comp_vectors = 0;
  start();
  add_loop();
  EXPECT_EQ(provider_.vectors, (std::vector<int>{0, 0}));
}

TEST_F(VerbsCompletionQueueTest, HasRoomForBindsWhereNoQueueGrows) {
  provider_.resizes_queues = false;
  VerbsOptions options;
  options.windows = WindowUse::kSafe;
  start(options);
  ASSERT_TRUE(device_->traits().memory_windows);
  const auto connected = connect();
  EXPECT_TRUE(connected.ok()) << connected.error().message();
}

}  // namespace
}  // namespace nfsrdma::verbs::test
