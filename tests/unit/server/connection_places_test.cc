// SPDX-License-Identifier: Apache-2.0
// A whole server with as many connections as it may have, all of them silent.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/nfs_server.h"
#include "tests/support/loop_owner.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/temporary_directory.h"

namespace nfsrdma {
namespace {

class ConnectionPlaces : public testing::Test, protected test::LoopOwner {
 protected:
  static constexpr std::size_t kPlaces = 4;

  ConnectionPlaces() {
    // Of a socket that is gone again: somebody may take it, so there are some attempts.
    for (int attempt = 0; attempt < 10 && server_ == nullptr; ++attempt) {
      test::listen_on_loopback(&address_);
      NfsServer::Options options;
      options.config.state_dir = directory_.path();
      options.config.shards = 2;
      options.config.tcp_port = address_.port();
      options.config.max_connections = kPlaces;
      options.config.nfs4 = false;
      options.config.nlm = false;
      options.listen.push_back(address_);
      auto server = NfsServer::start(*loop_, std::move(options), &why_);
      if (server.ok()) server_ = std::move(*server);
    }
  }
  void SetUp() override { ASSERT_NE(server_, nullptr) << why_; }

  std::size_t connections() {
    std::size_t count = 0;
    bool told = false;
    server_->collect(0, [&](const StatusInputs& inputs) {
      for (const ShardReport& report : *inputs.shards)
        count += report.connections.size();
      told = true;
    });
    EXPECT_TRUE(turn_until([&] { return told; }));
    return count;
  }
  UniqueFd dial() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), address_.data(), address_.length()), 0);
    return fd;
  }
  /// Did the server send something (an answer)?
  bool is_answered(const UniqueFd& fd) {
    // NULL of NFSv3, with AUTH_NONE twice.
    const std::uint32_t words[] = {0x80000028, 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0};
    std::byte call[sizeof words];
    for (std::size_t i = 0; i < std::size(words); ++i)
      store_be32(call + 4 * i, words[i]);
    EXPECT_EQ(::send(fd.get(), call, sizeof call, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof call));
    std::byte reply[64];
    ssize_t n = -1;
    turn_until([&] {
      n = ::recv(fd.get(), reply, sizeof reply, MSG_DONTWAIT);
      return n >= 0 || errno != EAGAIN;
    });
    return n > 0;
  }

  test::TemporaryDirectory directory_;
  std::string why_;
  SocketAddress address_;
  std::unique_ptr<NfsServer> server_;
};

TEST_F(ConnectionPlaces, ASilentConnectionMakesRoomForAnother) {
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < kPlaces; ++i)
    silent.push_back(dial());
  ASSERT_TRUE(turn_until([this] { return connections() == kPlaces; }));
  const UniqueFd fd = dial();
  EXPECT_TRUE(is_answered(fd));
  EXPECT_TRUE(turn_until([this] { return connections() == kPlaces; }));
  std::size_t ended = 0;
  for (const UniqueFd& one : silent) {
    std::byte byte;
    ended += ::recv(one.get(), &byte, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
  }
  EXPECT_EQ(ended, 1u);
}

}  // namespace
}  // namespace nfsrdma
