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

}  // namespace
}  // namespace nfsrdma::verbs::test
