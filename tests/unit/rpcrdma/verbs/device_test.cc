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

}  // namespace
}  // namespace nfsrdma::verbs::test
