// SPDX-License-Identifier: Apache-2.0
// What a device is taken to be unable to do because it refused it.
#include "tests/unit/rpcrdma/verbs/fake_rig.h"

namespace nfsrdma::verbs::test {
namespace {

class RefusedWork : public FakeRig {
 protected:
  void SetUp() override {
    VerbsOptions options;
    options.windows = WindowUse::kSafe;
    start(options);
    auto connected = connect();
    ASSERT_TRUE(connected.ok());
    pair_ = *connected;
  }
  void refuse(ibv_wr_opcode opcode, int err) {
    provider_.answer = [=](const ibv_send_wr& request) {
      return request.opcode == opcode ? err : 0;
    };
  }
  void refuse_all(int err) {
    provider_.answer = [err](const ibv_send_wr&) { return err; };
  }
  Result<void> send_with_bind() {
    NFSRDMA_TRY(exposed_, domain_->register_memory(memory_, Access::kRemoteWrite, pair_));
    return send(*pair_);
  }
  void TearDown() override {
    provider_.answer = [](const ibv_send_wr&) { return 0; };
    exposed_.reset();
  }
  VerbsQueuePair* pair_ = nullptr;
  MemoryRegion exposed_;
};

TEST_F(RefusedWork, SendWithInvalidateIsGivenUpForWhatWorks) {
  refuse(IBV_WR_SEND_WITH_INV, EOPNOTSUPP);
  ASSERT_TRUE(send(*pair_, WorkOpcode::kSendWithInvalidate).ok());
  ASSERT_EQ(provider_.sent.size(), 1U);
  EXPECT_EQ(provider_.sent[0].opcode, IBV_WR_SEND);
  EXPECT_FALSE(device_->info().send_with_invalidate);
}

TEST_F(RefusedWork, SendWithInvalidateIsKeptWhenNothingWorks) {
  refuse_all(EINVAL);
  EXPECT_FALSE(send(*pair_, WorkOpcode::kSendWithInvalidate).ok());
  EXPECT_TRUE(device_->info().send_with_invalidate);
}

TEST_F(RefusedWork, WindowsAreGivenUpWhenAWholeQueuePairRefusesThem) {
  refuse(IBV_WR_BIND_MW, EOPNOTSUPP);
  EXPECT_FALSE(send_with_bind().ok());
  EXPECT_FALSE(device_->traits().memory_windows);
}

TEST_F(RefusedWork, WindowsAreKeptWhenTheQueuePairIsBroken) {
  provider_.healthy = false;
  refuse_all(EINVAL);
  EXPECT_FALSE(send_with_bind().ok());
  EXPECT_TRUE(device_->traits().memory_windows);
}

TEST_F(RefusedWork, WindowsAreKeptWhenThereWasNoRoom) {
  refuse_all(ENOMEM);
  EXPECT_FALSE(send_with_bind().ok());
  EXPECT_TRUE(device_->traits().memory_windows);
}

}  // namespace
}  // namespace nfsrdma::verbs::test
