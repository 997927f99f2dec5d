// SPDX-License-Identifier: Apache-2.0
// Our passive side against bytes on a socket.
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <thread>

#include "rpcrdma/iwarp/tcp_driver.h"
#include "tests/unit/rpcrdma/iwarp/raw_peer.h"
#include "tests/unit/rpcrdma/iwarp/vectors.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr char kSendHelloNoCrc[] =
    "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 00000000";

class ResponderSocket : public RawPeerTest {
 protected:
  /// Connected as the Linux client, without CRC.
  UniqueFd linux_client() {
    listen();
    ours_.private_data = from_hex("f6ab0e18 01010303");
    ours_.outbound_reads = 32;
    return dial_and_ask(kLinuxRequest, &reply_, 32);
  }
  std::string reply_;
};

TEST_F(ResponderSocket, LinuxClientGetsTheByteExactReply) {
  start();
  UniqueFd fd = linux_client();
  EXPECT_EQ(reply_, "4d504120 49442052 65702046 72616d65 1002000c 00000020 f6ab0e18 01010303");
  EXPECT_EQ(request_data_, "f6ab0e18 01010303");
  EXPECT_EQ(peer_reads_, 128u);
}

TEST_F(ResponderSocket, IsSilentUntilTheFirstFpdu) {
  start();
  UniqueFd fd = linux_client();
  ASSERT_TRUE(ours_.send(1, ours_.text("early")).ok());
  EXPECT_TRUE(hears_nothing(fd));
  ours_.post_receives(1);
  say(fd, kSendHelloNoCrc);
  EXPECT_EQ(hear(fd, 32),
            "00174143 00000000 00000000 00000001 00000000 6561726c 79000000 00000000");
  EXPECT_EQ(ours_.established, 1);
  EXPECT_EQ(ours_.messages, std::vector<std::string>{"hello"});
}

TEST_F(ResponderSocket, RequestInSingleBytesIsUnderstood) {
  start();
  listen();
  UniqueFd fd = dial();
  for (std::byte b : from_hex(kLinuxRequest)) {
    ASSERT_EQ(::send(fd.get(), &b, 1, MSG_NOSIGNAL), 1);
    turn();
  }
  EXPECT_TRUE(until([&] { return requests_ == 1; }));
}

TEST_F(ResponderSocket, RpcOverTcpIsClosedAtOnce) {
  start();
  listen();
  UniqueFd fd = dial();
  say(fd, "80000028 12345678 00000000 00000002");
  EXPECT_TRUE(hears_end(fd));
  EXPECT_EQ(requests_, 0);
}

TEST_F(ResponderSocket, SilentPeerIsClosedInTime) {
  IwarpOptions options;
  options.handshake_timeout = std::chrono::milliseconds(30);
  start(options);
  listen();
  UniqueFd fd = dial();
  EXPECT_TRUE(hears_end(fd));
}

TEST_F(ResponderSocket, RequestMayTakeTenSecondsAndNoLonger) {
  stop_the_clock();
  start();
  listen();
  UniqueFd slow = dial();
  UniqueFd slower = dial();
  turn();
  // Bytes that trickle in are no reason to wait longer.
  say(slow, "4d504120 49442052 65712046 72616d65");
  say(slower, "4d504120 49442052 65712046 72616d65");
  let_pass(std::chrono::milliseconds(9'900));
  say(slow, "1002000c 00800000 f6ab0e18 01010303");
  say(slower, "1002000c 00800000");
  EXPECT_TRUE(until([&] { return requests_ == 1; }));
  EXPECT_TRUE(hears_nothing(slower));
  let_pass(std::chrono::milliseconds(200));
  EXPECT_TRUE(hears_end(slower));
}

TEST_F(ResponderSocket, ReplyWaitsForNoTimer) {
  // siw gives up ten seconds after its Request.
  stop_the_clock();
  start();
  UniqueFd fd = linux_client();
  EXPECT_EQ(reply_.size(), std::string(kLinuxRequest).size());
}

TEST_F(ResponderSocket, SmallMessagesAreNotHeldBackAndDeadPeersAreNoticed) {
  start();
  UniqueFd fd = linux_client();
  const int ours = static_cast<IwarpQueuePair&>(*ours_.queue_pair).fd();
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(ours, level, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 60'000);
  ours_.post_receives(1);
  say(fd, kSendHelloNoCrc);
  ASSERT_TRUE(ours_.send(1, ours_.text("hello")).ok());
  ASSERT_TRUE(until([&] { return ours_.done.size() == 2; }));
  int unsent = -1;
  EXPECT_EQ(::ioctl(ours, SIOCOUTQNSD, &unsent), 0);
  EXPECT_EQ(unsent, 0) << "as MSG_MORE would have it";
}

TEST_F(ResponderSocket, HalfOpenHandshakesAreLimitedPerAddress) {
  IwarpOptions options;
  options.max_half_open_per_address = 2;
  start(options);
  listen();
  UniqueFd one = dial();
  UniqueFd two = dial();
  UniqueFd three = dial();
  EXPECT_TRUE(hears_end(three));
  EXPECT_TRUE(hears_nothing(one));
  two.reset();
  one.reset();
  for (int i = 0; i < 5; ++i)
    turn();
  UniqueFd four = dial();
  EXPECT_TRUE(hears_nothing(four));
}

TEST_F(ResponderSocket, SilentPeersOfOneAddressDoNotShutOthersOut) {
  IwarpOptions options;
  options.max_half_open = 2;
  start(options);
  listen();
  UniqueFd first = dial();
  UniqueFd second = dial();
  EXPECT_TRUE(hears_nothing(second));
  UniqueFd third(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress elsewhere = SocketAddress::parse("127.0.0.2", 0).value();
  ASSERT_EQ(::bind(third.get(), elsewhere.data(), elsewhere.length()), 0);
  ASSERT_EQ(::connect(third.get(), listener_->address().data(), listener_->address().length()), 0);
  EXPECT_TRUE(hears_end(first));
  say(third, kLinuxRequest);
  EXPECT_TRUE(until([&] { return requests_ == 1; }));
  EXPECT_TRUE(hears_nothing(second));
}

TEST_F(ResponderSocket, MarkersAreRejected) {
  start();
  listen();
  UniqueFd fd = dial_and_ask("4d504120 49442052 65712046 72616d65 90020004 00800000", &reply_, 24);
  EXPECT_EQ(reply_, "4d504120 49442052 65702046 72616d65 30020004 00000000");
}

TEST_F(ResponderSocket, RejectLeavesTheFirstFinToThePeer) {
  start();
  listen();
  reject_ = true;
  UniqueFd fd = dial_and_ask(kLinuxRequest, &reply_, 24);
  EXPECT_EQ(reply_, "4d504120 49442052 65702046 72616d65 30020004 00000000");
  EXPECT_TRUE(hears_nothing(fd));
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_TRUE(hears_end(fd));
}

TEST_F(ResponderSocket, RejectedPeerHasTwoSecondsToClose) {
  stop_the_clock();
  start();
  listen();
  reject_ = true;
  UniqueFd fd = dial_and_ask(kLinuxRequest, &reply_, 24);
  let_pass(std::chrono::milliseconds(1'999));
  EXPECT_TRUE(hears_nothing(fd));
  let_pass(std::chrono::milliseconds(1));
  EXPECT_TRUE(hears_end(fd));
}

/// Who is refused can be back at once, and each of its sockets would cost a descriptor.
TEST_F(ResponderSocket, RejectedPeersThatStayMakeRoomTheOldestFirst) {
  stop_the_clock();
  IwarpOptions options;
  options.max_lingering = 2;
  start(options);
  listen();
  reject_ = true;
  UniqueFd first = dial_and_ask(kLinuxRequest, &reply_, 24);
  UniqueFd second = dial_and_ask(kLinuxRequest, &reply_, 24);
  EXPECT_TRUE(hears_nothing(first));
  UniqueFd third = dial_and_ask(kLinuxRequest, &reply_, 24);
  EXPECT_TRUE(hears_end(first));
  EXPECT_TRUE(hears_nothing(second));
  // One that closes leaves its place.
  second.reset();
  for (int i = 0; i < 5; ++i)
    turn();
  UniqueFd fourth = dial_and_ask(kLinuxRequest, &reply_, 24);
  EXPECT_TRUE(hears_nothing(third));
  EXPECT_TRUE(hears_nothing(fourth));
  EXPECT_EQ(requests_, 4);
}

TEST_F(ResponderSocket, ReadAsRtrIsAnsweredAndEstablishes) {
  start();
  listen();
  UniqueFd fd = dial_and_ask("4d504120 49442052 65712046 72616d65 10020004 80104001", &reply_, 24);
  say(fd,
      "002e4141 00000000 00000001 00000001 00000000 00000000 00000000 00000000 00000000 "
      "00000000 00000000 00000000 00000000");
  EXPECT_EQ(hear(fd, 20), "000ec142 00000000 00000000 00000000 00000000");
  EXPECT_EQ(ours_.established, 1);
}

TEST_F(ResponderSocket, WriteAsRtrEstablishesWithoutAWord) {
  start();
  listen();
  UniqueFd fd = dial_and_ask("4d504120 49442052 65712046 72616d65 10020004 8020c001", &reply_, 24);
  say(fd, "000ec140 00000000 00000000 00000000 00000000");
  EXPECT_TRUE(until([&] { return ours_.established == 1; }));
  EXPECT_TRUE(hears_nothing(fd));
}

TEST_F(ResponderSocket, CrcIsUsedWhenThePeerAsks) {
  start();
  listen();
  UniqueFd fd = dial_and_ask("4d504120 49442052 65712046 72616d65 50020004 00800000", &reply_, 24);
  ours_.post_receives(2);
  say(fd, kSendHello);
  EXPECT_TRUE(until([&] { return ours_.messages.size() == 1; }));
  ASSERT_TRUE(ours_.send(1, ours_.text("hello")).ok());
  EXPECT_EQ(hear(fd, 32), kSendHello);
}

TEST_F(ResponderSocket, ViolationIsAnsweredWithTerminateAndClose) {
  start();
  UniqueFd fd = linux_client();
  ours_.post_receives(1);
  say(fd, kSendHelloNoCrc);
  say(fd, "000fc140 1122aa55 00000000 00001000 01000000 00000000");
  EXPECT_EQ(hear(fd, 44),
            "00264147 00000000 00000002 00000001 00000000 1100c000 000fc140 1122aa55 00000000 "
            "00001000 00000000");
  EXPECT_TRUE(hears_end(fd));
  EXPECT_EQ(ours_.disconnected, 1);
  EXPECT_EQ(ours_.reason.code, Errc::kProtocol);
}

TEST_F(ResponderSocket, FirstFpduInErrorIsClosedWithoutTerminate) {
  start();
  UniqueFd fd = linux_client();
  say(fd, "000fc140 1122aa55 00000000 00001000 01000000 00000000");
  EXPECT_TRUE(hears_end(fd));
}

TEST_F(ResponderSocket, TerminateOfThePeerEndsTheConnection) {
  start();
  UniqueFd fd = linux_client();
  ours_.post_receives(1);
  say(fd, kSendHelloNoCrc);
  say(fd, "00164147 00000000 00000002 00000001 00000000 20050000 00000000");
  EXPECT_TRUE(until([&] { return ours_.disconnected == 1; }));
  EXPECT_EQ(ours_.reason.code, Errc::kProtocol);
  EXPECT_TRUE(hears_end(fd));
}

TEST_F(ResponderSocket, FinBetweenMessagesEndsTheConnection) {
  start();
  UniqueFd fd = linux_client();
  ours_.post_receives(1);
  say(fd, kSendHelloNoCrc);
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_TRUE(until([&] { return ours_.disconnected == 1; }));
  EXPECT_EQ(ours_.messages, std::vector<std::string>{"hello"});
  EXPECT_STREQ(ours_.reason.where, "the peer closed the connection");
  EXPECT_TRUE(hears_end(fd));
}

/// Else a peer that takes nothing of what it is sent would be listened to for as long as that
/// waits.
TEST_F(ResponderSocket, NothingMoreIsReadOnceWeDisconnect) {
  stop_the_clock();
  const IwarpOptions options;
  start(options);
  UniqueFd fd = linux_client();
  ours_.post_receives(2);
  say(fd, kSendHelloNoCrc);
  ASSERT_TRUE(until([&] { return ours_.messages.size() == 1; }));
  const Sge text = ours_.text(std::string(std::size_t{32} << 20, 'x'));
  WorkRequest request;
  request.opcode = WorkOpcode::kWrite;
  request.sges = {&text, 1};
  ASSERT_TRUE(ours_.post(request).ok());
  ours_.queue_pair->disconnect();
  say(fd, "00174143 00000000 00000000 00000002 00000000 68656c6c 6f000000 00000000");
  for (int i = 0; i < 5; ++i)
    turn();
  EXPECT_EQ(ours_.messages.size(), 1u);
  EXPECT_EQ(ours_.disconnected, 0) << "not all of it is sent";
  let_pass(options.close_linger);
  EXPECT_EQ(ours_.disconnected, 1);
  EXPECT_EQ(ours_.reason.code, Errc::kClosed);
}

/// A server that shuts down: its loop turns no more, and the client is slow and sends on.
TEST_F(ResponderSocket, WhatWasSentLastArrivesThoughTheLoopEnds) {
  start();
  UniqueFd fd = linux_client();
  ours_.post_receives(1);
  say(fd, kSendHelloNoCrc);
  ASSERT_TRUE(until([&] { return ours_.messages.size() == 1; }));
  const int little = 16 << 10;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  constexpr std::size_t kBytes = 1 << 20;
  const Sge text = ours_.text(std::string(kBytes, 'x'));
  WorkRequest request;
  request.opcode = WorkOpcode::kWrite;
  request.sges = {&text, 1};
  ASSERT_TRUE(ours_.post(request).ok());
  ours_.queue_pair->disconnect();
  std::vector<char> room(4096);
  std::size_t taken = 0;
  const auto take = [&](int flags) {
    const ssize_t n = ::recv(fd.get(), room.data(), room.size(), flags);
    if (n > 0) taken += static_cast<std::size_t>(n);
    return n;
  };
  ASSERT_TRUE(until([&] {
    if (ours_.disconnected == 0) take(MSG_DONTWAIT);
    return ours_.disconnected == 1;
  }));
  ASSERT_LT(taken, kBytes) << "nothing is on its way any more";
  say(fd, kSendHelloNoCrc);
  ours_.queue_pair.reset();
  ours_.regions.clear();
  ours_.receives.reset();
  ours_.completions.reset();
  ours_.domain.reset();
  listener_.reset();
  int error = 0;
  std::thread reader([&] {
    ssize_t n = 0;
    while ((n = take(0)) > 0) {
    }
    error = n < 0 ? errno : 0;
  });
  fabric_->forget(*loop_);
  reader.join();
  EXPECT_EQ(error, 0) << std::strerror(error);
  EXPECT_GT(taken, kBytes);
}

TEST_F(ResponderSocket, FinInsideAnFpduIsNoOrderlyMessage) {
  start();
  UniqueFd fd = linux_client();
  ours_.post_receives(1);
  say(fd, "00174143 00000000 00000000");
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_TRUE(until([&] { return ours_.disconnected == 1; }));
  EXPECT_STREQ(ours_.reason.where, "the peer closed the connection inside an FPDU");
}

TEST_F(ResponderSocket, ResetIsReported) {
  start();
  UniqueFd fd = linux_client();
  reset(fd);
  EXPECT_TRUE(until([&] { return ours_.disconnected == 1; }));
}

TEST_F(ResponderSocket, PeerWaitsWhileNoReceiveIsPosted) {
  start();
  UniqueFd fd = linux_client();
  say(fd, kSendHelloNoCrc);
  say(fd, "00124143 00000000 00000000 00000002 00000000 00000000");
  for (int i = 0; i < 5; ++i)
    turn();
  EXPECT_TRUE(ours_.messages.empty());
  EXPECT_EQ(ours_.disconnected, 0);
  ours_.post_receives(1);
  EXPECT_TRUE(until([&] { return ours_.messages.size() == 1; }));
  ours_.post_receives(1);
  EXPECT_TRUE(until([&] { return ours_.messages.size() == 2; }));
  EXPECT_EQ(ours_.messages, (std::vector<std::string>{"hello", ""}));
}

TEST_F(ResponderSocket, DestroyedWhileWaitingForAReceiveIsForgotten) {
  start();
  UniqueFd fd = linux_client();
  say(fd, kSendHelloNoCrc);
  for (int i = 0; i < 5; ++i)
    turn();
  ours_.queue_pair.reset();
  ours_.post_receives(1);
  for (int i = 0; i < 5; ++i)
    turn();
  EXPECT_TRUE(ours_.messages.empty());
}

TEST_F(ResponderSocket, ExposedRegionsAreCounted) {
  start();
  UniqueFd fd = linux_client();
  EXPECT_EQ(fabric_->exposed_regions(*loop_), 0u);
  std::vector<std::byte> bytes(64);
  {
    const MemoryRegion sink = ours_.expose(bytes, Access::kReadSink);
    const MemoryRegion source = ours_.expose(bytes, Access::kRemoteRead);
    EXPECT_EQ(fabric_->exposed_regions(*loop_), 2u);
  }
  EXPECT_EQ(fabric_->exposed_regions(*loop_), 0u);
}

// The server says whose it is (server/port_holder.h).
TEST_F(ResponderSocket, PortInUseIsNamedAsSuch) {
  start();
  listen();
  auto second = fabric_->listen(*loop_, listener_->address(), *this);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().sys, EADDRINUSE);
}

TEST_F(ResponderSocket, WildcardsOfBothFamiliesShareAPort) {
  start();
  auto v4 = fabric_->listen(*loop_, SocketAddress::any_v4(0), *this);
  ASSERT_TRUE(v4.ok());
  auto v6 = fabric_->listen(*loop_, SocketAddress::any_v6((*v4)->address().port()), *this);
  if (!v6.ok() && v6.error().sys == EAFNOSUPPORT) GTEST_SKIP() << "no IPv6 here";
  EXPECT_TRUE(v6.ok());
}

TEST(QueuePairMemory, IdleConnectionStaysSmall) {
  EXPECT_LT(sizeof(IwarpQueuePair), 8u * 1024);
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
