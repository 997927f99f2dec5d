// SPDX-License-Identifier: Apache-2.0
// Requester against responder over the simulated fabric: what arrives is what was sent, by the way
// it should take.
#include <gtest/gtest.h>

#include "tests/support/sim_pair.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kSizes[] = {0,    1,    2,    3,    4,     5,      1000,    3900,
                                    4095, 4096, 4097, 8191, 65536, 100001, 1 << 20, (1 << 20) + 1};

class RdmaTransport : public ::testing::Test {
 protected:
  ~RdmaTransport() override { EXPECT_EQ(pair_.fabric.violations(), std::vector<std::string>{}); }
  SimPair pair_;
};

TEST_F(RdmaTransport, ConnectsAndAnswersNull) {
  pair_.connect();
  ASSERT_EQ(pair_.log.ready, 1) << pair_.log.detail;
  EXPECT_TRUE(pair_.call(kToyNull, 0).good);
}

TEST_F(RdmaTransport, ReadsOfEverySizeArriveWhole) {
  pair_.connect();
  for (std::uint32_t size : kSizes)
    EXPECT_TRUE(pair_.call(kToyRead, size, size).good) << size;
}

TEST_F(RdmaTransport, WritesOfEverySizeArriveWhole) {
  pair_.connect();
  for (std::uint32_t size : kSizes)
    EXPECT_TRUE(pair_.call(kToyWrite, size, size).good) << size;
}

TEST_F(RdmaTransport, LongRepliesArriveWhole) {
  pair_.connect();
  for (std::uint32_t size : kSizes)
    EXPECT_TRUE(pair_.call(kToyList, size, size).good) << size;
}

TEST_F(RdmaTransport, LargeReadsGoStraightIntoTheSink) {
  pair_.connect();
  EXPECT_TRUE(pair_.call(kToyRead, 4096).placed);
  EXPECT_EQ(pair_.client->describe().stats.rdma_write_bytes, 4096u);
}

TEST_F(RdmaTransport, SmallReadsStayInline) {
  pair_.connect();
  EXPECT_FALSE(pair_.call(kToyRead, 100).placed);
  EXPECT_EQ(pair_.client->describe().stats.rdma_write_bytes, 0u);
}

TEST_F(RdmaTransport, ReadsWithALongRestArriveInTheReplyChunk) {
  pair_.connect();
  for (std::uint32_t size : kSizes) {
    ToyCall call(++pair_.last_xid, kToyRead, size, size);
    call.max_reply = 5000;
    pair_.client->submit(call);
    pair_.run();
    EXPECT_TRUE(call.good) << size;
    EXPECT_FALSE(call.placed) << size;
  }
}

TEST_F(RdmaTransport, NothingStaysExposedAfterACall) {
  pair_.connect();
  for (auto procedure : {kToyRead, kToyWrite, kToyList}) {
    ToyCall call(++pair_.last_xid, procedure, 50000, 1);
    std::size_t exposed = 99;
    call.done = [&](ToyCall&) { exposed = pair_.fabric.exposed_regions(); };
    pair_.client->submit(call);
    pair_.run();
    EXPECT_EQ(exposed, 0u);
  }
}

TEST_F(RdmaTransport, CreditsGrowWithUse) {
  pair_.connect();
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (int i = 0; i < 500; ++i) {
    calls.push_back(std::make_unique<ToyCall>(++pair_.last_xid, kToyNull, 0, 0));
    pair_.client->submit(*calls.back());
  }
  pair_.run();
  for (auto& call : calls)
    EXPECT_TRUE(call->good);
  EXPECT_EQ(pair_.client->describe().credits, 128u);
}

TEST_F(RdmaTransport, RepliesInvalidateTheOneHandle) {
  pair_.connect();
  pair_.call(kToyRead, 50000);
  EXPECT_EQ(pair_.client->describe().stats.invalidations, 1u);
}

TEST_F(RdmaTransport, ADeviceThatLostItInvalidatesNothingAndSaysSo) {
  pair_.connect();
  pair_.call(kToyRead, 50000);
  EXPECT_TRUE(pair_.handler.newest->describe().remote_invalidation);
  pair_.fabric.server_device_info(*pair_.loop).send_with_invalidate = false;
  pair_.call(kToyRead, 50000);
  EXPECT_EQ(pair_.client->describe().stats.invalidations, 1u);
  EXPECT_EQ(pair_.handler.newest->describe().stats.invalidations, 1u);
  EXPECT_FALSE(pair_.handler.newest->describe().remote_invalidation);
}

TEST_F(RdmaTransport, ClosingFailsCallsWithClosed) {
  pair_.connect();
  pair_.handler.hold = true;
  ToyCall& call = pair_.call(kToyRead, 50000);
  EXPECT_EQ(call.completions, 0);
  pair_.client->close();
  pair_.run();
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.error.code, Errc::kClosed);
  EXPECT_EQ(pair_.log.closed, 1);
}

TEST_F(RdmaTransport, CancelledCallIsNeverCompletedAndItsCreditComesBack) {
  pair_.connect();
  pair_.handler.hold = true;
  ToyCall& cancelled = pair_.call(kToyNull, 0);
  pair_.client->cancel(cancelled);
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.run();
  EXPECT_EQ(cancelled.completions, 0);
  EXPECT_TRUE(pair_.call(kToyNull, 0).good);
}

TEST_F(RdmaTransport, RefusedConnectionIsReported) {
  pair_.listener.reset();
  pair_.connect();
  EXPECT_EQ(pair_.log.ready, 0);
  EXPECT_EQ(pair_.log.closed, 1);
  EXPECT_EQ(pair_.log.why.code, Errc::kRefused);
}

TEST_F(RdmaTransport, CallsWithTheHandlerOutliveTheConnection) {
  pair_.connect();
  pair_.handler.hold = true;
  pair_.call(kToyWrite, 100000, 3);
  ASSERT_EQ(pair_.handler.held.size(), 1u);
  pair_.client->close();
  pair_.run();
  EXPECT_EQ(pair_.handler.closed, 1u);
  EXPECT_EQ(pair_.server->connection_count(), 1u);
  pair_.handler.answer_held();  // reads its arguments
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
  pair_.run();
  EXPECT_EQ(pair_.server->connection_count(), 0u);
}

TEST_F(RdmaTransport, ShutdownFinishesCallsFirst) {
  pair_.connect();
  pair_.handler.hold = true;
  ToyCall& call = pair_.call(kToyNull, 0);
  bool done = false;
  pair_.server->shutdown(std::chrono::seconds(5), [&] { done = true; });
  pair_.run();
  EXPECT_FALSE(done);
  pair_.handler.answer_held();
  pair_.run();
  EXPECT_TRUE(call.good);
  EXPECT_TRUE(done);
  EXPECT_EQ(pair_.log.closed, 1);
}

TEST(RdmaTransportLimits, CallsWaitForBuffersInOrder) {
  RdmaServerLimits limits;
  SimPair pair(7, {}, limits, 9u << 20);  // room for a handful of large calls at a time
  pair.connect();
  pair.call(kToyNull, 0);
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (int i = 0; i < 64; ++i) {
    calls.push_back(std::make_unique<ToyCall>(++pair.last_xid, kToyWrite, 1 << 20, i));
    pair.client->submit(*calls.back());
  }
  pair.run();
  for (auto& call : calls)
    EXPECT_TRUE(call->good);
  EXPECT_EQ(pair.fabric.violations(), std::vector<std::string>{});
}

TEST(RdmaTransportLimits, InlineSizesAreTheSmallerOfBoth) {
  RdmaServerLimits limits;
  limits.inline_bytes = 1024;
  SimPair pair(3, {}, limits);
  RdmaClientOptions options;
  options.inline_bytes = 8192;
  pair.connect(options);
  for (std::uint32_t size : {100u, 900u, 1024u, 2000u, 7000u}) {
    EXPECT_TRUE(pair.call(kToyRead, size).good);
    EXPECT_TRUE(pair.call(kToyWrite, size).good);
    EXPECT_TRUE(pair.call(kToyList, size).good);
  }
  EXPECT_EQ(pair.client->describe().inline_send, 1024u);
  EXPECT_EQ(pair.fabric.violations(), std::vector<std::string>{});
}

/// A receive of 8 KiB takes a buffer of 64 KiB.
TEST(RdmaTransportLimits, LargeReceivesLeaveRoomForPayload) {
  RdmaServerLimits limits;
  limits.inline_bytes = 8192;
  SimPair pair(3, {}, limits, BufferPool::kLeastBudget);
  pair.connect();
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (int i = 0; i < 500; ++i) {
    calls.push_back(std::make_unique<ToyCall>(++pair.last_xid, kToyNull, 0, 0));
    pair.client->submit(*calls.back());
  }
  pair.run();
  EXPECT_GT(pair.pool->in_use(), 0u);
  EXPECT_LE(pair.pool->in_use(), pair.pool->budget() / 2);  // with those of the replies
  EXPECT_TRUE(pair.call(kToyWrite, 1 << 20).good);
}

/// Above 4 KiB a message takes a buffer of 64 KiB, and a call has two: its own and its receive.
TEST(RdmaTransportLimits, EveryCreditIsWorthACallWhateverTheInlineSize) {
  RdmaServerLimits limits;
  limits.inline_bytes = 16384;
  limits.credits.maximum = 1024;
  // Virtual memory: the ledger gives all that is asked for while an eighth of it is not handed out.
  SimPair pair(3, {}, limits, std::size_t{2} << 30);
  RdmaClientOptions options;
  options.inline_bytes = 16384;
  options.max_credits = 1024;
  pair.connect(options);
  std::vector<std::unique_ptr<ToyCall>> calls;
  const auto submit = [&](int count) {
    for (int i = 0; i < count; ++i) {
      calls.push_back(std::make_unique<ToyCall>(++pair.last_xid, kToyNull, 0, 0));
      pair.client->submit(*calls.back());
    }
    pair.run();
  };
  pair.handler.hold = true;
  submit(4096);
  // The grant grows while it is used.
  while (pair.client->describe().calls_in_progress < 1024 && !pair.handler.held.empty()) {
    pair.handler.answer_held();
    pair.run();
  }
  EXPECT_EQ(pair.client->describe().calls_in_progress, 1024u);
  EXPECT_EQ(pair.client->describe().inline_send, 16384u);
  pair.handler.hold = false;
  pair.handler.answer_held();
  pair.run();
  const auto good =
      std::count_if(calls.begin(), calls.end(), [](auto& call) { return call->good; });
  EXPECT_EQ(good, 4096);
}

TEST(RdmaTransportLimits, OneSgePerRequestIsEnough) {
  SimPair pair(3);
  pair.fabric.device_info().max_send_sge = 1;
  pair.connect();
  for (std::uint32_t size : {0u, 1u, 100u, 3000u, 50001u}) {
    EXPECT_TRUE(pair.call(kToyRead, size).good) << size;
    EXPECT_TRUE(pair.call(kToyList, size).good) << size;
  }
}

}  // namespace
}  // namespace nfsrdma::test
