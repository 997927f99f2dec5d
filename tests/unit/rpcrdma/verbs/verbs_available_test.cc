// SPDX-License-Identifier: Apache-2.0
// A host without RDMA devices must be told so in words, by everything that would need one.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <string>

#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma::verbs {
namespace {

bool host_has_device() {
  int count = 0;
  ibv_device** list = ::ibv_get_device_list(&count);
  if (list != nullptr) ::ibv_free_device_list(list);
  return count > 0;
}

struct NoIncoming final : IncomingHandler {
  void on_incoming(std::unique_ptr<Incoming>) override { FAIL(); }
};

struct NoConnection final : ConnectHandler {
  Result<QueuePairOptions> on_device(Device&) override { return Error{Errc::kClosed}; }
  void on_connected(std::unique_ptr<QueuePair>, ByteSpan) override { FAIL(); }
  void on_connect_failed(Error, const std::string&) override { FAIL(); }
};

class VerbsAvailable : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(EventLoop::create()).value();
    fabric_ = make_fabric({});
  }
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Fabric> fabric_;
};

TEST_F(VerbsAvailable, AgreesWithTheDeviceList) {
  auto available = fabric_->available();
  EXPECT_EQ(available.ok(), host_has_device());
}

TEST_F(VerbsAvailable, SaysThatThereIsNoDevice) {
  if (host_has_device()) GTEST_SKIP() << "this host has a device";
  auto available = fabric_->available();
  ASSERT_FALSE(available.ok());
  EXPECT_EQ(available.error().code, Errc::kUnsupported);
  EXPECT_NE(available.error().message().find("no RDMA device"), std::string::npos)
      << available.error().message();
}

TEST_F(VerbsAvailable, ListenWithoutDeviceIsUnsupported) {
  if (host_has_device()) GTEST_SKIP() << "this host has a device";
  NoIncoming handler;
  auto listener = fabric_->listen(*loop_, SocketAddress::any_v4(0), handler);
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().code, Errc::kUnsupported);
}

TEST_F(VerbsAvailable, ConnectWithoutDeviceIsUnsupported) {
  if (host_has_device()) GTEST_SKIP() << "this host has a device";
  NoConnection handler;
  auto connector =
      fabric_->connect(*loop_, std::move(SocketAddress::parse("192.0.2.1", 1)).value(), handler);
  ASSERT_FALSE(connector.ok());
  EXPECT_EQ(connector.error().code, Errc::kUnsupported);
}

TEST_F(VerbsAvailable, ForgettingAnUnknownLoopDoesNothing) {
  fabric_->forget(*loop_);
  EXPECT_FALSE(loop_->turn(Duration::zero()));
}

}  // namespace
}  // namespace nfsrdma::verbs
