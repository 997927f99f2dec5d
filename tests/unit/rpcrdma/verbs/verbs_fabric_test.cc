// SPDX-License-Identifier: Apache-2.0
// How long the fabric keeps what it has for a loop.
#include "rpcrdma/verbs/verbs_fabric.h"

#include <gtest/gtest.h>

#include "tests/unit/rpcrdma/verbs/fake_provider.h"

namespace nfsrdma::verbs::test {
namespace {

struct NoConnection final : ConnectHandler {
  Result<QueuePairOptions> on_device(Device&) override { return Error{Errc::kClosed}; }
  void on_connected(std::unique_ptr<QueuePair>, ByteSpan) override { FAIL(); }
  void on_connect_failed(Error, const std::string&) override { FAIL(); }
};

// Nobody forgets the loops of clients. An event channel that was left would be in the epoll set of
// a loop that is gone, and another loop may come to its address.
TEST(VerbsFabricLoops, KeepsNothingOfALoopThatEnds) {
  FakeProvider provider;
  const std::unique_ptr<Fabric> fabric = make_fabric({});
  NoConnection handler;
  for (int i = 0; i < 2; ++i) {
    auto loop = std::move(EventLoop::create()).value();
    auto connector = fabric->connect(
        *loop, std::move(SocketAddress::parse("192.0.2.1", 20049)).value(), handler);
    ASSERT_TRUE(connector.ok()) << connector.error().message();
    EXPECT_EQ(provider.channels, 1);
    connector->reset();
    loop.reset();
    EXPECT_EQ(provider.channels, 0);
  }
}

}  // namespace
}  // namespace nfsrdma::verbs::test
