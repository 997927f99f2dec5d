// SPDX-License-Identifier: Apache-2.0
// The responder against clients that want more than their share: of the pool's memory by being
// slow, of the receives by ignoring their grant, of the connections by saying nothing.
#include <gtest/gtest.h>

#include "tests/support/raw_client.h"

namespace nfsrdma::test {
namespace {

std::vector<std::byte> message(std::uint32_t xid, const ChunkLists& chunks, ByteSpan rpc) {
  std::vector<std::byte> out(2048);
  out.resize(encode_header(out, xid, 32, RDMA_MSG, chunks));
  out.insert(out.end(), rpc.begin(), rpc.end());
  return out;
}

std::vector<std::byte> null_call(std::uint32_t xid) {
  ChunkLists none;
  none.clear();
  return message(xid, none, ToyCall(xid, kToyNull, 0, 0).head);
}

class ResponderShares : public ::testing::Test {
 protected:
  explicit ResponderShares(const RdmaServerLimits& limits = {}) : pair_(1, {}, limits) {}
  ~ResponderShares() override {
    pair_.network.faults().max_delay = std::chrono::microseconds(50);
    clients_.clear();
    pair_.handler.hold = false;
    pair_.handler.answer_held();
    pair_.run();
    EXPECT_EQ(pair_.server->connection_count(), 0u);
    EXPECT_EQ(pair_.fabric.violations(), std::vector<std::string>{});
  }
  RawClient& connect() {
    clients_.push_back(std::make_unique<RawClient>(pair_));
    return *clients_.back();
  }
  bool is_served(RawClient& client, std::uint32_t xid) {
    const std::size_t before = client.inbox.size();
    client.send(null_call(xid));
    return client.inbox.size() == before + 1;
  }

  SimPair pair_;
  std::vector<std::unique_ptr<RawClient>> clients_;
};

/// A client that fills the pool with WRITEs of 4 MiB in sixteen segments, and hands out one every
/// minute or so.
class SlowClient : public ResponderShares {
 protected:
  static constexpr std::uint32_t kCalls = 15;
  static constexpr std::uint32_t kBytes = 4u << 20;
  static constexpr std::uint32_t kSegments = 16;

  void fill_the_pool() {
    RawClient& client = connect();
    ToyCall call(0, kToyWrite, kBytes, 9);
    std::copy(call.payload.begin(), call.payload.end(), data_.begin());
    for (std::uint32_t i = 0; i < kCalls; ++i)
      write(client, i, call);
    while (pair_.pool->in_use() < kCalls / 2 * std::size_t{kBytes})
      ASSERT_GT(pair_.run(1), 0u);
    pair_.network.faults().max_delay = std::chrono::seconds(19);
    begun_ = pair_.network.now();
  }

  void write(RawClient& client, std::uint32_t xid, const ToyCall& call) {
    std::vector<std::byte> rpc(call.head.begin(), call.head.end());
    store_be32(rpc.data(), xid);
    // Each call its own, since the reply invalidates it.
    const Segment all = client.expose(data_, Access::kRemoteRead);
    ChunkLists chunks;
    chunks.clear();
    for (std::uint32_t i = 0; i < kSegments; ++i) {
      const std::uint32_t part = kBytes / kSegments;
      chunks.add_read_segment(static_cast<std::uint32_t>(rpc.size()),
                              {all.handle, part, all.offset + part * i});
    }
    rpc.insert(rpc.end(), call.tail.begin(), call.tail.end());
    client.send_only(message(xid, chunks, rpc));
  }

  std::vector<std::byte> data_ = std::vector<std::byte>(kBytes);
  TimePoint begun_{};
};

/// Somebody of another host.
struct Other : BufferWaiter {
  SimPair& pair;
  std::size_t bytes;
  BufferShare share;
  TimePoint served{};
  explicit Other(SimPair& p, std::size_t size = std::size_t{4} << 20) : pair(p), bytes(size) {}
  void on_buffers() override {
    if (pair.pool->acquire(bytes)) {
      served = pair.network.now();
    } else {
      pair.pool->wait_for_buffers(*this, share);
    }
  }
};

TEST_F(SlowClient, GivesWayToOthers) {
  fill_the_pool();
  std::vector<Buffer> rest;
  while (Buffer buffer = pair_.pool->acquire(kBytes))
    rest.push_back(std::move(buffer));
  Other other(pair_);
  other.on_buffers();
  pair_.run();
  EXPECT_NE(other.served, TimePoint{});
  EXPECT_LT(other.served - begun_, std::chrono::minutes(4));
  EXPECT_TRUE(clients_[0]->disconnected);
}

TEST_F(SlowClient, HasItsTimeWhenNobodyWaits) {
  fill_the_pool();
  pair_.run();
  EXPECT_GT(pair_.network.now() - begun_, std::chrono::minutes(10));
  EXPECT_FALSE(clients_[0]->disconnected);
  EXPECT_EQ(clients_[0]->inbox.size(), kCalls);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

// A client that asks for nothing, and takes none of the answers for a long time.
TEST_F(ResponderShares, WhoTakesTheSmallestRepliesSlowlyGivesWayToOthers) {
  RawClient& client = connect();
  pair_.handler.hold = true;
  for (std::uint32_t call = 0; call < 8; ++call)
    client.send(null_call(call));
  pair_.network.faults().max_delay = std::chrono::hours(10);
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.loop->turn(Duration::zero());
  std::vector<Buffer> rest;
  for (const std::size_t size : {std::size_t{4} << 20, std::size_t{4096}}) {
    while (Buffer buffer = pair_.pool->acquire(size))
      rest.push_back(std::move(buffer));
  }
  Other other(pair_, 4096);
  other.on_buffers();
  pair_.run();
  EXPECT_NE(other.served, TimePoint{}) << "what it held is not kept for calls to come";
  EXPECT_TRUE(client.disconnected);
}

/// Each has 8 credits, and 64 receives are posted besides for all of them.
TEST_F(ResponderShares, WhoIgnoresItsGrantLeavesReceivesToOthers) {
  RawClient& honest = connect();
  for (int i = 0; i < 3; ++i)
    connect();
  pair_.handler.hold = true;
  for (std::uint32_t call = 0; call < 36; ++call) {
    for (std::size_t i = 1; i < clients_.size(); ++i)
      clients_[i]->send_only(null_call(call));
    pair_.run();
  }
  std::size_t cut = 0;
  for (std::size_t i = 1; i < clients_.size(); ++i)
    cut += clients_[i]->disconnected ? 1 : 0;
  EXPECT_GE(cut, 1u);
  for (std::uint32_t call = 0; call < 8; ++call)
    honest.send(null_call(1000 + call));
  EXPECT_FALSE(honest.disconnected);
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.run();
  EXPECT_EQ(honest.inbox.size(), 8u);
}

TEST_F(ResponderShares, WhoIgnoresItsGrantMayWhileThereAreReceives) {
  RawClient& client = connect();
  pair_.handler.hold = true;
  for (std::uint32_t call = 0; call < 36; ++call)
    client.send(null_call(call));
  EXPECT_FALSE(client.disconnected);
}

// Its messages are on their way when it is cut, and more may come until it knows.
TEST_F(ResponderShares, ACutConnectionHasNoMoreOfItsCallsServed) {
  RawClient& greedy = connect();
  for (int i = 0; i < 4; ++i)
    connect();  // so that there are more receives than are tolerated
  pair_.handler.hold = true;
  for (std::uint32_t call = 0; call < 100; ++call)
    greedy.send_only(null_call(call));
  pair_.run();
  EXPECT_TRUE(greedy.disconnected);
  const std::size_t served = pair_.handler.calls;
  pair_.handler.answer_held();
  RawClient& modest = connect();
  for (std::uint32_t call = 0; call < served; ++call)
    modest.send_only(null_call(call));
  pair_.run();
  EXPECT_FALSE(modest.disconnected) << "so many are tolerated";
  EXPECT_EQ(pair_.handler.calls, 2 * served);
}

class ResponderPlaces : public ResponderShares {
 protected:
  ResponderPlaces() : ResponderShares(three_connections()) {}
  static RdmaServerLimits three_connections() {
    RdmaServerLimits limits;
    limits.max_connections = 3;
    return limits;
  }
};

TEST_F(ResponderPlaces, SilentConnectionsMakeRoomWhenAllPlacesAreTaken) {
  RawClient& busy = connect();
  EXPECT_TRUE(is_served(busy, 1));
  RawClient& first = connect();
  pair_.network.advance(*pair_.loop, std::chrono::seconds(1));
  RawClient& second = connect();
  RawClient& third = connect();
  EXPECT_TRUE(third.connected());
  EXPECT_TRUE(first.disconnected) << "silent for longest";
  EXPECT_TRUE(is_served(second, 2));
  EXPECT_TRUE(is_served(third, 3));
  EXPECT_FALSE(connect().connected()) << "each has carried a call";
  EXPECT_TRUE(is_served(busy, 4));
}

// An adapter does not tell that a client is gone that owes nothing.
TEST_F(ResponderPlaces, ConnectionsWithoutACallForLongMakeRoomWhenAllPlacesAreTaken) {
  RawClient& gone = connect();
  EXPECT_TRUE(is_served(gone, 1));
  RawClient& busy = connect();
  EXPECT_TRUE(is_served(busy, 2));
  pair_.network.advance(*pair_.loop, std::chrono::minutes(29));
  EXPECT_TRUE(is_served(busy, 3));
  RawClient& silent = connect();
  pair_.network.advance(*pair_.loop, std::chrono::minutes(2));
  RawClient& next = connect();
  ASSERT_TRUE(next.connected());
  EXPECT_TRUE(silent.disconnected) << "never carried a call";
  EXPECT_TRUE(is_served(next, 4));
  EXPECT_FALSE(gone.disconnected);
  RawClient& another = connect();
  ASSERT_TRUE(another.connected());
  EXPECT_TRUE(gone.disconnected);
  EXPECT_TRUE(is_served(another, 5));
  EXPECT_FALSE(connect().connected()) << "the others have called lately";
  EXPECT_TRUE(is_served(busy, 6));
}

class ResponderSharedPlaces : public ResponderShares {
 protected:
  ResponderSharedPlaces() : ResponderShares(shared()) {}
  static inline bool full_ = false;
  static inline bool elsewhere_ = false;
  static RdmaServerLimits shared() {
    full_ = elsewhere_ = false;
    RdmaServerLimits limits;
    limits.places.full = [] { return full_; };
    limits.places.evict_elsewhere = [](Silent) { return elsewhere_; };
    return limits;
  }
};

TEST_F(ResponderSharedPlaces, MayBeTakenByOtherServers) {
  RawClient& silent = connect();
  RawClient& busy = connect();
  EXPECT_TRUE(is_served(busy, 1));
  full_ = true;
  RawClient& next = connect();
  EXPECT_TRUE(silent.disconnected);
  EXPECT_TRUE(is_served(next, 2));
  EXPECT_FALSE(connect().connected());
  elsewhere_ = true;
  EXPECT_TRUE(is_served(connect(), 3));
  EXPECT_TRUE(is_served(busy, 4));
}

class ResponderCredits : public ResponderShares {
 protected:
  ResponderCredits() : ResponderShares(few_credits()) {}
  static RdmaServerLimits few_credits() {
    RdmaServerLimits limits;
    limits.credits.receives = 16;
    limits.credits.reserve = 4;
    return limits;
  }
};

TEST_F(ResponderCredits, SilentConnectionsMakeRoomWhenAllCreditsAreGranted) {
  while (connect().connected())
    ASSERT_LT(clients_.size(), 20u);
  pair_.run();
  EXPECT_TRUE(clients_.front()->disconnected) << "silent for longest";
  RawClient& next = connect();
  ASSERT_TRUE(next.connected());
  EXPECT_TRUE(is_served(next, 1));
}

TEST_F(ResponderCredits, ConnectionsWithoutACallForLongMakeRoomWhenAllCreditsAreGranted) {
  for (std::uint32_t xid = 1;; ++xid) {
    RawClient& client = connect();
    if (!client.connected()) break;
    EXPECT_TRUE(is_served(client, xid));
    ASSERT_LT(clients_.size(), 20u);
  }
  EXPECT_FALSE(connect().connected());
  pair_.network.advance(*pair_.loop, std::chrono::minutes(31));
  EXPECT_FALSE(connect().connected()) << "makes room for the next attempt";
  pair_.run();
  EXPECT_TRUE(clients_.front()->disconnected);
  EXPECT_TRUE(connect().connected());
}

}  // namespace
}  // namespace nfsrdma::test
