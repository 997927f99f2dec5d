// SPDX-License-Identifier: Apache-2.0
// Calls of the server over TCP: records among those of the client's calls.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/backward_probe.h"
#include "tests/support/tcp_transport.h"

namespace nfsrdma::test {
namespace {

class BackwardTcp : public TcpTransport {
 protected:
  BackwardTcp() { start(); }
  void connect_raw() { socket_ = raw(); }
  ServerConnection& server() { return *handler_.newest; }
  void send(BackwardProbe& probe) { ASSERT_TRUE(server().send_backward(probe).ok()); }

  void put(ByteSpan message, std::uint32_t mark_flags = 0x80000000u) {
    std::vector<std::byte> record(4);
    store_be32(record.data(), mark_flags | static_cast<std::uint32_t>(message.size()));
    record.insert(record.end(), message.begin(), message.end());
    ASSERT_EQ(::send(socket_.get(), record.data(), record.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(record.size()));
  }
  /// The next record of the server's.
  std::vector<std::byte> get() {
    std::vector<std::byte> got;
    std::size_t wanted = 4;
    turn_until([&] {
      std::byte bytes[4096];
      while (got.size() < wanted) {
        const ssize_t n =
            ::recv(socket_.get(), bytes, std::min(sizeof bytes, wanted - got.size()), MSG_DONTWAIT);
        if (n <= 0) return false;
        got.insert(got.end(), bytes, bytes + n);
        if (got.size() == 4) wanted += load_be32(got.data()) & 0x7fffffffu;
      }
      return true;
    });
    EXPECT_EQ(got.size(), wanted);
    EXPECT_NE(load_be32(got.data()) & 0x80000000u, 0u);
    got.erase(got.begin(), got.begin() + 4);
    return got;
  }
  std::uint64_t errors() { return server().describe().stats.errors; }

  UniqueFd socket_;
};

TEST_F(BackwardTcp, ACallIsARecordAndSoIsItsReply) {
  connect_raw();
  BackwardProbe probe;
  send(probe);
  const auto call = get();
  ASSERT_EQ(call.size(), 40u);
  auto expected = backward_message(10);
  std::copy_n(call.begin(), 4, expected.begin());  // the xid
  EXPECT_EQ(call, expected);
  const std::uint32_t xid = load_be32(call.data());
  put(reply_to(xid));
  ASSERT_TRUE(turn_until([&] { return probe.completions > 0; }));
  EXPECT_TRUE(probe.ok);
  EXPECT_EQ(probe.answer, reply_to(xid));
  EXPECT_EQ(errors(), 0u);
}

TEST_F(BackwardTcp, LargeCallsAndReplies) {
  connect_raw();
  const std::size_t most = server().max_backward_call();
  ASSERT_GE(most, 4096u);
  BackwardProbe probe(most / 4), larger(most / 4 + 1);
  const auto refused = server().send_backward(larger);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kInvalid);
  send(probe);
  const auto call = get();
  EXPECT_EQ(call.size(), most);
  auto reply = reply_to(load_be32(call.data()));
  reply.resize(200'000, std::byte{7});
  put(reply);
  ASSERT_TRUE(turn_until([&] { return probe.completions > 0; }));
  EXPECT_EQ(probe.answer, reply);
}

TEST_F(BackwardTcp, ARepliesFragmentsArePutTogether) {
  connect_raw();
  BackwardProbe probe;
  send(probe);
  const auto reply = reply_to(load_be32(get().data()));
  put(ByteSpan(reply).first(6), 0);
  put({}, 0);
  put(ByteSpan(reply).subspan(6));
  ASSERT_TRUE(turn_until([&] { return probe.completions > 0; }));
  EXPECT_EQ(probe.answer, reply);
}

TEST_F(BackwardTcp, BothDirectionsAtOnce) {
  connect_raw();
  std::vector<std::unique_ptr<BackwardProbe>> probes;
  for (std::uint32_t i = 0; i < 40; ++i) {
    probes.push_back(std::make_unique<BackwardProbe>());
    send(*probes.back());
    put(ToyCall(i, kToyNull, 0, 0).head);
  }
  std::size_t calls = 0, replies = 0;
  while (calls + replies < 80) {
    const auto message = get();
    ASSERT_GE(message.size(), 8u);
    if (load_be32(message.data() + 4) == 0) {
      ++calls;
      put(reply_to(load_be32(message.data())));
    } else {
      ++replies;
    }
  }
  EXPECT_EQ(calls, 40u);
  ASSERT_TRUE(turn_until([&] { return probes.back()->completions > 0; }));
  for (const auto& probe : probes)
    EXPECT_TRUE(probe->ok);
}

TEST_F(BackwardTcp, WhatIsNoReplyOfOursIsDropped) {
  connect_raw();
  put(reply_to(5));  // before there was any call
  ASSERT_TRUE(turn_until([&] { return errors() == 1; }));
  BackwardProbe probe;
  send(probe);
  const std::uint32_t xid = load_be32(get().data());
  put(reply_to(xid + 1));
  put(ByteSpan(reply_to(xid)).first(7));
  auto neither = reply_to(xid);
  store_be32(neither.data() + 4, 2);
  put(neither);
  ASSERT_TRUE(turn_until([&] { return errors() == 4; }));
  EXPECT_EQ(probe.completions, 0);
  put(reply_to(xid));
  put(reply_to(xid));  // a second one is nobody's
  ASSERT_TRUE(turn_until([&] { return errors() == 5; }));
  EXPECT_EQ(probe.completions, 1);
  EXPECT_TRUE(probe.ok);
  EXPECT_EQ(handler_.closed, 0u);
}

TEST_F(BackwardTcp, NoReplyInTime) {
  connect_raw();
  BackwardProbe probe;
  probe.timeout = std::chrono::milliseconds(20);
  send(probe);
  ASSERT_TRUE(turn_until([&] { return probe.completions > 0; }));
  EXPECT_EQ(probe.how(), Errc::kTimedOut);
  put(reply_to(load_be32(get().data())));
  ASSERT_TRUE(turn_until([&] { return errors() == 1; }));
}

TEST_F(BackwardTcp, TheEndOfTheConnectionEndsTheCalls) {
  connect_raw();
  BackwardProbe probe;
  bool before_closed = false;
  probe.done = [&] { before_closed = handler_.closed == 0; };
  send(probe);
  (void)get();
  socket_.reset();
  ASSERT_TRUE(turn_until([&] { return handler_.closed == 1; }));
  EXPECT_EQ(probe.how(), Errc::kClosed);
  EXPECT_TRUE(before_closed);
}

TEST_F(BackwardTcp, AServerThatStopsEndsTheCalls) {
  connect_raw();
  BackwardProbe probe, after;
  send(probe);
  (void)get();
  bool done = false;
  server_->shutdown(std::chrono::seconds(1), [&] { done = true; });
  const auto refused = server().send_backward(after);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kClosed);
  ASSERT_TRUE(turn_until([&] { return done; }));
  EXPECT_EQ(probe.how(), Errc::kClosed);
}

TEST_F(BackwardTcp, ACancelledCallLeavesNothingBehind) {
  connect_raw();
  auto probe = std::make_unique<BackwardProbe>();
  send(*probe);
  probe.reset();  // before anything was written: the bytes are the connection's already
  const auto call = get();
  put(reply_to(load_be32(call.data())));
  ASSERT_TRUE(turn_until([&] { return errors() == 1; }));
}

// --- Our own client ---

TEST_F(BackwardTcp, OurClientAnswersAmongItsOwnCalls) {
  client_ = make_tcp_transport(*loop_, listener_->address(), {}, log_);
  ASSERT_TRUE(turn_until([this] { return log_.ready == 1 && handler_.opened == 1; }));
  log_.backward_reply = 1024;
  std::vector<std::unique_ptr<BackwardProbe>> probes;
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 0; i < 4; ++i) {
    // Some are in one read, some are not, and the data of replies goes past them.
    calls.push_back(std::make_unique<ToyCall>(i + 1, kToyRead, 200'000, 3));
    client_->submit(*calls.back());
    probes.push_back(std::make_unique<BackwardProbe>(i % 2 == 0 ? 10 : 16'000));
    send(*probes.back());
  }
  ASSERT_TRUE(turn_until([&] {
    int done = 0;
    for (int i = 0; i < 4; ++i)
      done += probes[i]->completions + calls[i]->completions;
    return done == 8;
  }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(calls[i]->good);
    EXPECT_TRUE(probes[i]->ok);
    EXPECT_EQ(probes[i]->answer.size(), 1024u);
  }
  ASSERT_EQ(log_.backward_calls.size(), 4u);
  EXPECT_EQ(log_.backward_calls[1].size(), 64'000u);
}

TEST_F(BackwardTcp, AServerThatReadsNoRepliesIsNotAnsweredForEver) {
  client_ = make_tcp_transport(*loop_, listener_->address(), {}, log_);
  ASSERT_TRUE(turn_until([this] { return log_.ready == 1 && handler_.opened == 1; }));
  log_.backward_reply = 1024;
  // Each of them is handed out before the client writes anything.
  std::vector<std::unique_ptr<BackwardProbe>> probes;
  for (int i = 0; i < 12; ++i) {
    probes.push_back(std::make_unique<BackwardProbe>());
    send(*probes.back());
  }
  ASSERT_TRUE(turn_until(
      [this] { return log_.backward_calls.size() + client_->describe().stats.errors >= 12; }));
  EXPECT_LE(log_.backward_calls.size(), 12u);
  BackwardProbe last;
  ASSERT_TRUE(turn_until([&] { return probes[0]->completions == 1; }));
  send(last);
  ASSERT_TRUE(turn_until([&] { return last.completions == 1; }));
  EXPECT_TRUE(last.ok);
}

TEST_F(BackwardTcp, OurClientMayHangUpWhenCalled) {
  client_ = make_tcp_transport(*loop_, listener_->address(), {}, log_);
  ASSERT_TRUE(turn_until([this] { return log_.ready == 1 && handler_.opened == 1; }));
  log_.backward_reply = 24;
  log_.on_backward = [&] { client_->close(); };
  BackwardProbe probe;
  send(probe);
  ASSERT_TRUE(turn_until([&] { return probe.completions == 1; }));
  EXPECT_EQ(probe.how(), Errc::kClosed);
}

TEST_F(BackwardTcp, OurClientDropsCallsAndGoesOn) {
  client_ = make_tcp_transport(*loop_, listener_->address(), {}, log_);
  ASSERT_TRUE(turn_until([this] { return log_.ready == 1 && handler_.opened == 1; }));
  handler_.hold = true;
  // The server's calls have the xids of the client's: the small one, and one that is not all there
  // at the first read, as replies of READ are put straight to their place.
  const std::uint32_t first = static_cast<std::uint32_t>(server().id) << 16;
  ToyCall small(first, kToyNull, 0, 3), large(first + 1, kToyRead, 60'000, 3);
  client_->submit(small);
  client_->submit(large);
  ASSERT_TRUE(turn_until([this] { return handler_.held.size() == 2; }));
  BackwardProbe short_call, long_call(16'000);
  send(short_call);
  send(long_call);
  ASSERT_TRUE(turn_until([this] { return client_->describe().stats.errors == 2; }));
  EXPECT_EQ(small.completions + large.completions, 0);
  handler_.answer_held();
  ASSERT_TRUE(turn_until([&] { return small.completions + large.completions == 2; }));
  EXPECT_TRUE(small.good);
  EXPECT_TRUE(large.good);
  EXPECT_EQ(log_.closed, 0);
}

}  // namespace
}  // namespace nfsrdma::test
