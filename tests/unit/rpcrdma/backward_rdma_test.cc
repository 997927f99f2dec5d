// SPDX-License-Identifier: Apache-2.0
// Calls of the server over RDMA (RFC 8167): their bytes, replies good and bad, what a client's
// silence or end does, and that calls of the client go on meanwhile.
#include <gtest/gtest.h>

#include "rpcrdma/responder_backward.h"
#include "tests/support/backward_probe.h"
#include "tests/support/raw_client.h"

namespace nfsrdma::test {
namespace {

using std::chrono::seconds;

class BackwardRdma : public ::testing::Test {
 protected:
  ~BackwardRdma() override {
    client_.reset();
    pair_.run();
    EXPECT_EQ(pair_.server->connection_count(), 0u);
    EXPECT_EQ(pair_.fabric.violations(), std::vector<std::string>{});
  }
  void connect() {
    client_ = std::make_unique<RawClient>(pair_);
    forward(1);  // on a server the client speaks first
  }
  ServerConnection& server() { return *pair_.handler.newest; }
  void send(BackwardProbe& probe) {
    ASSERT_TRUE(server().send_backward(probe).ok());
    pair_.run();
  }
  /// A call of the client and its answer.
  void forward(std::uint32_t xid) {
    const std::size_t before = client_->inbox.size();
    client_->send(wrap(xid, 32, RDMA_MSG, ToyCall(xid, kToyNull, 0, 0).head));
    ASSERT_EQ(client_->inbox.size(), before + 1);
    EXPECT_EQ(load_be32(client_->inbox.back().data()), xid);
    EXPECT_EQ(load_be32(client_->inbox.back().data() + 28 + 4), 1u);
    client_->inbox.pop_back();
  }
  static std::vector<std::byte> wrap(std::uint32_t xid, std::uint32_t credits, rdma_proc proc,
                                     ByteSpan rpc, const ChunkLists& chunks = none()) {
    std::vector<std::byte> out(2048);
    out.resize(encode_header(out, xid, credits, proc, chunks));
    out.insert(out.end(), rpc.begin(), rpc.end());
    return out;
  }
  static ChunkLists none() {
    ChunkLists made;
    made.clear();
    return made;
  }
  void answer(std::uint32_t xid, std::uint32_t credits = 16) {
    client_->send(wrap(xid, credits, RDMA_MSG, reply_to(xid)));
  }
  std::uint32_t xid_of(std::size_t i) const { return load_be32(client_->inbox.at(i).data()); }

  SimPair pair_;
  std::unique_ptr<RawClient> client_;
};

// The call of wire.md 7.4, but for the xid and the credits, which are ours to choose.
TEST_F(BackwardRdma, ACallIsAShortMessageWithoutChunks) {
  connect();
  BackwardProbe probe;
  send(probe);
  ASSERT_EQ(client_->inbox.size(), 1u);
  const auto& message = client_->inbox[0];
  ASSERT_EQ(message.size(), 28u + 40u);
  const std::uint32_t xid = load_be32(message.data());
  const std::uint32_t words[] = {xid, 1, 4, 0, 0, 0, 0, xid, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (std::size_t i = 0; i < std::size(words); ++i)
    EXPECT_EQ(load_be32(message.data() + 4 * i), words[i]) << i;
}

TEST_F(BackwardRdma, TheReplyOfALinuxClientArrives) {
  connect();
  BackwardProbe probe;
  send(probe);
  EXPECT_EQ(probe.completions, 0);
  answer(xid_of(0));
  ASSERT_EQ(probe.completions, 1);
  EXPECT_TRUE(probe.ok);
  EXPECT_EQ(probe.answer, reply_to(xid_of(0)));
  EXPECT_EQ(server().describe().stats.errors, 0u);
}

TEST_F(BackwardRdma, XidsOfBothDirectionsAreTheirOwn) {
  connect();
  BackwardProbe probe;
  send(probe);
  const std::uint32_t xid = xid_of(0);
  client_->inbox.clear();
  forward(xid);  // the client's own call of that number is a call
  EXPECT_EQ(probe.completions, 0);
  answer(xid);
  EXPECT_TRUE(probe.ok);
}

TEST_F(BackwardRdma, TheClientsGrantIsKept) {
  connect();
  BackwardProbe probes[8];
  for (BackwardProbe& probe : probes)
    send(probe);
  EXPECT_EQ(client_->inbox.size(), 1u);  // one before the first reply
  answer(xid_of(0), 2);
  EXPECT_EQ(client_->inbox.size(), 3u);
  answer(xid_of(1), 16);
  EXPECT_EQ(client_->inbox.size(), 2u + ResponderBackward::kMost);
  for (std::size_t i = 2; i < client_->inbox.size(); ++i)
    answer(xid_of(i));
  EXPECT_EQ(client_->inbox.size(), 8u);
  for (BackwardProbe& probe : probes)
    EXPECT_TRUE(probe.ok);
}

TEST_F(BackwardRdma, BackwardCreditsDoNotCountForTheClientsCalls) {
  connect();
  BackwardProbe probe;
  send(probe);
  const std::uint32_t granted = server().describe().credits;
  answer(xid_of(0), 1);
  EXPECT_EQ(server().describe().credits, granted);
}

TEST_F(BackwardRdma, SizesUpToTheInlineThreshold) {
  connect();
  ASSERT_EQ(server().max_backward_call(), 4096u - 28u);
  BackwardProbe largest((4096 - 28) / 4), larger((4096 - 28) / 4 + 1);
  const auto refused = server().send_backward(larger);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kInvalid);
  send(largest);
  ASSERT_EQ(client_->inbox.size(), 1u);
  EXPECT_EQ(client_->inbox[0].size(), 4096u);
  EXPECT_EQ(larger.completions, 0);
}

TEST_F(BackwardRdma, WithoutPrivateDataCallsStayUnder1024) {
  client_ = std::make_unique<RawClient>(pair_, false);
  EXPECT_EQ(server().max_backward_call(), 1024u - 28u);
}

TEST_F(BackwardRdma, BadRepliesAreDropped) {
  connect();
  BackwardProbe probe;
  send(probe);
  const std::uint32_t xid = xid_of(0);
  client_->inbox.clear();
  std::vector<std::byte> memory(100);
  const auto good = reply_to(xid);
  ChunkLists read = none(), write = none(), reply = none();
  read.add_read_segment(24, client_->expose(memory, Access::kRemoteRead));
  write.begin_write_chunk();
  write.add_write_segment(client_->expose(memory, Access::kRemoteWrite));
  reply.add_reply_segment(client_->expose(memory, Access::kRemoteWrite));
  client_->send(wrap(xid, 16, RDMA_MSG, good, read));
  client_->send(wrap(xid, 16, RDMA_MSG, good, write));
  client_->send(wrap(xid, 16, RDMA_MSG, good, reply));
  client_->send(wrap(xid + 1, 16, RDMA_MSG, reply_to(xid + 1)));  // never called
  auto neither = good;
  store_be32(neither.data() + 4, 2);
  client_->send(wrap(xid, 16, RDMA_MSG, neither));
  client_->send(wrap(xid, 16, RDMA_DONE, {}));
  EXPECT_EQ(probe.completions, 0);
  EXPECT_TRUE(client_->inbox.empty());
  EXPECT_EQ(server().describe().stats.errors, 6u);
  EXPECT_FALSE(client_->disconnected);
  answer(xid);
  EXPECT_TRUE(probe.ok);
}

TEST_F(BackwardRdma, RepliesThatTheHeaderContradictsAreNotTaken) {
  connect();
  BackwardProbe probe;
  send(probe);
  const std::uint32_t xid = xid_of(0);
  client_->inbox.clear();
  // Neither a call nor a reply: answered as any other message that cannot be read.
  client_->send(wrap(xid + 9, 16, RDMA_MSG, reply_to(xid)));
  client_->send(wrap(xid, 16, RDMA_MSG, ByteSpan(reply_to(xid)).first(4)));
  EXPECT_EQ(probe.completions, 0);
  for (const auto& message : client_->inbox)
    EXPECT_EQ(load_be32(message.data() + 12), RDMA_ERROR);
  answer(xid);
  EXPECT_TRUE(probe.ok);
}

TEST_F(BackwardRdma, RdmaErrorEndsTheCall) {
  connect();
  for (const bool version : {false, true}) {
    BackwardProbe probe;
    client_->inbox.clear();
    send(probe);
    std::vector<std::byte> error(28);
    error.resize(version ? encode_err_vers(error, xid_of(0), 16)
                         : encode_err_chunk(error, xid_of(0), 16));
    client_->send(error);
    EXPECT_EQ(probe.how(), Errc::kRefused);
    client_->send(error);  // once more: of no call now
    EXPECT_EQ(probe.completions, 1);
    EXPECT_FALSE(client_->disconnected);
  }
}

TEST_F(BackwardRdma, NoReplyInTime) {
  connect();
  BackwardProbe probe, next;
  probe.timeout = seconds(3);
  send(probe);
  pair_.network.advance(*pair_.loop, seconds(3));
  EXPECT_EQ(probe.how(), Errc::kTimedOut);
  send(next);
  EXPECT_EQ(client_->inbox.size(), 1u);  // its credit is still with the client
  answer(xid_of(0));
  EXPECT_EQ(probe.completions, 1);
  ASSERT_EQ(client_->inbox.size(), 2u);
  answer(xid_of(1));
  EXPECT_TRUE(next.ok);
}

TEST_F(BackwardRdma, TheEndOfTheConnectionEndsTheCalls) {
  connect();
  BackwardProbe sent, waiting;
  bool closed_after = false;
  sent.done = [&] { closed_after = pair_.handler.closed == 0; };
  send(sent);
  send(waiting);
  client_->cut();
  pair_.run();
  EXPECT_EQ(sent.how(), Errc::kClosed);
  EXPECT_EQ(waiting.how(), Errc::kClosed);
  EXPECT_TRUE(closed_after);
  EXPECT_EQ(pair_.handler.closed, 1u);
}

TEST_F(BackwardRdma, ACallOnAConnectionThatIsGoneIsRefused) {
  connect();
  pair_.handler.hold = true;  // a call with the handler keeps the connection object
  client_->send(wrap(7, 32, RDMA_MSG, ToyCall(7, kToyNull, 0, 0).head));
  client_->cut();
  pair_.run();
  ASSERT_EQ(pair_.handler.closed, 1u);
  BackwardProbe probe;
  const auto refused = server().send_backward(probe);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kClosed);
  pair_.handler.answer_held();
}

TEST_F(BackwardRdma, AServerThatStopsEndsTheCalls) {
  connect();
  BackwardProbe probe, after;
  send(probe);
  bool done = false;
  pair_.server->shutdown(seconds(1), [&] { done = true; });
  EXPECT_FALSE(server().send_backward(after).ok());
  pair_.run();
  pair_.network.advance(*pair_.loop, seconds(2));
  pair_.run();
  EXPECT_TRUE(done);
  EXPECT_EQ(probe.how(), Errc::kClosed);
}

TEST_F(BackwardRdma, TheReplyOfTheClientsCallLeavesFirst) {
  connect();
  pair_.handler.hold = true;
  client_->send_only(wrap(7, 32, RDMA_MSG, ToyCall(7, kToyNull, 0, 0).head));
  pair_.run();
  BackwardProbe probe;
  pair_.handler.answer_held();
  ASSERT_TRUE(server().send_backward(probe).ok());
  pair_.run();
  ASSERT_EQ(client_->inbox.size(), 2u);
  EXPECT_EQ(xid_of(0), 7u);
  EXPECT_EQ(load_be32(client_->inbox[1].data() + 32), 0u);
}

TEST_F(BackwardRdma, EachStepMayFail) {
  // Each work request after the connection stands, on either side, fails in its turn.
  for (std::uint64_t fail = 1; fail < 12; ++fail) {
    SimFaults faults;
    faults.fail_work = fail;
    SimPair pair(fail, faults);
    RawClient client(pair);
    client.send(wrap(1, 32, RDMA_MSG, ToyCall(1, kToyNull, 0, 0).head));
    BackwardProbe probes[3];
    int taken = 0;
    for (BackwardProbe& probe : probes) {
      if (client.disconnected || pair.handler.closed > 0) break;
      if (!pair.handler.newest->send_backward(probe).ok()) break;
      ++taken;
      pair.run();
      if (client.inbox.empty()) continue;
      const std::uint32_t xid = load_be32(client.inbox.back().data());
      client.send(wrap(xid, 16, RDMA_MSG, reply_to(xid)));
    }
    client.cut();
    pair.run();
    for (int i = 0; i < taken; ++i)
      EXPECT_EQ(probes[i].completions, 1) << fail;
    EXPECT_EQ(pair.server->connection_count(), 0u);
  }
}

TEST_F(BackwardRdma, ManyConnectionsGiveBackWhatTheyTook) {
  // More rounds than there are receives: what is not given back would be missed.
  RdmaServerLimits limits;
  limits.credits.receives = 40;
  limits.credits.reserve = 4;
  SimPair pair(5, {}, limits);
  for (int round = 0; round < 60; ++round) {
    RawClient client(pair);
    ASSERT_TRUE(client.connected());
    client.send(wrap(1, 32, RDMA_MSG, ToyCall(1, kToyNull, 0, 0).head));
    BackwardProbe answered, lost;
    ASSERT_TRUE(pair.handler.newest->send_backward(answered).ok());
    pair.run();
    ASSERT_EQ(client.inbox.size(), 2u) << round;
    const std::uint32_t xid = load_be32(client.inbox.back().data());
    client.send(wrap(xid, 16, RDMA_MSG, reply_to(xid)));
    EXPECT_TRUE(answered.ok);
    ASSERT_TRUE(pair.handler.newest->send_backward(lost).ok());
    pair.run();
    client.cut();
    pair.run();
    EXPECT_EQ(lost.how(), Errc::kClosed);
  }
}

TEST_F(BackwardRdma, WithoutAReceiveForTheReplyNothingIsSent) {
  RdmaServerLimits limits;
  limits.credits.receives = 8;
  limits.credits.reserve = 0;
  limits.credits.initial = 8;  // all of them
  SimPair pair(5, {}, limits);
  RawClient client(pair);
  client.send(wrap(1, 32, RDMA_MSG, ToyCall(1, kToyNull, 0, 0).head));
  ASSERT_EQ(client.inbox.size(), 1u);
  BackwardProbe probe;
  probe.timeout = seconds(1);
  ASSERT_TRUE(pair.handler.newest->send_backward(probe).ok());
  pair.run();
  EXPECT_EQ(client.inbox.size(), 1u);
  for (int i = 0; i < 110; ++i)
    pair.network.advance(*pair.loop, std::chrono::milliseconds(10));
  EXPECT_EQ(probe.how(), Errc::kExhausted);
}

// --- Our own client ---

TEST(BackwardRdmaClient, AnswersAmongItsOwnCalls) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  for (const std::size_t bytes : {24u, 1024u}) {
    pair.log.backward_reply = bytes;
    pair.log.backward_calls.clear();
    BackwardProbe probe;
    ASSERT_TRUE(pair.handler.newest->send_backward(probe).ok());
    pair.run();
    ASSERT_EQ(pair.log.backward_calls.size(), 1u);
    EXPECT_EQ(pair.log.backward_calls[0].size(), probe.message.size());
    ASSERT_TRUE(probe.ok);
    EXPECT_EQ(probe.answer.size(), bytes);
    EXPECT_TRUE(pair.call(kToyRead, 10'000).good);
    EXPECT_TRUE(pair.call(kToyWrite, 10'000).good);
  }
}

TEST(BackwardRdmaClient, AnswersMoreThanItGrants) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  pair.log.backward_reply = 24;
  std::vector<std::unique_ptr<BackwardProbe>> probes;
  for (int i = 0; i < 20; ++i) {
    probes.push_back(std::make_unique<BackwardProbe>());
    ASSERT_TRUE(pair.handler.newest->send_backward(*probes.back()).ok());
  }
  pair.run();
  for (const auto& probe : probes)
    EXPECT_TRUE(probe->ok);
}

TEST(BackwardRdmaClient, WhoIsCalledMayHangUp) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  pair.log.backward_reply = 24;
  pair.log.on_backward = [&] { pair.client->close(); };
  BackwardProbe probe;
  ASSERT_TRUE(pair.handler.newest->send_backward(probe).ok());
  pair.run();
  EXPECT_EQ(probe.how(), Errc::kClosed);
  EXPECT_EQ(pair.log.closed, 1);
}

TEST(BackwardRdmaClient, DropsCallsAndGoesOn) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  BackwardProbe probe;
  probe.timeout = seconds(1);
  ASSERT_TRUE(pair.handler.newest->send_backward(probe).ok());
  pair.run();
  EXPECT_TRUE(pair.call(kToyRead, 10'000).good);
  EXPECT_TRUE(pair.call(kToyWrite, 10'000).good);
  pair.network.advance(*pair.loop, seconds(1));
  EXPECT_EQ(probe.how(), Errc::kTimedOut);
  EXPECT_EQ(pair.log.closed, 0);
}

TEST(BackwardRdmaClient, TakesACallForNoReplyWhateverItsXid) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  pair.handler.hold = true;
  BackwardProbe probe;
  // The first xid of the connection's backward direction is known (responder_backward.cc).
  ToyCall call(static_cast<std::uint32_t>(pair.handler.newest->id) << 16, kToyRead, 10'000, 3);
  pair.client->submit(call);
  pair.run();
  ASSERT_TRUE(pair.handler.newest->send_backward(probe).ok());
  pair.run();
  EXPECT_EQ(call.completions, 0);
  pair.handler.answer_held();
  pair.run();
  EXPECT_TRUE(call.good);
}

}  // namespace
}  // namespace nfsrdma::test
