// SPDX-License-Identifier: Apache-2.0
// What a loop gives up its device for.
#include <unistd.h>

#include <cerrno>

#include "rpcrdma/verbs/device_vendor.h"
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

/// The kernel waits with the removal of such a device until its files are closed.
class RemovedDevice : public FakeRig {
 protected:
  void start_on(std::uint32_t vendor) {
    provider_.attr.vendor_id = vendor;
    start();
  }
  void let_go() {
    receives_.reset();
    queue_.reset();
    domain_.reset();
    turn();
  }
  bool files_are_open() const {
    constexpr std::uint64_t kOne = 1;
    const auto open = [&](int fd) { return ::write(fd, &kOne, sizeof kOne) == sizeof kOne; };
    EXPECT_EQ(open(provider_.context.cmd_fd), open(provider_.context.async_fd));
    return open(provider_.context.cmd_fd);
  }
};

TEST_F(RemovedDevice, IsClosedWhenNothingIsLeftOfIt) {
  start_on(kRxeVendor);
  provider_.remove();
  turn();
  EXPECT_TRUE(device_gone_);
  EXPECT_TRUE(files_are_open());
  let_go();
  EXPECT_TRUE(device_->released());
  EXPECT_FALSE(files_are_open());
  EXPECT_EQ(errno, EBADF) << "nobody else's file may be there";
}

TEST_F(RemovedDevice, IsClosedWithTheLastLoop) {
  start_on(kRxeVendor);
  const auto loop = std::move(EventLoop::create()).value();
  const auto channel = std::move(CmChannel::create(*loop, commands_)).value();
  const SocketAddress local = std::move(SocketAddress::parse("192.0.2.1", 0)).value();
  const auto other = std::move(VerbsDevice::create(*loop, *channel, &provider_.context, local,
                                                   events_, commands_, options_))
                         .value();
  provider_.remove();
  turn();
  let_go();
  EXPECT_TRUE(device_->released());
  EXPECT_TRUE(files_are_open());
  loop->turn(Duration::zero());
  EXPECT_TRUE(other->released());
  EXPECT_FALSE(files_are_open());
}

TEST_F(RemovedDevice, IsLeftToLibrdmacmWhereItIsOnlyBroken) {
  start_on(kRxeVendor);
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  events_.dispatch(event, &provider_.context);
  turn();
  let_go();
  EXPECT_TRUE(device_->released());
  EXPECT_TRUE(files_are_open());
}

TEST_F(RemovedDevice, IsLeftToLibrdmacmWhereTheKernelDoesNotWait) {
  start();
  provider_.remove();
  turn();
  let_go();
  EXPECT_TRUE(device_->released());
  EXPECT_TRUE(files_are_open());
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
