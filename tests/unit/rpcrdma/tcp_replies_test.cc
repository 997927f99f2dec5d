// SPDX-License-Identifier: Apache-2.0
// TcpClient and replies that nobody waits for: a second one to the same call, one to no call at
// all, one to a call that was given up. As with Linux (xprt_lookup_rqst()) such a reply is read and
// dropped, the connection goes on, and no other call gets anything of it.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "rpcrdma/record_mark.h"
#include "rpcrdma/tcp_client.h"
#include "tests/support/loop_owner.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/record_of.h"
#include "tests/support/toy_rpc.h"

namespace nfsrdma::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kShort = 100;     // bytes of data in a reply that is looked at in one piece
constexpr std::uint32_t kLong = 300'001;  // and of one whose data goes straight into the sink

Bytes words(std::initializer_list<std::uint32_t> values) {
  Bytes out(4 * values.size());
  xdr::Encoder encoder(out);
  for (const std::uint32_t value : values)
    encoder.u32(value);
  return out;
}

/// What a server says to kToyRead.
Bytes read_reply(std::uint32_t xid, std::uint32_t size, std::uint32_t seed) {
  Bytes out = words({xid, 1, 0, 0, 0, 0, 0, 0, size, 1, size});
  const std::size_t data = out.size();
  out.resize(data + (size + 3) / 4 * 4);
  fill_pattern(MutableByteSpan(out).subspan(data, size), seed);
  return out;
}
Bytes null_reply(std::uint32_t xid) {
  return words({xid, 1, 0, 0, 0, 0});
}

class TcpReplies : public ::testing::Test, protected LoopOwner {
 protected:
  TcpReplies() { connect({}); }
  void connect(const TcpClientOptions& options) {
    client_ = make_tcp_transport(*loop_, address_, options, log_);
    const int before = log_.ready;
    EXPECT_TRUE(turn_until([&] { return log_.ready > before; }));
    peer_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  /// Out, and at the server.
  std::unique_ptr<ToyCall> ask(std::uint32_t procedure, std::uint32_t size, std::uint32_t seed) {
    auto call = std::make_unique<ToyCall>(++last_xid_, procedure, size, seed);
    client_->submit(*call);
    take(*call);
    return call;
  }
  void take(const ToyCall& call) {
    const std::size_t length = kRecordMarkBytes + call.head.size();
    int there = 0;
    EXPECT_TRUE(turn_until([&] {
      return ::ioctl(peer_.get(), FIONREAD, &there) == 0 &&
             static_cast<std::size_t>(there) >= length;
    }));
    Bytes record(length);
    EXPECT_EQ(::recv(peer_.get(), record.data(), length, 0), static_cast<ssize_t>(length));
    EXPECT_EQ(load_be32(record.data() + kRecordMarkBytes), call.xid);
  }
  void send(ByteSpan bytes) {
    while (!bytes.empty()) {
      const ssize_t n =
          ::send(peer_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      ASSERT_TRUE(n > 0 || errno == EAGAIN) << errno;
      if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
      loop_->turn(Duration::zero());
    }
  }
  void answer(ByteSpan message) { send(record_of(message)); }
  /// The connection is the same one, and good for calls of either kind.
  void expect_goes_on() {
    for (const std::uint32_t size : {kShort, kLong}) {
      const auto call = ask(kToyRead, size, 77);
      answer(read_reply(call->xid, size, 77));
      EXPECT_TRUE(turn_until([&] { return call->completions > 0; }));
      EXPECT_TRUE(call->good);
    }
    EXPECT_EQ(log_.closed, 0) << log_.detail;
  }
  std::uint64_t dropped() const { return client_->describe().stats.errors; }

  SocketAddress address_;
  UniqueFd listener_ = listen_on_loopback(&address_);
  TransportLog log_;
  std::unique_ptr<ClientTransport> client_;
  UniqueFd peer_;
  std::uint32_t last_xid_ = 0x3000;
};

TEST_F(TcpReplies, ASecondReplyIsNobodys) {
  for (const std::uint32_t size : {kShort, kLong}) {
    const auto first = ask(kToyRead, size, 1);
    const auto second = ask(kToyRead, size, 2);
    answer(read_reply(first->xid, size, 1));
    EXPECT_TRUE(turn_until([&] { return first->completions > 0; }));
    const std::uint64_t before = dropped();
    answer(read_reply(first->xid, size, 3));
    EXPECT_TRUE(turn_until([&] { return dropped() == before + 1; }));
    EXPECT_EQ(second->completions, 0);
    answer(read_reply(second->xid, size, 2));
    EXPECT_TRUE(turn_until([&] { return second->completions > 0; }));
    EXPECT_TRUE(first->good);
    EXPECT_TRUE(second->good);
    // The memory of the first is its caller's again since its answer.
    EXPECT_TRUE(size == kShort || has_pattern(first->data(), 1));
    EXPECT_EQ(first->completions, 1);
  }
  expect_goes_on();
}

TEST_F(TcpReplies, BothRepliesInOneSegmentEndOneCall) {
  std::unique_ptr<ToyCall> next;
  const auto first = ask(kToyNull, 0, 0);
  first->done = [&](ToyCall&) {  // and its caller goes on at once
    next = std::make_unique<ToyCall>(++last_xid_, kToyRead, kShort, 4);
    client_->submit(*next);
  };
  Bytes both = record_of(null_reply(first->xid));
  const Bytes again = both;
  both.insert(both.end(), again.begin(), again.end());
  send(both);
  EXPECT_TRUE(turn_until([&] { return dropped() == 1; }));
  ASSERT_TRUE(next);
  take(*next);
  EXPECT_EQ(next->completions, 0);
  answer(read_reply(next->xid, kShort, 4));
  EXPECT_TRUE(turn_until([&] { return next->completions > 0; }));
  EXPECT_TRUE(next->good);
  EXPECT_EQ(first->completions, 1);
  expect_goes_on();
}

// The place where a call was noted is the next one's.
TEST_F(TcpReplies, ASecondReplyDoesNotEndTheCallThatFollowed) {
  TcpClientOptions options;
  options.max_calls = 1;
  client_.reset();
  connect(options);
  const auto first = ask(kToyRead, kLong, 1);
  answer(read_reply(first->xid, kLong, 1));
  EXPECT_TRUE(turn_until([&] { return first->completions > 0; }));
  const auto second = ask(kToyRead, kLong, 2);
  answer(read_reply(first->xid, kLong, 1));
  EXPECT_TRUE(turn_until([&] { return dropped() == 1; }));
  EXPECT_EQ(second->completions, 0);
  answer(read_reply(second->xid, kLong, 2));
  EXPECT_TRUE(turn_until([&] { return second->completions > 0; }));
  EXPECT_TRUE(second->good);
}

TEST_F(TcpReplies, AReplyToNoCallIsDroppedHoweverItComes) {
  const auto waiting = ask(kToyRead, kLong, 5);
  std::uint64_t expected = 0;
  for (const std::uint32_t size : {0u, kShort, kLong}) {
    for (const std::size_t fragment : {std::size_t{7}, std::size_t{1000}, SIZE_MAX}) {
      if (size / fragment > 1000) continue;
      send(record_of(read_reply(0xdead'0000, size, 6), fragment));
      EXPECT_TRUE(turn_until([&] { return dropped() == expected + 1; })) << size << " " << fragment;
      ++expected;
    }
  }
  for (const std::size_t bytes : {0u, 3u, 4u, 7u}) {  // too short to have an xid and a type
    answer(ByteSpan(read_reply(waiting->xid, 0, 0)).first(bytes));
    EXPECT_TRUE(turn_until([&] { return dropped() == expected + 1; })) << bytes;
    ++expected;
  }
  const Bytes slowly = record_of(null_reply(0xdead'0001));
  for (const std::byte& one : slowly)
    send({&one, 1});
  EXPECT_TRUE(turn_until([&] { return dropped() == expected + 1; }));
  EXPECT_EQ(waiting->completions, 0);
  answer(read_reply(waiting->xid, kLong, 5));
  EXPECT_TRUE(turn_until([&] { return waiting->completions > 0; }));
  EXPECT_TRUE(waiting->good);
  expect_goes_on();
}

// It has not been sent: whatever that is, its answer it is not.
TEST_F(TcpReplies, AReplyToACallThatWaitsIsDropped) {
  TcpClientOptions options;
  options.max_calls = 1;
  client_.reset();
  connect(options);
  const auto first = ask(kToyNull, 0, 0);
  ToyCall second(++last_xid_, kToyRead, kShort, 8);
  client_->submit(second);
  answer(read_reply(second.xid, kShort, 9));
  EXPECT_TRUE(turn_until([&] { return dropped() == 1; }));
  EXPECT_EQ(second.completions, 0);
  answer(null_reply(first->xid));
  EXPECT_TRUE(turn_until([&] { return first->completions > 0; }));
  take(second);
  answer(read_reply(second.xid, kShort, 8));
  EXPECT_TRUE(turn_until([&] { return second.completions > 0; }));
  EXPECT_TRUE(second.good);
}

// Its memory is gone with whoever asked.
TEST_F(TcpReplies, TheReplyToACallThatWasGivenUpIsDroppedAsOftenAsItComes) {
  for (const std::uint32_t size : {kShort, kLong}) {
    auto given_up = ask(kToyRead, size, 1);
    const auto other = ask(kToyRead, size, 2);
    const std::uint32_t xid = given_up->xid;
    client_->cancel(*given_up);
    given_up.reset();
    const std::uint64_t before = dropped();
    answer(read_reply(xid, size, 1));
    answer(read_reply(xid, size, 1));  // this one has nobody's xid
    EXPECT_TRUE(turn_until([&] { return dropped() == before + 1; }));
    EXPECT_EQ(other->completions, 0);
    answer(read_reply(other->xid, size, 2));
    EXPECT_TRUE(turn_until([&] { return other->completions > 0; }));
    EXPECT_TRUE(other->good);
    EXPECT_EQ(dropped(), before + 1);
  }
  expect_goes_on();
}

TEST_F(TcpReplies, ACallThatIsGivenUpWithinItsReplyLosesTheRestOfIt) {
  for (const std::size_t part : {std::size_t{20}, std::size_t{5000}, std::size_t{kLong}}) {
    auto given_up = ask(kToyRead, kLong, 1);
    const Bytes reply = record_of(read_reply(given_up->xid, kLong, 1));
    send(ByteSpan(reply).first(part));
    for (int i = 0; i < 3; ++i)
      loop_->turn(Duration::zero());
    EXPECT_EQ(given_up->completions, 0);
    client_->cancel(*given_up);
    given_up.reset();
    const auto other = ask(kToyRead, kLong, 2);
    const std::uint64_t before = dropped();
    send(ByteSpan(reply).subspan(part));
    send(reply);  // once more
    EXPECT_TRUE(turn_until([&] { return dropped() == before + 1; })) << part;
    EXPECT_EQ(other->completions, 0);
    answer(read_reply(other->xid, kLong, 2));
    EXPECT_TRUE(turn_until([&] { return other->completions > 0; }));
    EXPECT_TRUE(other->good);
  }
  expect_goes_on();
}

// Until the server has answered it the call counts among those that it works on.
TEST_F(TcpReplies, ACallThatWasGivenUpHoldsItsPlaceUntilItsReplyComes) {
  TcpClientOptions options;
  options.max_calls = 1;
  client_.reset();
  connect(options);
  auto given_up = ask(kToyNull, 0, 0);
  const std::uint32_t xid = given_up->xid;
  client_->cancel(*given_up);
  given_up.reset();
  ToyCall next(++last_xid_, kToyNull, 0, 0);
  client_->submit(next);
  for (int i = 0; i < 5; ++i)
    loop_->turn(Duration::zero());
  int there = 0;
  EXPECT_EQ(::ioctl(peer_.get(), FIONREAD, &there), 0);
  EXPECT_EQ(there, 0);
  answer(null_reply(xid));
  take(next);
  answer(null_reply(next.xid));
  EXPECT_TRUE(turn_until([&] { return next.completions > 0; }));
  EXPECT_TRUE(next.good);
}

}  // namespace
}  // namespace nfsrdma::test
