// SPDX-License-Identifier: Apache-2.0
// Who holds how many receives.
#include "tests/unit/rpcrdma/verbs/fake_rig.h"

namespace nfsrdma::verbs::test {
namespace {

using Role = VerbsQueuePair::Role;

class ReceiveQueueTest : public FakeRig {
 protected:
  static constexpr std::uint32_t kMany = 100;

  void start_without_srq() {
    VerbsOptions options;
    options.per_queue_pair_receives = true;
    start(options, kMany);
  }
  std::size_t held() const { return provider_.receives.size(); }
};

TEST_F(ReceiveQueueTest, AClientHasAllOfThemPosted) {
  start_without_srq();
  ASSERT_TRUE(connect(Role::kClient).ok());
  EXPECT_EQ(provider_.capacity.max_recv_wr, kMany);
  post_receives(0, kMany);
  EXPECT_EQ(held(), kMany) << "there may be an answer for each at once";
}

TEST_F(ReceiveQueueTest, AServersQueuePairLeavesSomeToOthers) {
  start_without_srq();
  ASSERT_TRUE(connect(Role::kServer).ok());
  post_receives(0, kMany);
  EXPECT_EQ(held(), provider_.capacity.max_recv_wr);
  EXPECT_LT(held(), kMany);
  ASSERT_TRUE(connect(Role::kServer).ok());
  EXPECT_EQ(held(), kMany);
}

TEST_F(ReceiveQueueTest, NobodyHoldsMoreThanTheDeviceTakes) {
  provider_.attr.max_qp_wr = 32;
  start_without_srq();
  ASSERT_TRUE(connect(Role::kClient).ok());
  EXPECT_EQ(provider_.capacity.max_recv_wr, 32U);
  post_receives(0, kMany);
  EXPECT_EQ(held(), 32U);
}

/// What devices that promise shared receive queues make of them.
class PromisedSrq : public FakeRig {
 protected:
  void start_with(std::uint32_t most, int err, std::uint32_t wanted) {
    provider_.attr.max_srq_wr = 65536;
    provider_.srq_answer = [=](std::uint32_t depth) { return depth <= most ? 0 : err; };
    start({}, wanted);
  }
  bool shared() const { return static_cast<ReceiveQueue&>(*receives_).srq() != nullptr; }
  static constexpr std::uint32_t kServers = 32768;
  static constexpr std::uint32_t kClients = 132;
};

TEST_F(PromisedSrq, IsAsDeepAsTheDeviceCan) {
  start_with(5000, ENOMEM, kServers);
  EXPECT_TRUE(shared());
  EXPECT_EQ(receives_->depth(), 4096U);
}

TEST_F(PromisedSrq, IsDoneWithoutWhenItIsNotKept) {
  start_with(0, EOPNOTSUPP, kServers);
  EXPECT_FALSE(shared());
  EXPECT_EQ(receives_->depth(), kServers);
  ASSERT_TRUE(connect(Role::kServer).ok());
  post_receives(0, 100);
  EXPECT_EQ(provider_.receives.size(), provider_.capacity.max_recv_wr);
  EXPECT_EQ(provider_.receives.front().queue_pair, number());
}

TEST_F(PromisedSrq, IsDoneWithoutWhereQueuePairsHoldMore) {
  start_with(64, ENOMEM, kClients);
  EXPECT_FALSE(shared());
  EXPECT_EQ(receives_->depth(), kClients);
  ASSERT_TRUE(connect(Role::kClient).ok());
  EXPECT_EQ(provider_.capacity.max_recv_wr, kClients);
}

TEST_F(PromisedSrq, IsNotGivenUpForADeviceThatIsBroken) {
  start();
  provider_.srq_answer = [](std::uint32_t) { return EIO; };
  EXPECT_FALSE(device_->create_shared_receive_queue(*domain_, kServers).ok());
  EXPECT_TRUE(device_->traits().shared_receive_queue);
}

}  // namespace
}  // namespace nfsrdma::verbs::test
