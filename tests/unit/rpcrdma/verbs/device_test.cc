// SPDX-License-Identifier: Apache-2.0
// What a loop gives up its device for.
#include "tests/unit/rpcrdma/verbs/fake_rig.h"

namespace nfsrdma::verbs::test {
namespace {

class VerbsDeviceTest : public FakeRig {
 protected:
  void dispatch(ibv_event_type type) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.cq = broken_queue_;
    if (type == IBV_EVENT_SRQ_ERR) event.element.srq = broken_receives_;
    events_.dispatch(event, &provider_.context);
    turn();
  }
  ibv_cq other_queue_{};
  ibv_srq other_receives_{};
  ibv_cq* broken_queue_ = &other_queue_;
  ibv_srq* broken_receives_ = &other_receives_;
};

TEST_F(VerbsDeviceTest, GoesOnWhenQueuesOfAnotherLoopBreak) {
  start();
  dispatch(IBV_EVENT_CQ_ERR);
  dispatch(IBV_EVENT_SRQ_ERR);
  EXPECT_FALSE(device_->gone());
  EXPECT_FALSE(device_gone_);
}

TEST_F(VerbsDeviceTest, IsGivenUpWithItsCompletionQueue) {
  start();
  broken_queue_ = static_cast<VerbsCompletionQueue&>(*queue_).get();
  dispatch(IBV_EVENT_CQ_ERR);
  EXPECT_TRUE(device_->gone());
  EXPECT_TRUE(device_gone_);
}

TEST_F(VerbsDeviceTest, IsGivenUpWithItsReceiveQueue) {
  start();
  broken_receives_ = static_cast<ReceiveQueue&>(*receives_).srq();
  dispatch(IBV_EVENT_SRQ_ERR);
  EXPECT_TRUE(device_gone_);
}

TEST_F(VerbsDeviceTest, IsGivenUpWhenItIsBroken) {
  start();
  dispatch(IBV_EVENT_DEVICE_FATAL);
  EXPECT_TRUE(device_gone_);
}

/// Commands fail before the event comes, which may be a while later or never.
class BrokenDevice : public FakeRig {
 protected:
  void start_with(WindowUse windows) {
    VerbsOptions options;
    options.windows = windows;
    start(options);
    auto connected = connect();
    ASSERT_TRUE(connected.ok());
    pair_ = *connected;
  }
  Errc exposing_fails_with() {
    auto exposed = domain_->register_memory(memory_, Access::kRemoteWrite, pair_);
    EXPECT_FALSE(exposed.ok());
    turn();
    return exposed.ok() ? Errc::kInvalid : exposed.error().code;
  }
  VerbsQueuePair* pair_ = nullptr;
};

TEST_F(BrokenDevice, ShowsInARegistrationAndEndsTheConnection) {
  start_with(WindowUse::kNever);
  provider_.refuses_regions = EIO;
  EXPECT_EQ(exposing_fails_with(), Errc::kClosed);
  EXPECT_EQ(disconnected_, 1);
}

TEST_F(BrokenDevice, ShowsInAWindowAndEndsTheConnection) {
  start_with(WindowUse::kSafe);
  provider_.refuses_windows = ENODEV;
  EXPECT_EQ(exposing_fails_with(), Errc::kClosed);
  EXPECT_EQ(disconnected_, 1);
}

TEST_F(BrokenDevice, ShowsInWhatAWindowIsBoundOnAndEndsTheConnection) {
  start_with(WindowUse::kSafe);
  provider_.refuses_regions = ENXIO;
  EXPECT_EQ(exposing_fails_with(), Errc::kClosed);
  EXPECT_EQ(disconnected_, 1);
}

TEST_F(BrokenDevice, IsNotOneThatHasNoRoom) {
  start_with(WindowUse::kSafe);
  provider_.refuses_windows = ENOMEM;
  EXPECT_EQ(exposing_fails_with(), Errc::kExhausted);
  provider_.refuses_windows = 0;
  provider_.refuses_regions = EFAULT;
  EXPECT_EQ(exposing_fails_with(), Errc::kSystem);
  EXPECT_EQ(disconnected_, 0);
}

}  // namespace
}  // namespace nfsrdma::verbs::test
