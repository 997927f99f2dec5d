// SPDX-License-Identifier: Apache-2.0
// The real CallEndpoint: sockets of the loopback interface that call, send rubbish, or sit there.
#include "client/call_endpoint.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "tests/support/loop_owner.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

constexpr std::uint32_t kLast = 1u << 31;  // fragment of a record

class CallEndpointTest : public testing::Test, protected test::LoopOwner {
 protected:
  CallEndpointTest() {
    const SocketAddress here = SocketAddress::parse("127.0.0.1", 0).value();
    auto made = make_tcp_call_endpoint(*loop_, here, [this](ByteSpan call, MutableByteSpan room) {
      heard_.emplace_back(as_text(call.subspan(8)));
      if (answer_.empty()) return std::size_t{0};
      xdr::Encoder out(room);
      const bool known = heard_.back() != kStranger;
      xdr::encode(out, xdr::accepted(
                           1, known ? xdr::accept_stat::SUCCESS : xdr::accept_stat::PROG_UNAVAIL));
      head_bytes_ = out.size();
      out.fixed_opaque(as_bytes(answer_));
      return out.size();
    });
    EXPECT_TRUE(made.ok());
    endpoint_ = std::move(*made);
  }
  UniqueFd connect() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress& to = endpoint_->address();
    EXPECT_EQ(::connect(fd.get(), to.data(), to.length()), 0);
    turn();
    return fd;
  }
  void turn() {
    for (int i = 0; i < 5; ++i)
      loop_->turn(std::chrono::milliseconds(1));
  }
  static void send(const UniqueFd& fd, const std::string& bytes, std::uint32_t mark) {
    std::vector<std::byte> record(4);
    store_be32(record.data(), mark);
    const ByteSpan body = as_bytes(bytes);
    record.insert(record.end(), body.begin(), body.end());
    EXPECT_EQ(::send(fd.get(), record.data(), record.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(record.size()));
  }
  /// A message that is a call as far as the transport looks.
  void call(const UniqueFd& fd, const std::string& text) {
    const std::string message = "xid-" + std::string(4, '\0') + text;
    send(fd, message, kLast | static_cast<std::uint32_t>(message.size()));
  }
  /// What a whole record has behind the head of a reply, or "": it ended.
  std::string reply(const UniqueFd& fd) {
    std::array<char, 256> got{};
    ssize_t bytes = -1;
    (void)turn_until([&] {
      bytes = ::recv(fd.get(), got.data(), got.size(), MSG_DONTWAIT);
      return bytes >= 0;
    });
    const std::size_t head = 4 + head_bytes_;
    const std::size_t whole = bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
    return whole <= head ? std::string() : std::string(got.data() + head, whole - head);
  }
  bool ended(const UniqueFd& fd) {
    char byte;
    return turn_until([&] { return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0; });
  }
  bool is_open(const UniqueFd& fd) {
    turn();
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  static constexpr const char* kStranger = "stranger";

  std::string answer_ = "reply---";
  std::size_t head_bytes_ = 0;  // of a reply
  std::vector<std::string> heard_;
  std::unique_ptr<CallEndpoint> endpoint_;
};

TEST_F(CallEndpointTest, ACallIsAnswered) {
  const UniqueFd server = connect();
  call(server, "call");
  EXPECT_EQ(reply(server), "reply---");
  call(server, "more");
  EXPECT_EQ(reply(server), "reply---");
  EXPECT_EQ(heard_, (std::vector<std::string>{"call", "more"}));
}

TEST_F(CallEndpointTest, WhatIsNoCallIsNotAnswered) {
  const UniqueFd server = connect();
  answer_.clear();
  call(server, "rubbish!");
  EXPECT_TRUE(turn_until([this] { return !heard_.empty(); }));
  answer_ = "reply---";
  call(server, "call");
  EXPECT_EQ(reply(server), "reply---");
}

TEST_F(CallEndpointTest, ACallThatIsTooLongEndsItsConnection) {
  const UniqueFd other = connect();
  const UniqueFd server = connect();
  send(server, "x", kLast | (17u << 10));
  EXPECT_TRUE(ended(server));
  EXPECT_TRUE(is_open(other));
}

/// Whoever sits there keeps nobody out, and least of all whoever has been answered.
TEST_F(CallEndpointTest, ThereIsAlwaysRoomForOneMore) {
  const UniqueFd server = connect();
  call(server, "call");
  EXPECT_EQ(reply(server), "reply---");
  std::vector<UniqueFd> idle;
  idle.reserve(40);
  for (int i = 0; i < 40; ++i)
    idle.push_back(connect());
  EXPECT_TRUE(is_open(server));
  call(server, "more");
  EXPECT_EQ(reply(server), "reply---");
  EXPECT_TRUE(ended(idle.front()));
  call(idle.back(), "late");
  EXPECT_EQ(reply(idle.back()), "reply---");
}

/// Nor do those who are answered that they are wrong here.
TEST_F(CallEndpointTest, StrangersDoNotPushOutTheServer) {
  const UniqueFd server = connect();
  call(server, "call");
  EXPECT_EQ(reply(server), "reply---");
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 40; ++i) {
    strangers.push_back(connect());
    call(strangers.back(), kStranger);
    EXPECT_EQ(reply(strangers.back()), "reply---");
  }
  EXPECT_TRUE(is_open(server));
  EXPECT_TRUE(ended(strangers.front()));
}

TEST_F(CallEndpointTest, NobodyIsHeardWhenItIsGone) {
  const UniqueFd server = connect();
  call(server, "call");
  EXPECT_EQ(reply(server), "reply---");
  endpoint_.reset();
  EXPECT_TRUE(ended(server));
}

TEST_F(CallEndpointTest, APortThatIsTakenIsAnError) {
  const auto again = make_tcp_call_endpoint(*loop_, endpoint_->address(),
                                            [](ByteSpan, MutableByteSpan) { return 0u; });
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().sys, EADDRINUSE);
}

}  // namespace
}  // namespace nfsrdma
