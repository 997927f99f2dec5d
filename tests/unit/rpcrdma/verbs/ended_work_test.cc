// SPDX-License-Identifier: Apache-2.0
// What is told of work that did not succeed.
#include <chrono>
#include <utility>

#include "tests/unit/rpcrdma/verbs/fake_rig.h"

namespace nfsrdma::verbs::test {
namespace {

class EndedWork : public FakeRig {
 protected:
  /// Of a Read that ends with `status`, and of one behind it that the adapter flushes then.
  std::pair<WorkStatus, WorkStatus> ends(ibv_wc_status status) {
    start();
    auto pair = connect(VerbsQueuePair::Role::kServer);
    EXPECT_TRUE(pair.ok());
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(send(**pair, WorkOpcode::kRead).ok());
    for (const FakeProvider::Posted& posted : provider_.sent) {
      ibv_wc wc{};
      wc.wr_id = posted.wr_id;
      wc.status = provider_.completions.empty() ? status : IBV_WC_WR_FLUSH_ERR;
      wc.qp_num = number();
      provider_.completions.push_back(wc);
    }
    provider_.raise_event();
    turn();
    EXPECT_EQ(disconnected_, 1);
    EXPECT_EQ(done_.size(), 2U);
    if (done_.size() != 2) return {};
    return {done_[0].status, done_[1].status};
  }
  static constexpr std::pair kOwnFault{WorkStatus::kFailed, WorkStatus::kFlushed};
  static constexpr std::pair kNoFault{WorkStatus::kFlushed, WorkStatus::kFlushed};
};

TEST_F(EndedWork, IsTheCallsFaultWhenThePeerLetsNobodyReadThere) {
  EXPECT_EQ(ends(IBV_WC_REM_ACCESS_ERR), kOwnFault);
}

TEST_F(EndedWork, IsTheCallsFaultWhenThePeerRefusesTheRequest) {
  EXPECT_EQ(ends(IBV_WC_REM_INV_REQ_ERR), kOwnFault);
}

TEST_F(EndedWork, IsNobodysFaultWhenThePeerIsOutOfReach) {
  EXPECT_EQ(ends(IBV_WC_RETRY_EXC_ERR), kNoFault);
}

TEST_F(EndedWork, IsNobodysFaultWhenTheAdapterFails) {
  EXPECT_EQ(ends(IBV_WC_FATAL_ERR), kNoFault);
}

class LastReceive : public FakeRig {
 protected:
  void SetUp() override {
    start();
    post_receives(1, 4);
    auto pair = connect(VerbsQueuePair::Role::kServer);
    ASSERT_TRUE(pair.ok());
    pair_ = *pair;
    provider_.tells_of_last_receive = false;
  }
  VerbsQueuePair* pair_ = nullptr;
};

TEST_F(LastReceive, IsWaitedForAndGoesBackToTheSrq) {
  ibv_qp* queue_pair = provider_.ids.back()->qp;
  pair_->disconnect();
  turn();
  EXPECT_EQ(disconnected_, 0);
  provider_.receive_ends(number(), IBV_WC_WR_FLUSH_ERR);
  provider_.last_receive_ended(queue_pair);
  turn();
  EXPECT_EQ(disconnected_, 1);
  pairs_.clear();
  EXPECT_EQ(provider_.receives.size(), 4U);
}

TEST_F(LastReceive, IsNotWaitedForForEver) {
  pair_->disconnect();
  turn();
  EXPECT_EQ(disconnected_, 0);
  while (disconnected_ == 0)
    loop_->turn(std::chrono::seconds(1));
}

TEST_F(LastReceive, OfAQueuePairThatGoesOnIsNoEnd) {
  provider_.last_receive_ended(provider_.ids.back()->qp);
  turn();
  EXPECT_EQ(disconnected_, 0);
  pair_->disconnect();
  turn();
  EXPECT_EQ(disconnected_, 1);
}

}  // namespace
}  // namespace nfsrdma::verbs::test
