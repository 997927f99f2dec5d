// SPDX-License-Identifier: Apache-2.0
// The responder against messages that our requester never sends: every chunk combination of RFC
// 8166, and what hostile clients try.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/raw_client.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kXid = 0x7001;

/// Header and RPC message as one Send.
std::vector<std::byte> message(std::uint32_t xid, rdma_proc proc, const ChunkLists& chunks,
                               ByteSpan rpc) {
  std::vector<std::byte> out(2048);
  const std::size_t size = encode_header(out, xid, 32, proc, chunks);
  out.resize(size);
  out.insert(out.end(), rpc.begin(), rpc.end());
  return out;
}

class Responder : public ::testing::Test {
 protected:
  ~Responder() override {
    client_.reset();
    pair_.run();
    EXPECT_EQ(pair_.server->connection_count(), 0u);
    EXPECT_EQ(pair_.fabric.violations(), std::vector<std::string>{});
  }
  void connect() { client_ = std::make_unique<RawClient>(pair_); }
  /// Type of the last answer, 99 without one.
  std::uint32_t answer_type() const {
    return client_->inbox.empty() ? 99 : load_be32(client_->inbox.back().data() + 12);
  }
  std::uint32_t error_code() const { return load_be32(client_->inbox.back().data() + 16); }
  const TransportHeader& answer() {
    EXPECT_EQ(decode_header(client_->inbox.back(), header_), HeaderVerdict::kOk);
    return header_;
  }
  void expect_err_chunk() {
    ASSERT_EQ(client_->inbox.size(), 1u);
    EXPECT_EQ(client_->inbox.back().size(), 20u);
    EXPECT_EQ(answer_type(), RDMA_ERROR);
    EXPECT_EQ(error_code(), ERR_CHUNK);
    EXPECT_FALSE(client_->disconnected);
  }
  ChunkLists lists() {
    ChunkLists made;
    made.clear();
    return made;
  }

  SimPair pair_;
  std::unique_ptr<RawClient> client_;
  TransportHeader header_;
};

TEST_F(Responder, SeveralReadChunksAndSegmentsArePulled) {
  connect();
  // A WRITE whose data is in three segments, its trailer in a chunk of its own.
  ToyCall call(kXid, kToyWrite, 10'001, 9);
  std::vector<std::byte> data(call.payload.begin(), call.payload.end());
  std::vector<std::byte> tail(call.tail.begin(), call.tail.end());
  ChunkLists chunks = lists();
  const auto at = static_cast<std::uint32_t>(call.head.size());
  for (auto [from, to] : {std::pair{0u, 5000u}, {5000u, 5000u}, {5000u, 10'001u}}) {
    chunks.add_read_segment(at,
                            client_->expose({data.data() + from, to - from}, Access::kRemoteRead));
  }
  client_->send(message(kXid, RDMA_MSG, chunks, [&] {
    std::vector<std::byte> rpc(call.head.begin(), call.head.end());
    rpc.insert(rpc.end(), tail.begin(), tail.end());
    return rpc;
  }()));
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

TEST_F(Responder, NobodyCanWriteToWhatTheHandlerLooksAt) {
  // One Read at a time, so that the empty segment is come to when the first one is here.
  client_ = std::make_unique<RawClient>(pair_, true, 1);
  pair_.handler.hold = true;
  ToyCall call(kXid, kToyWrite, 1000, 9);
  std::vector<std::byte> data(call.payload.begin(), call.payload.end());
  std::vector<std::byte> rpc(call.head.begin(), call.head.end());
  rpc.insert(rpc.end(), call.tail.begin(), call.tail.end());
  const auto at = static_cast<std::uint32_t>(call.head.size());
  ChunkLists chunks = lists();
  chunks.add_read_segment(at, client_->expose(data, Access::kRemoteRead));
  chunks.add_read_segment(at, {12345, 0, 0});
  client_->send(message(kXid, RDMA_MSG, chunks, rpc));
  ASSERT_EQ(pair_.handler.held.size(), 1u);
  EXPECT_EQ(pair_.fabric.exposed_regions(), client_->regions.size()) << "the server's own are gone";
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.run();
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

TEST_F(Responder, ReadChunkMayHoldThePad) {
  connect();
  ToyCall call(kXid, kToyWrite, 10'001, 9);
  std::vector<std::byte> data(call.payload.begin(), call.payload.end());
  data.resize(10'004);
  ChunkLists chunks = lists();
  chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()),
                          client_->expose(data, Access::kRemoteRead));
  std::vector<std::byte> rpc(call.head.begin(), call.head.end());
  rpc.insert(rpc.end(), call.tail.begin(), call.tail.end());
  client_->send(message(kXid, RDMA_MSG, chunks, rpc));
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

/// A WRITE that is all chunks: the call in one, its data in the other.
struct WriteInTwoChunks {
  explicit WriteInTwoChunks(RawClient& client)
      : call(kXid, kToyWrite, 10'001, 9),
        rest(call.head.begin(), call.head.end()),
        data(call.payload.begin(), call.payload.end()) {
    rest.insert(rest.end(), call.tail.begin(), call.tail.end());
    chunks.clear();
    chunks.add_read_segment(0, client.expose(rest, Access::kRemoteRead));
    chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()),
                            client.expose(data, Access::kRemoteRead));
  }
  std::vector<std::byte> bytes() const { return message(kXid, RDMA_NOMSG, chunks, {}); }

  ToyCall call;
  std::vector<std::byte> rest;
  std::vector<std::byte> data;
  ChunkLists chunks;
};

TEST_F(Responder, PositionZeroChunkWithAReducedItem) {
  connect();
  const WriteInTwoChunks write(*client_);
  client_->send(write.bytes());
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

TEST_F(Responder, DataIsSpreadOverTheSegmentsOfAWriteChunk) {
  connect();
  ToyCall call(kXid, kToyRead, 5000, 9);
  std::vector<std::byte> memory(8000);
  ChunkLists chunks = lists();
  chunks.begin_write_chunk();
  chunks.add_write_segment(client_->expose({memory.data(), 3000}, Access::kRemoteWrite));
  chunks.add_write_segment(client_->expose({memory.data() + 3000, 3000}, Access::kRemoteWrite));
  chunks.add_write_segment(client_->expose({memory.data() + 6000, 2000}, Access::kRemoteWrite));
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  EXPECT_TRUE(has_pattern({memory.data(), 5000}, 9));
  EXPECT_EQ(memory[5000], std::byte{0});
  const TransportHeader& reply = answer();
  ASSERT_EQ(reply.chunks.write_segment_count, 3);
  EXPECT_EQ(reply.chunks.write_segments[0].length, 3000u);
  EXPECT_EQ(reply.chunks.write_segments[1].length, 2000u);
  EXPECT_EQ(reply.chunks.write_segments[2].length, 0u);
}

TEST_F(Responder, PlaceholderChunkLeavesTheDataInline) {
  connect();
  ToyCall call(kXid, kToyRead, 1001, 9);
  ChunkLists chunks = lists();
  chunks.begin_write_chunk();
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  const TransportHeader& reply = answer();
  EXPECT_EQ(reply.chunks.write_chunk_count, 1);
  // 24 of RPC header, 20 of result, 1001 and pad.
  EXPECT_EQ(client_->inbox.back().size() - reply.header_bytes, 24u + 20u + 1004u);
}

TEST_F(Responder, TooSmallAWriteChunkIsErrChunk) {
  connect();
  ToyCall call(kXid, kToyRead, 5000, 9);
  std::vector<std::byte> memory(100);
  ChunkLists chunks = lists();
  chunks.begin_write_chunk();
  chunks.add_write_segment(client_->expose(memory, Access::kRemoteWrite));
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  expect_err_chunk();
  EXPECT_EQ(memory[0], std::byte{0});
}

TEST_F(Responder, ReplyThatFitsNowhereIsErrChunk) {
  connect();
  ToyCall call(kXid, kToyList, 5000, 9);
  client_->send(message(kXid, RDMA_MSG, lists(), call.head));
  expect_err_chunk();
}

TEST_F(Responder, LongReplyIsSpreadOverSegments) {
  connect();
  ToyCall call(kXid, kToyList, 6000, 9);
  std::vector<std::byte> memory(9000);
  ChunkLists chunks = lists();
  for (int i = 0; i < 9; ++i) {
    chunks.add_reply_segment(
        client_->expose({memory.data() + 1000 * i, 1000}, Access::kRemoteWrite));
  }
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  EXPECT_EQ(answer_type(), RDMA_NOMSG);
  EXPECT_EQ(answer().chunks.reply_length, 6028u);
  EXPECT_TRUE(has_pattern({memory.data() + 28, 6000}, 9));
}

TEST_F(Responder, WriteListAndReplyChunkTogether) {
  connect();
  ToyCall call(kXid, kToyRead, 5000, 9);
  std::vector<std::byte> data(5000), reply(1000);
  ChunkLists chunks = lists();
  chunks.begin_write_chunk();
  chunks.add_write_segment(client_->expose(data, Access::kRemoteWrite));
  chunks.add_reply_segment(client_->expose(reply, Access::kRemoteWrite));
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_FALSE(answer().chunks.has_reply_chunk);
  EXPECT_TRUE(has_pattern(data, 9));
}

TEST_F(Responder, RepliesGoInlineUpToTheVeryThreshold) {
  // 28 of transport header, 24 of RPC header, 20 of result.
  constexpr std::uint32_t kLargest = 4096 - 28 - 24 - 20;
  connect();
  client_->send(message(kXid, RDMA_MSG, lists(), ToyCall(kXid, kToyRead, kLargest, 9).head));
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(client_->inbox.back().size(), 4096u);
  client_->inbox.clear();
  client_->send(message(kXid, RDMA_MSG, lists(), ToyCall(kXid, kToyRead, kLargest + 1, 9).head));
  expect_err_chunk();
}

TEST_F(Responder, WithoutPrivateDataRepliesStayUnder1024) {
  client_ = std::make_unique<RawClient>(pair_, false);
  ToyCall call(kXid, kToyRead, 1001, 9);
  client_->send(message(kXid, RDMA_MSG, lists(), call.head));
  expect_err_chunk();
}

TEST_F(Responder, WithoutPrivateDataNothingIsInvalidated) {
  client_ = std::make_unique<RawClient>(pair_, false);
  ToyCall call(kXid, kToyRead, 5000, 9);
  std::vector<std::byte> data(5000);
  ChunkLists chunks = lists();
  chunks.begin_write_chunk();
  chunks.add_write_segment(client_->expose(data, Access::kRemoteWrite));
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  EXPECT_TRUE(client_->invalidated.empty());
}

TEST_F(Responder, OtherVersionGetsErrVers) {
  connect();
  auto bytes = message(kXid, RDMA_MSG, lists(), ToyCall(kXid, kToyNull, 0, 0).head);
  store_be32(bytes.data() + 4, 2);
  client_->send(bytes);
  ASSERT_EQ(client_->inbox.size(), 1u);
  EXPECT_EQ(client_->inbox[0].size(), 28u);
  EXPECT_EQ(error_code(), ERR_VERS);
}
TEST_F(Responder, MsgpGetsErrChunk) {
  connect();
  client_->send(message(kXid, RDMA_MSGP, lists(), ToyCall(kXid, kToyNull, 0, 0).head));
  expect_err_chunk();
}
TEST_F(Responder, DoneIsDroppedSilently) {
  connect();
  client_->send(message(kXid, RDMA_DONE, lists(), {}));
  EXPECT_TRUE(client_->inbox.empty());
  EXPECT_FALSE(client_->disconnected);
}
TEST_F(Responder, ErrorsAreNeverAnswered) {
  connect();
  client_->send(message(kXid, RDMA_ERROR, lists(), {}));
  EXPECT_TRUE(client_->inbox.empty());
}
TEST_F(Responder, ShortMessagesAreDropped) {
  connect();
  std::byte junk[27] = {};
  client_->send(junk);
  EXPECT_TRUE(client_->inbox.empty());
  EXPECT_FALSE(client_->disconnected);
}
TEST_F(Responder, HeaderAndRpcMustHaveTheSameXid) {
  connect();
  client_->send(message(kXid + 1, RDMA_MSG, lists(), ToyCall(kXid, kToyNull, 0, 0).head));
  expect_err_chunk();
}
TEST_F(Responder, RepliesToCallsNeverMadeAreDropped) {
  connect();
  std::byte rpc[24] = {};
  store_be32(rpc, kXid);
  store_be32(rpc + 4, 1);
  client_->send(message(kXid, RDMA_MSG, lists(), rpc));
  EXPECT_TRUE(client_->inbox.empty());
  EXPECT_EQ(pair_.handler.calls, 0u);
}
TEST_F(Responder, ChunkLargerThanAnyBufferIsErrChunk) {
  connect();
  ToyCall call(kXid, kToyWrite, 4, 9);
  ChunkLists chunks = lists();
  chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()), {1, 0x7fffffff, 0});
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  expect_err_chunk();
}
TEST_F(Responder, ReadChunkWithoutInboundReadsIsErrChunk) {
  client_ = std::make_unique<RawClient>(pair_, true, 0);
  ToyCall call(kXid, kToyWrite, 4000, 9);
  ChunkLists chunks = lists();
  chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()), {1, 4000, 0});
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  expect_err_chunk();
}
TEST_F(Responder, BadHandleEndsOnlyThatConnection) {
  connect();
  ToyCall call(kXid, kToyWrite, 4000, 9);
  ChunkLists chunks = lists();
  chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()), {12345, 4000, 0});
  client_->send(message(kXid, RDMA_MSG, chunks, call.head));
  EXPECT_TRUE(client_->disconnected);
  connect();
  client_->send(message(kXid, RDMA_MSG, lists(), ToyCall(kXid, kToyNull, 0, 0).head));
  EXPECT_EQ(answer_type(), RDMA_MSG);
}
TEST_F(Responder, CallWhoseReadsAlwaysFailGetsErrChunkInTheEnd) {
  for (std::uint32_t attempt = 0; attempt <= PoisonTable::kPoisonAfter; ++attempt) {
    connect();
    ToyCall call(kXid, kToyWrite, 4000, 9);
    ChunkLists chunks = lists();
    chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()), {12345, 4000, 0});
    client_->send(message(kXid, RDMA_MSG, chunks, call.head));
    EXPECT_EQ(client_->disconnected, attempt < PoisonTable::kPoisonAfter);
  }
  expect_err_chunk();
}
/// A WRITE whose data is in `segments` segments of 1000 bytes.
struct WriteInSegments {
  WriteInSegments(RawClient& client, std::uint32_t segments)
      : call(kXid, kToyWrite, 1000 * segments, 9),
        data(call.payload.begin(), call.payload.end()),
        rpc(call.head.begin(), call.head.end()) {
    chunks.clear();
    for (std::uint32_t i = 0; i < segments; ++i) {
      chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()),
                              client.expose({data.data() + 1000 * i, 1000}, Access::kRemoteRead));
    }
    rpc.insert(rpc.end(), call.tail.begin(), call.tail.end());
  }
  std::vector<std::byte> bytes() const { return message(kXid, RDMA_MSG, chunks, rpc); }

  ToyCall call;
  std::vector<std::byte> data;
  std::vector<std::byte> rpc;
  ChunkLists chunks;
};

TEST_F(Responder, AClientWhoseMemoryCannotBeReadForAMinuteIsCut) {
  connect();
  client_->send(WriteInSegments(*client_, 1).bytes());  // the first call's buffers are kept
  const std::size_t idle = pair_.pool->in_use();
  const std::uint64_t reads = pair_.handler.newest->describe().stats.rdma_reads;
  WriteInSegments write(*client_, 1);
  client_->send_only(write.bytes());
  while (pair_.handler.newest->describe().stats.rdma_reads == reads)
    ASSERT_GT(pair_.run(1), 0u);
  const Duration usual = std::exchange(pair_.network.faults().max_delay, std::chrono::hours(1000));
  pair_.run(1);  // the Read is on its way, and there it stays
  pair_.network.advance(*pair_.loop, std::chrono::seconds(59));
  EXPECT_EQ(pair_.server->connection_count(), 1u);
  EXPECT_GT(pair_.pool->in_use(), idle);
  pair_.network.faults().max_delay = usual;
  pair_.network.advance(*pair_.loop, std::chrono::seconds(2));
  pair_.network.advance(*pair_.loop, std::chrono::seconds(1));
  EXPECT_TRUE(client_->disconnected);
  EXPECT_EQ(pair_.server->connection_count(), 0u);
  EXPECT_EQ(pair_.handler.calls, 1u);
  EXPECT_LE(pair_.pool->in_use(), idle);
}

TEST_F(Responder, ReadsThatTakeLongButEndAreWaitedFor) {
  connect();
  WriteInSegments write(*client_, 12);
  // Posted, run and reported: at most 57 s from the end of one to that of the next.
  pair_.network.faults().max_delay = std::chrono::seconds(19);
  const TimePoint begun = pair_.network.now();
  client_->send(write.bytes());
  EXPECT_GT(pair_.network.now() - begun, std::chrono::seconds(120));
  EXPECT_FALSE(client_->disconnected);
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
  pair_.network.faults().max_delay = std::chrono::microseconds(50);
}

TEST_F(Responder, AReadBehindManyRepliesOnASlowLinkIsWaitedFor) {
  connect();
  pair_.handler.hold = true;
  for (std::uint32_t i = 0; i < 30; ++i)
    client_->send(message(i, RDMA_MSG, lists(), ToyCall(i, kToyNull, 0, 0).head));
  WriteInSegments write(*client_, 1);
  client_->send_only(write.bytes());
  pair_.handler.hold = false;
  pair_.network.faults().max_delay = std::chrono::seconds(19);
  pair_.handler.answer_held();
  const TimePoint begun = pair_.network.now();
  pair_.run();
  EXPECT_GT(pair_.network.now() - begun, std::chrono::minutes(3));
  EXPECT_FALSE(client_->disconnected);
  EXPECT_EQ(client_->inbox.size(), 31u);
  pair_.network.faults().max_delay = std::chrono::microseconds(50);
}

TEST_F(Responder, AnIdleConnectionIsNotCutForItsLatestRead) {
  connect();
  client_->send(WriteInSegments(*client_, 1).bytes());
  for (int minutes = 0; minutes < 3; ++minutes)
    pair_.network.advance(*pair_.loop, std::chrono::minutes(1));
  client_->send(WriteInSegments(*client_, 1).bytes());
  EXPECT_FALSE(client_->disconnected);
  EXPECT_EQ(client_->inbox.size(), 2u);
}

TEST_F(Responder, AReadHasItsMinuteHoweverLongAgoTheLatestEnded) {
  connect();
  client_->send(WriteInSegments(*client_, 1).bytes());
  pair_.network.advance(*pair_.loop, std::chrono::milliseconds(59'500));
  WriteInSegments write(*client_, 1);
  client_->send_only(write.bytes());
  while (pair_.handler.newest->describe().stats.rdma_reads == 1)
    ASSERT_GT(pair_.run(1), 0u);
  pair_.network.faults().max_delay = std::chrono::seconds(19);
  pair_.run();
  EXPECT_FALSE(client_->disconnected);
  EXPECT_EQ(client_->inbox.size(), 2u);
}

TEST_F(Responder, ACallWaitsUntilThereIsASinkForItsData) {
  connect();
  WriteInSegments write(*client_, 1);
  pair_.fabric.limit_exposed_regions(pair_.fabric.exposed_regions());
  client_->send(write.bytes());
  pair_.network.advance(*pair_.loop, std::chrono::seconds(59));
  pair_.run();
  EXPECT_FALSE(client_->disconnected);
  EXPECT_EQ(pair_.handler.calls, 0u);
  pair_.fabric.limit_exposed_regions(100);
  pair_.network.advance(*pair_.loop, std::chrono::milliseconds(50));
  pair_.run();
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

TEST_F(Responder, ACallThatFindsNoSinkForAMinuteEndsItsConnection) {
  connect();
  for (int times = 0; times < 2; ++times) {  // not a minute in all
    WriteInSegments write(*client_, 1);
    pair_.fabric.limit_exposed_regions(pair_.fabric.exposed_regions());
    client_->send(write.bytes());
    pair_.network.advance(*pair_.loop, std::chrono::seconds(40));
    pair_.fabric.limit_exposed_regions(100);
    pair_.network.advance(*pair_.loop, std::chrono::milliseconds(50));
    pair_.run();
    EXPECT_FALSE(client_->disconnected);
  }
  WriteInSegments write(*client_, 1);
  pair_.fabric.limit_exposed_regions(pair_.fabric.exposed_regions());
  client_->send(write.bytes());
  pair_.network.advance(*pair_.loop, std::chrono::seconds(60));
  pair_.run();
  EXPECT_TRUE(client_->disconnected);
  EXPECT_EQ(pair_.handler.calls, 2u);
}

TEST_F(Responder, ACallKeepsNoSinkOfAChunkThatIsHereWhileItWaitsForAnother) {
  connect();
  const WriteInTwoChunks write(*client_);
  pair_.fabric.limit_exposed_regions(pair_.fabric.exposed_regions() + 1);
  client_->send(write.bytes());
  EXPECT_EQ(answer_type(), RDMA_MSG);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
}

TEST_F(Responder, ACallWhoseChunksDoNotFitYetWaitsWithoutWork) {
  connect();
  ToyCall call(kXid, kToyWrite, 1 << 20, 9);
  std::vector<std::byte> data(call.payload.begin(), call.payload.end());
  std::vector<std::byte> rest(call.head.begin(), call.head.end());
  rest.insert(rest.end(), call.tail.begin(), call.tail.end());
  rest.resize(1 << 20);  // what is behind the call is nobody's
  ChunkLists chunks = lists();
  chunks.add_read_segment(0, client_->expose(rest, Access::kRemoteRead));
  chunks.add_read_segment(static_cast<std::uint32_t>(call.head.size()),
                          client_->expose(data, Access::kRemoteRead));
  std::vector<Buffer> held;
  while (Buffer buffer = pair_.pool->acquire(1 << 20))
    held.push_back(std::move(buffer));
  client_->send(message(kXid, RDMA_NOMSG, chunks, {}));
  held.pop_back();  // enough for one of the two chunks
  EXPECT_LT(pair_.run(1000), 1000u) << "the loop never comes to rest";
  EXPECT_EQ(pair_.handler.calls, 0u);
  held.clear();
  pair_.run();
  EXPECT_EQ(pair_.handler.calls, 1u);
}

TEST_F(Responder, MoreCallsThanAnyGrantEndTheConnection) {
  connect();
  pair_.handler.hold = true;
  for (std::uint32_t i = 0; i < 60; ++i) {
    client_->send(message(i, RDMA_MSG, lists(), ToyCall(i, kToyNull, 0, 0).head));
  }
  EXPECT_TRUE(client_->disconnected);
  pair_.handler.answer_held();
}
TEST_F(Responder, GrantIsNeverZeroNorAboveTheRequest) {
  connect();
  for (std::uint32_t i = 0; i < 200; ++i) {
    client_->send(message(i, RDMA_MSG, lists(), ToyCall(i, kToyNull, 0, 0).head));
    const std::uint32_t grant = load_be32(client_->inbox.back().data() + 8);
    ASSERT_GE(grant, 1u);
    ASSERT_LE(grant, 32u);
  }
}
TEST_F(Responder, RandomBytesNeverHurt) {
  std::mt19937_64 random(42);
  for (int round = 0; round < 400; ++round) {
    if (!client_ || client_->disconnected) connect();
    std::vector<std::byte> bytes(random() % 400);
    for (std::byte& b : bytes) {
      b = random() % 3 != 0 ? std::byte{0} : static_cast<std::byte>(random() % 4);
    }
    if (bytes.size() >= 16) {
      store_be32(bytes.data() + 4, 1);
      store_be32(bytes.data() + 12, static_cast<std::uint32_t>(random() % 5));
    }
    client_->send(bytes);
  }
  connect();
  client_->send(message(kXid, RDMA_MSG, lists(), ToyCall(kXid, kToyNull, 0, 0).head));
  EXPECT_EQ(answer_type(), RDMA_MSG);
}

}  // namespace
}  // namespace nfsrdma::test
