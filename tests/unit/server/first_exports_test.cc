// SPDX-License-Identifier: Apache-2.0
// A whole server before its first exports are there: what comes by UDP waits for them.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>

#include "config/exports_file.h"
#include "server/mount/mount_program.h"
#include "server/nfs_server.h"
#include "tests/support/loop_owner.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/temporary_directory.h"
#include "xdr/mount3.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

class FirstExports : public testing::Test, protected test::LoopOwner {
 protected:
  FirstExports() {
    // Of a socket that is gone again: somebody may take it, so there are some attempts.
    for (int attempt = 0; attempt < 10 && !listens_by_udp(); ++attempt) {
      server_.reset();
      test::listen_on_loopback(&address_);
      NfsServer::Options options;
      options.config.state_dir = directory_.path();
      options.config.shards = 1;
      options.config.tcp_port = address_.port();
      options.config.nfs4 = false;
      options.config.nlm = false;
      options.programs.push_back(mount3_program());
      options.listen.push_back(address_);
      auto server = NfsServer::start(*loop_, std::move(options), &why_);
      if (server.ok()) server_ = std::move(*server);
    }
  }
  void SetUp() override { ASSERT_TRUE(listens_by_udp()) << why_; }

  bool listens_by_udp() const {
    return server_ != nullptr &&
           std::ranges::any_of(server_->listeners(), [](const NfsServer::ListenerInfo& info) {
             return info.transport == "udp";
           });
  }
  /// The shard has come round.
  void have_a_turn() {
    bool told = false;
    server_->collect(0, [&](const StatusInputs&) { told = true; });
    EXPECT_TRUE(turn_until([&] { return told; }));
  }

  test::TemporaryDirectory directory_, exported_;
  std::string why_;
  SocketAddress address_;
  std::unique_ptr<NfsServer> server_;
};

/// At the limit of processes of a service or a container the server serves on.
TEST_F(FirstExports, AReleaseNeedsNoFurtherThread) {
  std::string told;
  {
    const test::NoMoreThreads limit;
    ASSERT_TRUE(test::NoMoreThreads::hold());
    server_->release("/nonexistent/file", [&](std::string json) { told = std::move(json); });
    EXPECT_TRUE(turn_until([&] { return !told.empty(); }));
  }
  EXPECT_NE(told.find("error"), std::string::npos) << told;
}

TEST_F(FirstExports, AMountByUdpWaitsForThem) {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(fd.get(), address_.data(), address_.length()), 0);
  std::byte message[1024];
  xdr::Encoder encoder{MutableByteSpan(message)};
  xdr::rpc_msg call;
  call.xid = 7;
  call.cbody.prog = xdr::kMountProgram;
  call.cbody.vers = xdr::kMountV3;
  call.cbody.proc = static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_MNT);
  xdr::encode(encoder, call);
  encoder.string(exported_.path());
  ASSERT_EQ(::send(fd.get(), message, encoder.size(), 0), static_cast<ssize_t>(encoder.size()));
  have_a_turn();
  have_a_turn();
  std::byte reply[1024];
  EXPECT_EQ(::recv(fd.get(), reply, sizeof reply, MSG_DONTWAIT), -1) << "there are none yet";

  ParsedExports parsed = parse_exports(exported_.path() + " *(insecure)\n", "exports");
  ConfigProblems problems;
  server_->set_exports(parsed.entries, &problems);
  ASSERT_TRUE(problems.empty()) << problems.front().text();
  ssize_t n = -1;
  ASSERT_TRUE(turn_until([&] {
    n = ::recv(fd.get(), reply, sizeof reply, MSG_DONTWAIT);
    return n > 0;
  }));
  xdr::Decoder decoder{ByteSpan(reply, static_cast<std::size_t>(n))};
  xdr::rpc_msg answer;
  ASSERT_TRUE(xdr::decode(decoder, answer));
  EXPECT_EQ(answer.rbody.areply.stat, xdr::accept_stat::SUCCESS);
  EXPECT_EQ(decoder.u32(), static_cast<std::uint32_t>(xdr::mountstat3::MNT3_OK));
}

}  // namespace
}  // namespace nfsrdma
