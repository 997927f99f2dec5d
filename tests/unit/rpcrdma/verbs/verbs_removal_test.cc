// SPDX-License-Identifier: Apache-2.0
// The only device under a server and its client is deleted and made again
// (tests/interop/lab_verbs.sh says on which one: NFSRDMA_VERBS_REMOVE="DEVICE TYPE NETDEV", with
// NFSRDMA_VERBS_ADDR its address).
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "rpcrdma/rdma_server.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/verbs/verbs_fabric.h"
#include "tests/support/toy_rpc.h"

extern char** environ;

namespace nfsrdma::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 40s;

/// Parameter: where the server listens; the client always connects to the device's address.
class VerbsRemoval : public ::testing::TestWithParam<const char*>, private IncomingHandler {
 protected:
  void SetUp() override {
    const char* address = std::getenv("NFSRDMA_VERBS_ADDR");
    const char* device = std::getenv("NFSRDMA_VERBS_REMOVE");
    if (address == nullptr || device == nullptr) GTEST_SKIP() << "no device to remove";
    std::istringstream(device) >> device_ >> type_ >> network_;
    address_ = std::move(SocketAddress::parse(address, 20049)).value();
    const std::string where = GetParam();
    auto listening = fabric_->listen(
        *loop_,
        where.empty() ? address_ : std::move(SocketAddress::parse(where, address_.port())).value(),
        *this);
    ASSERT_TRUE(listening.ok()) << listening.error().message();
    listener_ = std::move(listening).value();
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    listener_.reset();
    fabric_->forget(*loop_);
  }

  bool turn_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (done()) return true;
      loop_->turn(100ms);
    }
    return false;
  }
  static pid_t rdma_link(std::vector<std::string> words) {
    words.insert(words.begin(), {"rdma", "link"});
    std::vector<char*> raw;
    for (std::string& word : words)
      raw.push_back(word.data());
    raw.push_back(nullptr);
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawnp(&pid, "rdma", nullptr, nullptr, raw.data(), environ), 0);
    return pid;
  }
  bool succeeds(pid_t pid) {
    int status = -1;
    return turn_until([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }) && status == 0;
  }
  bool connects() {
    log_ = std::make_unique<TransportLog>();
    client_ = make_rdma_transport(*loop_, *fabric_, address_, {}, *log_);
    turn_until([&] { return log_->ready + log_->closed > 0; });
    return log_->ready == 1;
  }
  bool reads() {
    ToyCall call(++xid_, kToyRead, 9000, 5);
    client_->submit(call);
    return turn_until([&] { return call.completions > 0; }) && call.good;
  }
  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    server_->accept(std::move(incoming));
  }

  std::string device_, type_, network_;
  SocketAddress address_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::unique_ptr<Fabric> fabric_ = verbs::make_fabric({});
  BufferPool pool_{*loop_, 64U << 20};
  ToyHandler handler_;
  std::unique_ptr<RdmaServer> server_ = std::make_unique<RdmaServer>(*loop_, pool_, handler_);
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<TransportLog> log_;
  std::unique_ptr<ClientTransport> client_;
  std::uint32_t xid_ = 0;
};

TEST_P(VerbsRemoval, TheDeviceComesBackUnderServerAndClient) {
  ASSERT_TRUE(connects());
  ASSERT_TRUE(reads());
  const pid_t deleting = rdma_link({"delete", device_});
  ASSERT_TRUE(turn_until([&] { return log_->closed == 1; })) << "the client must hear of it";
  EXPECT_TRUE(turn_until([&] { return server_->connection_count() == 0; }));
  client_.reset();
  ASSERT_TRUE(succeeds(deleting)) << "the kernel waits until everybody has let go of the device";
  ASSERT_TRUE(succeeds(rdma_link({"add", device_, "type", type_, "netdev", network_})));
  EXPECT_TRUE(turn_until([&] { return connects(); })) << "the server must listen again";
  EXPECT_TRUE(reads());
}
INSTANTIATE_TEST_SUITE_P(ListeningOn, VerbsRemoval, ::testing::Values("", "0.0.0.0"),
                         [](const auto& one) {
                           return *one.param == '\0' ? "ItsAddress" : "AllAddresses";
                         });

}  // namespace
}  // namespace nfsrdma::test
