// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/udp_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/support/xdr_bytes.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

using nfsrdma::testing::words;

constexpr std::uint32_t kServed = 100021, kRefused = 100003;

/// Answers with the procedure's number, or when answer_held() is called.
class Echo final : public CallHandler {
 public:
  void on_connection_opened(ServerConnection&) override { FAIL() << "datagrams have none"; }
  void on_connection_closed(ServerConnection&) override { FAIL(); }
  void on_call(Call& call) override {
    ++calls;
    peers.push_back(call.connection().peer().host_text());
    locals.push_back(call.connection().local().host_text());
    EXPECT_EQ(call.connection().id, 0u) << "what is remembered of one peer would be of all";
    if (hold) {
      held.push_back(&call);
    } else {
      answer(call);
    }
  }
  void answer(Call& call) {
    ASSERT_TRUE(call.reserve_reply(65536));
    xdr::Encoder out(call.reply_room());
    xdr::encode(out, xdr::accepted(call.xid(), xdr::accept_stat::SUCCESS));
    out.u32(load_be32(call.message().data() + 20));
    while (fills && out.room() >= 4)
      out.u32(0);
    call.reply(out, Buffer());
  }
  void answer_held() {
    for (Call* call : std::exchange(held, {}))
      answer(*call);
  }
  bool hold = false;
  bool fills = false;  // the reply, with as much as there is room for
  std::size_t calls = 0;
  std::vector<std::string> peers, locals;
  std::vector<Call*> held;
};

class UdpServerTest : public ::testing::Test {
 protected:
  UdpServerTest() {
    auto socket = bind_udp(SocketAddress::any_v4(0));
    EXPECT_TRUE(socket.ok());
    port_ = SocketAddress::local_of(socket->get()).value().port();
    server_->adopt(std::move(socket).value());
  }
  ~UdpServerTest() override {
    handler_.answer_held();
    server_.reset();
  }

  /// A socket that sends to `server` and takes answers from there alone.
  UniqueFd client_of(const char* server) {
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    SocketAddress to = SocketAddress::parse(server, port_).value();
    EXPECT_EQ(::connect(fd.get(), to.data(), to.length()), 0);
    return fd;
  }
  static void send(int fd, ByteSpan bytes) {
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
  }
  static std::vector<std::byte> call(std::uint32_t xid, std::uint32_t program,
                                     std::uint32_t procedure) {
    return words({xid, 0, 2, program, 4, procedure, 0, 0, 0, 0});
  }
  /// The next datagram, while the server runs; empty when none comes for `patience`.
  std::vector<std::byte> receive(int fd, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::vector<std::byte> bytes(65536);
    while (std::chrono::steady_clock::now() < end) {
      loop_->turn(std::chrono::milliseconds(5));
      const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (n < 0) continue;
      bytes.resize(static_cast<std::size_t>(n));
      return bytes;
    }
    return {};
  }
  std::vector<std::byte> receive(int fd) { return receive(fd, std::chrono::seconds(10)); }

  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  BufferPool pool_{*loop_, std::size_t{16} << 20};
  Echo handler_;
  std::unique_ptr<UdpServer> server_ =
      std::make_unique<UdpServer>(*loop_, pool_, handler_, std::vector<std::uint32_t>{kRefused});
  std::uint16_t port_ = 0;
};

TEST_F(UdpServerTest, ACallIsADatagramAndSoIsItsReply) {
  const UniqueFd fd = client_of("127.0.0.1");
  send(fd.get(), call(7, kServed, 3));
  EXPECT_EQ(receive(fd.get()), words({7, 1, 0, 0, 0, 0, 3}));
  EXPECT_EQ(handler_.peers.at(0), "127.0.0.1");
}

TEST_F(UdpServerTest, TheReplyComesFromWhereTheCallWentTo) {
  // A connected socket takes nothing from elsewhere.
  const UniqueFd fd = client_of("127.0.0.9");
  send(fd.get(), call(7, kServed, 3));
  EXPECT_EQ(receive(fd.get()).size(), 28u);
  EXPECT_EQ(handler_.locals.at(0), "127.0.0.9");
}

TEST_F(UdpServerTest, ProgramsThatAreNotToBeHadHereAreRefused) {
  const UniqueFd fd = client_of("127.0.0.1");
  send(fd.get(), call(7, kRefused, 1));
  EXPECT_EQ(receive(fd.get()), words({7, 1, 0, 0, 0, 1}));  // PROG_UNAVAIL
  EXPECT_EQ(handler_.calls, 0u);
}

TEST_F(UdpServerTest, StumpsAndWhatIsTooLongAreDropped) {
  const UniqueFd fd = client_of("127.0.0.1");
  send(fd.get(), words({7, 0, 2}));
  std::vector<std::byte> longest = call(8, kServed, 3);
  longest.resize(UdpServer::kMaxRequest + 1);
  send(fd.get(), longest);
  send(fd.get(), call(9, kServed, 3));
  EXPECT_EQ(load_be32(receive(fd.get()).data()), 9u);
  EXPECT_EQ(handler_.calls, 1u);
}

TEST_F(UdpServerTest, MoreCallsThanMayBeInProgressAreDropped) {
  const UniqueFd fd = client_of("127.0.0.1");
  handler_.hold = true;
  for (std::uint32_t i = 0; i < UdpServer::kMaxCalls + 5; ++i) {
    send(fd.get(), call(i, kServed, 3));
    loop_->turn(std::chrono::milliseconds(1));
  }
  while (loop_->turn(std::chrono::milliseconds(50))) {
  }
  EXPECT_EQ(handler_.calls, UdpServer::kMaxCalls);
  EXPECT_EQ(server_->calls_in_progress(), UdpServer::kMaxCalls);
  handler_.answer_held();
  EXPECT_EQ(server_->calls_in_progress(), 0u);
  handler_.hold = false;
  send(fd.get(), call(999, kServed, 3));
  std::vector<std::byte> reply;
  do {
    reply = receive(fd.get());
    ASSERT_FALSE(reply.empty());
  } while (load_be32(reply.data()) != 999);
}

TEST_F(UdpServerTest, LittleIsSentToWhoeverMayNotHaveAsked) {
  const UniqueFd fd = client_of("127.0.0.1");
  handler_.fills = true;
  send(fd.get(), call(7, kServed, 3));
  EXPECT_EQ(receive(fd.get()).size(), UdpServer::kMaxReply);
}

TEST_F(UdpServerTest, ShutdownWaitsForTheLastCall) {
  const UniqueFd fd = client_of("127.0.0.1");
  handler_.hold = true;
  send(fd.get(), call(7, kServed, 3));
  while (handler_.calls == 0)
    loop_->turn(std::chrono::milliseconds(5));
  bool done = false;
  server_->shutdown([&] { done = true; });
  loop_->turn(std::chrono::milliseconds(5));
  EXPECT_FALSE(done);
  send(fd.get(), call(8, kServed, 3));
  handler_.answer_held();
  loop_->turn(std::chrono::milliseconds(5));
  EXPECT_TRUE(done);
  EXPECT_EQ(handler_.calls, 1u) << "no more are taken";
}

}  // namespace
}  // namespace nfsrdma
