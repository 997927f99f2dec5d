// SPDX-License-Identifier: Apache-2.0
// A TcpServer with the toy service on loopback, and clients of it: ours, and hand-made ones.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <utility>
#include <vector>

#include "rpcrdma/record_mark.h"
#include "rpcrdma/tcp_client.h"
#include "rpcrdma/tcp_server.h"
#include "tests/support/loop_owner.h"
#include "tests/support/manual_clock.h"
#include "tests/support/record_of.h"
#include "tests/support/toy_rpc.h"

namespace nfsrdma::test {

class TcpTransport : public ::testing::Test, protected LoopOwner {
 protected:
  explicit TcpTransport(std::size_t budget = 84u << 20)
      : LoopOwner(20'000), pool_(*loop_, budget) {}
  void start(const TcpServerLimits& limits = {}) { start(handler_, limits); }
  void start(CallHandler& handler, const TcpServerLimits& limits = {}) {
    server_ = std::make_unique<TcpServer>(*loop_, pool_, handler, limits);
    listener_ = std::move(TcpListener::listen(
                              *loop_, std::move(SocketAddress::parse("127.0.0.1", 0)).value(),
                              [this](UniqueFd fd) { server_->adopt(std::move(fd)); }))
                    .value();
  }
  void connect(const TcpClientOptions& options = {}) {
    client_ = make_tcp_transport(*loop_, listener_->address(), options, log_);
    turn_until([this] { return log_.ready + log_.closed > 0; });
  }
  ToyCall& call(std::uint32_t procedure, std::uint32_t size, std::uint32_t seed = 5) {
    calls_.push_back(std::make_unique<ToyCall>(++last_xid_, procedure, size, seed));
    client_->submit(*calls_.back());
    turn_until([this] { return calls_.back()->completions > 0; });
    return *calls_.back();
  }
  UniqueFd connected() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), listener_->address().data(), listener_->address().length()), 0);
    return fd;
  }
  UniqueFd raw() {
    UniqueFd fd = connected();
    turn_until([this] { return handler_.opened > 0; });
    return fd;
  }
  ~TcpTransport() override {
    client_.reset();
    handler_.hold = false;
    for (int i = 0; i < 10; ++i)
      loop_->turn(Duration::zero());
    handler_.answer_held();
    server_.reset();
  }

  BufferPool pool_;  // 64 MiB for 15 of the largest records, and what those leave free
  ToyHandler handler_;
  std::unique_ptr<TcpServer> server_;
  std::unique_ptr<TcpListener> listener_;
  TransportLog log_;
  std::unique_ptr<ClientTransport> client_;
  std::vector<std::unique_ptr<ToyCall>> calls_;
  std::uint32_t last_xid_ = 0x2000;
};

/// With its data in it.
inline std::vector<std::byte> message_of(const ToyCall& call) {
  std::vector<std::byte> message(call.head.begin(), call.head.end());
  message.insert(message.end(), call.payload.begin(), call.payload.end());
  message.insert(message.end(), call.tail.begin(), call.tail.end());
  return message;
}

class TcpStalls : public TcpTransport {
 protected:
  explicit TcpStalls(std::size_t budget = 84u << 20) : TcpTransport(budget) {
    loop_->set_clock(&clock_);
  }
  ~TcpStalls() override { loop_->set_clock(nullptr); }
  void settle() {
    for (int i = 0; i < 50; ++i)
      loop_->turn(Duration::zero());
  }
  void pass(Duration time) {
    clock_.advance(time);
    settle();
  }
  /// A client that asks for more than the kernel's buffers hold and has taken none of it.
  UniqueFd ask_for_much() {
    UniqueFd fd = raw();
    for (std::uint32_t i = 0; i < kReplies; ++i) {
      const auto record = record_of(ToyCall(100 + i, kToyRead, 1 << 20, i).head);
      EXPECT_EQ(::send(fd.get(), record.data(), record.size(), 0),
                static_cast<ssize_t>(record.size()));
    }
    EXPECT_TRUE(turn_until([&] { return handler_.calls > 0; }));
    settle();
    return fd;
  }

  static constexpr std::uint32_t kReplies = 32;
  ManualClock clock_;
};

}  // namespace nfsrdma::test
