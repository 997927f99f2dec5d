// SPDX-License-Identifier: Apache-2.0
// RpcClient over TCP with a server that answers a call twice, calls that nobody made, or too late:
// each call ends once, with its own answer. Sockets on loopback, the time is the test's.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <deque>
#include <string>
#include <utility>

#include "client/client_environment.h"
#include "client/rpc_client.h"
#include "rpcrdma/record_mark.h"
#include "tests/support/loop_owner.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/manual_clock.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Bytes = std::vector<std::byte>;

/// What became of a call.
struct Outcome {
  int ends = 0;
  int error = 0;  // errno
  std::string why;
  std::uint32_t answer = 0;
  bool resent = false;
};

Task<void> call(RpcClient& rpc, const OpContext& op, Outcome* outcome) {
  RpcCallLease lease = rpc.prepare(100003, 3, 0, op);
  Result<void> done = co_await lease->run();
  ++outcome->ends;
  outcome->resent = lease->resent();
  if (done.ok()) {
    outcome->answer = lease->results().u32();
  } else {
    outcome->error = done.error().sys;
    outcome->why = done.error().message();
  }
}

class RpcReplies : public testing::Test, protected test::LoopOwner {
 protected:
  explicit RpcReplies(bool soft = false) {
    loop_->set_clock(&clock_);
    RpcClientOptions options;
    options.candidates = {{TransportKind::kTcp, address_, nullptr}};
    options.soft = soft;
    options.timeo = seconds(2);
    options.retrans = 1;
    options.idle_timeout = Duration::zero();
    rpc_ = std::make_unique<RpcClient>(
        std::make_unique<LoopEnvironment>(*loop_, RdmaClientOptions{}, TcpClientOptions{}),
        options);
    RpcClientObserver observer;
    observer.connected = [this](const ConnectionInfo&) { ++connections_; };
    rpc_->set_observer(observer);
  }
  ~RpcReplies() override {
    EXPECT_EQ(rpc_->outstanding(), 0u);
    rpc_->abort_all();
    turn();
    EXPECT_EQ(group_.running(), 0u);
  }

  void turn() {
    for (int i = 0; i < 5; ++i)
      loop_->turn(Duration::zero());
  }
  /// The time goes on, and the loop's timers with it.
  void pass(Duration time) {
    for (Duration step = milliseconds(100); time > Duration::zero(); time -= step) {
      clock_.advance(std::min(step, time));
      turn();
    }
  }
  Outcome& start() {
    Outcome& outcome = outcomes_.emplace_back();
    group_.spawn(call(*rpc_, op_, &outcome));
    return outcome;
  }
  /// The connection that the client makes next.
  void accept() {
    EXPECT_TRUE(turn_until([&] {
      peer_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return static_cast<bool>(peer_);
    }));
  }
  /// The xid of the next call that comes there.
  std::uint32_t take() {
    std::array<std::byte, 4096> record;
    const auto peek = [&](std::size_t bytes) {
      const ssize_t n = ::recv(peer_.get(), record.data(), bytes, MSG_PEEK);
      return n == static_cast<ssize_t>(bytes);
    };
    EXPECT_TRUE(turn_until([&] { return peek(kRecordMarkBytes); }));
    const std::size_t length = kRecordMarkBytes + (load_be32(record.data()) & ~kLastFragment);
    EXPECT_TRUE(turn_until([&] { return peek(length); }));
    EXPECT_EQ(::recv(peer_.get(), record.data(), length, 0), static_cast<ssize_t>(length));
    return load_be32(record.data() + kRecordMarkBytes);
  }
  bool nothing_comes() {
    turn();
    std::byte one;
    return ::recv(peer_.get(), &one, 1, MSG_PEEK) < 0 && errno == EAGAIN;
  }
  void deny(const xdr::rpc_msg& reply) {
    Bytes record(128);
    xdr::Encoder out(record);
    out.u32(0);
    xdr::encode(out, reply);
    record.resize(out.size());
    store_be32(record.data(), kLastFragment | static_cast<std::uint32_t>(out.size() - 4));
    ASSERT_EQ(::send(peer_.get(), record.data(), record.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(record.size()));
  }
  /// A reply with `answer` as its result, `times` in one segment.
  void answer(std::uint32_t xid, std::uint32_t answer, int times = 1) {
    Bytes record(128);
    xdr::Encoder out(record);
    out.u32(0);
    xdr::encode(out, xdr::accepted(xid, xdr::accept_stat::SUCCESS));
    out.u32(answer);
    record.resize(out.size());
    store_be32(record.data(), kLastFragment | static_cast<std::uint32_t>(out.size() - 4));
    Bytes all;
    for (int i = 0; i < times; ++i)
      all.insert(all.end(), record.begin(), record.end());
    // The other side may have closed it.
    [[maybe_unused]] const ssize_t sent = ::send(peer_.get(), all.data(), all.size(), MSG_NOSIGNAL);
  }
  void expect_answered(const Outcome& outcome, std::uint32_t answer) {
    EXPECT_TRUE(turn_until([&] { return outcome.ends > 0; }));
    EXPECT_EQ(outcome.ends, 1);
    EXPECT_EQ(outcome.error, 0);
    EXPECT_EQ(outcome.answer, answer);
  }
  /// A call with an answer of its own, on the connection that is there.
  void expect_goes_on() {
    Outcome& next = start();
    answer(take(), ++last_answer_);
    expect_answered(next, last_answer_);
  }

  /// The reply to a call that has ended comes late, twice, and is not the next one's.
  void expect_dropped(std::uint32_t xid) {
    Outcome& next = start();
    const std::uint32_t next_xid = take();
    answer(xid, 1, 2);
    turn();
    EXPECT_EQ(next.ends, 0);
    answer(next_xid, 2);
    expect_answered(next, 2);
    expect_goes_on();
  }

  test::ManualClock clock_;
  SocketAddress address_;
  UniqueFd listener_ = test::listen_on_loopback(&address_, "127.0.0.1", SOCK_NONBLOCK);
  std::unique_ptr<RpcClient> rpc_;
  TaskGroup group_;
  OpContext op_;
  std::deque<Outcome> outcomes_;
  UniqueFd peer_;
  int connections_ = 0;
  std::uint32_t last_answer_ = 1000;
};

/// Why a call is denied is told in words: the number is the same for all.
TEST_F(RpcReplies, DenialsSayWhatMayHelp) {
  const struct {
    xdr::auth_stat stat;
    const char* words;
  } kDenials[] = {{xdr::auth_stat::AUTH_TOOWEAK, "stronger authentication than AUTH_SYS"},
                  {xdr::auth_stat::AUTH_BADCRED, "among the clients of an export"},
                  {xdr::auth_stat::AUTH_FAILED, "denied the call"}};
  bool connected = false;
  for (const auto& denial : kDenials) {
    Outcome& outcome = start();
    if (!std::exchange(connected, true)) accept();
    deny(xdr::denied_auth(take(), denial.stat));
    ASSERT_TRUE(turn_until([&] { return outcome.ends > 0; }));
    EXPECT_EQ(outcome.error, EACCES);
    EXPECT_NE(outcome.why.find(denial.words), std::string::npos) << outcome.why;
  }
  Outcome& outcome = start();
  deny(xdr::denied_version(take()));
  ASSERT_TRUE(turn_until([&] { return outcome.ends > 0; }));
  EXPECT_EQ(outcome.error, EPROTONOSUPPORT);
}

TEST_F(RpcReplies, AReplyThatComesTwiceEndsOneCall) {
  Outcome& first = start();
  Outcome& second = start();
  accept();
  const std::uint32_t first_xid = take(), second_xid = take();
  answer(first_xid, 1, 3);
  expect_answered(first, 1);
  // What is left of the first call is used for the next one.
  Outcome& third = start();
  const std::uint32_t third_xid = take();
  answer(first_xid, 1);
  answer(first_xid + 4711, 9, 2);  // nobody's
  turn();
  EXPECT_EQ(second.ends + third.ends, 0);
  answer(third_xid, 3, 2);
  answer(second_xid, 2, 2);
  expect_answered(second, 2);
  expect_answered(third, 3);
  EXPECT_EQ(first.ends, 1);
  expect_goes_on();
  EXPECT_EQ(connections_, 1);
}

TEST_F(RpcReplies, AnInterruptedCallsReplyIsDropped) {
  CancelToken cancel;
  op_.cancel = &cancel;
  Outcome& interrupted = start();
  op_.cancel = nullptr;
  accept();
  const std::uint32_t xid = take();
  cancel.cancel();
  EXPECT_EQ(interrupted.error, EINTR);
  expect_dropped(xid);
  EXPECT_EQ(interrupted.ends, 1);
  EXPECT_EQ(connections_, 1);
}

// Sent again with the same xid: whatever the old connection brings, nobody reads it.
TEST_F(RpcReplies, BehindASilentServersConnectionTheCallHasOneAnswer) {
  Outcome& asked = start();
  accept();
  const std::uint32_t xid = take();
  pass(milliseconds(2500));
  UniqueFd old = std::move(peer_);
  accept();
  EXPECT_EQ(take(), xid);
  std::swap(old, peer_);
  answer(xid, 1);  // too late
  std::swap(old, peer_);
  turn();
  EXPECT_EQ(asked.ends, 0);
  answer(xid, 2, 2);
  expect_answered(asked, 2);
  EXPECT_TRUE(asked.resent);
  expect_goes_on();
  EXPECT_EQ(connections_, 2);
}

class SoftRpcReplies : public RpcReplies {
 protected:
  SoftRpcReplies() : RpcReplies(true) {}
};

// The server is there, and answers others meanwhile: the connection stays.
TEST_F(SoftRpcReplies, AReplyToACallThatTimedOutIsDropped) {
  Outcome& slow = start();
  accept();
  const std::uint32_t xid = take();
  for (int i = 0; i < 4; ++i) {
    pass(milliseconds(1050));
    if (i < 3) {
      EXPECT_EQ(slow.ends, 0);
    }
    expect_goes_on();
  }
  EXPECT_EQ(slow.ends, 1);
  EXPECT_EQ(slow.error, ETIMEDOUT);
  expect_dropped(xid);
  EXPECT_EQ(slow.ends, 1);
  EXPECT_EQ(connections_, 1);
}

// More calls are given up than a connection has room for: it is made anew for those that wait.
TEST_F(SoftRpcReplies, CallsThatAreNeverAnsweredDoNotStopTheNextOnes) {
  std::vector<std::uint32_t> xids;
  const std::uint32_t most = TcpClientOptions{}.max_calls;
  for (std::uint32_t i = 0; i < most; ++i)
    start();
  accept();
  for (std::uint32_t i = 0; i < most; ++i)
    xids.push_back(take());
  pass(milliseconds(1900));
  Outcome& other = start();
  pass(milliseconds(400));  // their timeo
  accept();
  for (std::uint32_t i = 0; i < most; ++i)
    EXPECT_EQ(take(), xids[i]);
  EXPECT_TRUE(nothing_comes());
  pass(milliseconds(2300));  // and their end
  for (std::uint32_t i = 0; i < most; ++i)
    EXPECT_EQ(outcomes_[i].error, ETIMEDOUT);
  accept();
  const std::uint32_t xid = take();
  for (const std::uint32_t late : xids)
    answer(late, 6);
  turn();
  EXPECT_EQ(other.ends, 0);
  answer(xid, 5);
  expect_answered(other, 5);
  for (const Outcome& one : outcomes_)
    EXPECT_EQ(one.ends, 1);
  expect_goes_on();
}

}  // namespace
}  // namespace nfsrdma
