// SPDX-License-Identifier: Apache-2.0
// A peer made of a plain socket and bytes, against the real fabric on a loop.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "tests/support/fabric_contract_end.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/manual_clock.h"
#include "tests/unit/rpcrdma/iwarp/engine_pair.h"

namespace nfsrdma::iwarp::test {

using nfsrdma::test::ContractEnd;

using nfsrdma::test::ManualClock;

class RawPeerTest : public testing::Test,
                    protected IncomingHandler,
                    protected AcceptHandler,
                    protected ConnectHandler {
 protected:
  void start(const IwarpOptions& options = {}) { fabric_ = make_fabric(options); }
  ~RawPeerTest() override {
    ours_.queue_pair.reset();
    connector_.reset();
    listener_.reset();
    held_.clear();
    ours_.regions.clear();
    ours_.receives.reset();
    ours_.completions.reset();
    ours_.domain.reset();
    if (fabric_) fabric_->forget(*loop_);
  }

  void turn() { loop_->turn(std::chrono::milliseconds(5)); }
  void stop_the_clock() { loop_->set_clock(&clock_); }
  /// Only with a stopped clock.
  void let_pass(Duration time) {
    clock_.advance(time);
    for (int i = 0; i < 3; ++i)
      turn();
  }
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition() && std::chrono::steady_clock::now() < end)
      turn();
    return condition();
  }

  // --- we listen, the raw peer connects
  void listen() {
    auto listener = fabric_->listen(*loop_, SocketAddress::parse("127.0.0.1", 0).value(), *this);
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
  }
  UniqueFd dial() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), listener_->address().data(), listener_->address().length()), 0);
    return fd;
  }
  /// Dials and gets through start-up with the Linux client's request; `reply` is what came back.
  UniqueFd dial_and_ask(const std::string& request, std::string* reply, std::size_t reply_size) {
    UniqueFd fd = dial();
    say(fd, request);
    *reply = hear(fd, reply_size);
    return fd;
  }

  // --- the raw peer listens, we connect
  UniqueFd raw_listen() { return nfsrdma::test::listen_on_loopback(&raw_address_); }
  void connect() {
    auto connector = fabric_->connect(*loop_, raw_address_, *this);
    ASSERT_TRUE(connector.ok());
    connector_ = std::move(connector).value();
  }
  UniqueFd raw_accept(const UniqueFd& listener) {
    pollfd poll_fd{listener.get(), POLLIN, 0};
    until([&] { return ::poll(&poll_fd, 1, 0) == 1; });
    return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  // --- bytes
  static void say(const UniqueFd& fd, const std::string& hex) {
    const std::vector<std::byte> bytes = from_hex(hex);
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// What comes, until `size` bytes are there or the peer closed; runs the loop meanwhile.
  std::string hear(const UniqueFd& fd, std::size_t size) {
    std::vector<std::byte> bytes(size);
    std::size_t have = 0;
    ended_ = false;
    until([&] {
      const ssize_t n = ::recv(fd.get(), bytes.data() + have, size - have, MSG_DONTWAIT);
      if (n > 0) have += static_cast<std::size_t>(n);
      ended_ = n == 0 || (n < 0 && errno == ECONNRESET);
      return have == size || ended_;
    });
    bytes.resize(have);
    return to_hex(bytes);
  }
  /// Did the peer close, after sending nothing?
  bool hears_end(const UniqueFd& fd) { return hear(fd, 1).empty() && ended_; }
  bool hears_nothing(const UniqueFd& fd) {
    for (int i = 0; i < 5; ++i)
      turn();
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
  }
  static void reset(UniqueFd& fd) {
    const linger hard{1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    fd.reset();
  }

  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    incoming->start(*loop_, *this);
    held_.push_back(std::move(incoming));
  }
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override {
    ++requests_;
    peer_reads_ = request->peer_inbound_reads();
    request_data_ = to_hex(request->private_data());
    if (reject_) return request->reject({});
    auto options = ours_.prepare(*loop_, request->device());
    ASSERT_TRUE(options.ok());
    auto queue_pair = request->accept(*options);
    ASSERT_TRUE(queue_pair.ok());
    ours_.queue_pair = std::move(queue_pair).value();
  }
  Result<QueuePairOptions> on_device(Device& device) override {
    return ours_.prepare(*loop_, device);
  }
  void on_connected(std::unique_ptr<QueuePair> queue_pair, ByteSpan private_data) override {
    ours_.queue_pair = std::move(queue_pair);
    reply_data_ = to_hex(private_data);
    connected_ = true;
  }
  void on_connect_failed(Error error, const std::string& detail) override {
    failed_ = true;
    error_ = error;
    detail_ = detail;
  }

  static constexpr char kLinuxRequest[] =
      "4d504120 49442052 65712046 72616d65 1002000c 00800000 f6ab0e18 01010303";
  static constexpr char kPlainReply[] =
      "4d504120 49442052 65702046 72616d65 1002000c 00000010 f6ab0e18 01000303";

  ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  std::unique_ptr<Fabric> fabric_;
  ContractEnd ours_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connector> connector_;
  std::vector<std::unique_ptr<Incoming>> held_;
  SocketAddress raw_address_;
  bool reject_ = false;
  bool ended_ = false;
  int requests_ = 0;
  std::uint32_t peer_reads_ = 0;
  std::string request_data_;
  std::string reply_data_;
  bool connected_ = false;
  bool failed_ = false;
  Error error_{};
  std::string detail_;
};

}  // namespace nfsrdma::iwarp::test
