// SPDX-License-Identifier: Apache-2.0
// The requester against a server that answers whatever the test wants: rules of RFC 8166 for
// replies, errors, and servers that lie.
#include "rpcrdma/requester.h"

#include <gtest/gtest.h>

#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/rdma_client.h"
#include "rpcrdma/rdma_endpoint.h"
#include "rpcrdma/sim/sim_fabric.h"
#include "tests/support/toy_rpc.h"

namespace nfsrdma::test {
namespace {

/// Takes one connection, keeps what arrives, sends and writes what it is told.
class FakeServer : public IncomingHandler,
                   public AcceptHandler,
                   public QueuePairHandler,
                   public MessageHandler,
                   public WorkOwner {
 public:
  FakeServer(EventLoop& loop, SimFabric& fabric) : loop_(loop), pool_(loop, 32u << 20) {
    listener_ = std::move(fabric.listen(loop, address(), *this)).value();
  }
  ~FakeServer() override {
    if (endpoint_) endpoint_->retire(std::move(queue_pair_));
    sent_.clear();
    endpoint_.reset();
  }
  static SocketAddress address() {
    return std::move(SocketAddress::parse("127.0.0.1", 20049)).value();
  }

  std::vector<std::vector<std::byte>> inbox;
  bool disconnected = false;
  std::vector<std::byte> private_data = [] {
    const auto bytes = PrivateData{4096, 4096, false}.encode();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }();

  void post(WorkOpcode opcode, ByteSpan bytes, const Segment& where = {}) {
    Buffer buffer = pool_.acquire(std::max<std::size_t>(1, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), buffer.data());
    const Sge sge{buffer.data(), static_cast<std::uint32_t>(bytes.size()), endpoint_->lkey(buffer)};
    WorkRequest request;
    request.opcode = opcode;
    request.sges = {&sge, 1};
    request.remote_handle = where.handle;
    request.remote_offset = where.offset;
    request.wr_id = endpoint_->work().add(*this, 0);
    std::size_t posted = 0;
    (void)queue_pair_->post({&request, 1}, &posted).ok();
    sent_.push_back(std::move(buffer));
  }

  void on_incoming(std::unique_ptr<Incoming> incoming) override { incoming->start(loop_, *this); }
  void on_connect_request(std::unique_ptr<ConnectRequest> request) override {
    endpoint_ =
        std::move(RdmaEndpoint::create(loop_, request->device(), pool_, {4096, 64, 256}, *this))
            .value();
    endpoint_->ensure_receives(64);
    QueuePairOptions options;
    options.domain = &endpoint_->domain();
    options.completions = &endpoint_->completions();
    options.receives = &endpoint_->receives();
    options.handler = this;
    options.private_data = private_data;
    queue_pair_ = std::move(request->accept(options)).value();
  }
  void on_message(const ReceivedMessage& message) override {
    inbox.emplace_back(message.bytes.begin(), message.bytes.end());
    endpoint_->repost(message.slot);
  }
  void on_disconnected(Error) override { disconnected = true; }
  void on_work_done(std::uint32_t, WorkStatus) override {}

 private:
  EventLoop& loop_;
  BufferPool pool_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<RdmaEndpoint> endpoint_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::vector<Buffer> sent_;
};

class Requester : public ::testing::Test {
 protected:
  Requester() { loop_->set_clock(&network_); }
  ~Requester() override {
    client_.reset();
    run();
  }
  void run() { network_.run(*loop_); }
  void connect(const RdmaClientOptions& options = {}) {
    client_ = make_rdma_transport(*loop_, fabric_, FakeServer::address(), options, log_);
    run();
    ASSERT_EQ(log_.ready, 1);
  }
  const TransportHeader& sent(std::size_t index = 0) {
    EXPECT_EQ(decode_header(server_.inbox.at(index), header_), HeaderVerdict::kOk);
    return header_;
  }
  /// Submits and gives the header that the server saw.
  const TransportHeader& submit(ToyCall& call) {
    client_->submit(call);
    run();
    return sent(server_.inbox.size() - 1);
  }
  void answer(std::uint32_t xid, rdma_proc proc, const ChunkLists& chunks,
              std::initializer_list<std::uint32_t> rpc, std::uint32_t credits = 32) {
    std::vector<std::byte> bytes(1024);
    bytes.resize(encode_header(bytes, xid, credits, proc, chunks));
    for (std::uint32_t word : rpc) {
      bytes.resize(bytes.size() + 4);
      store_be32(bytes.data() + bytes.size() - 4, word);
    }
    server_.post(WorkOpcode::kSend, bytes);
    run();
  }
  ChunkLists none() {
    ChunkLists lists;
    lists.clear();
    return lists;
  }
  /// An unremarkable NULL reply.
  void answer_null(std::uint32_t xid, std::uint32_t credits = 32) {
    answer(xid, RDMA_MSG, none(), {xid, 1, 0, 0, 0, 0}, credits);
  }

  SimNetwork network_{1};
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  SimFabric fabric_{network_};
  FakeServer server_{*loop_, fabric_};
  TransportLog log_;
  std::unique_ptr<ClientTransport> client_;
  TransportHeader header_;
};

TEST_F(Requester, OneCallUntilTheFirstReply) {
  connect();
  ToyCall a(1, kToyNull, 0, 0), b(2, kToyNull, 0, 0);
  client_->submit(a);
  client_->submit(b);
  run();
  EXPECT_EQ(server_.inbox.size(), 1u);
  answer_null(1);
  EXPECT_EQ(server_.inbox.size(), 2u);
  client_.reset();
}
TEST_F(Requester, CreditsOfTheReplyLimitTheCalls) {
  connect();
  ToyCall first(1, kToyNull, 0, 0);
  client_->submit(first);
  run();
  answer_null(1, 3);
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 2; i < 12; ++i) {
    calls.push_back(std::make_unique<ToyCall>(i, kToyNull, 0, 0));
    client_->submit(*calls.back());
  }
  run();
  EXPECT_EQ(server_.inbox.size(), 4u);
  client_.reset();
}
TEST_F(Requester, TheDevicesQueuesLimitTheCalls) {
  fabric_.device_info().max_send_depth = 16;
  connect();
  ToyCall first(1, kToyNull, 0, 0);
  client_->submit(first);
  run();
  answer_null(1, 32);
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 2; i < 32; ++i) {
    calls.push_back(std::make_unique<ToyCall>(i, kToyNull, 0, 0));
    client_->submit(*calls.back());
  }
  run();
  EXPECT_EQ(server_.inbox.size(), 1u + 16 - 1 - kSpareReceives);
  client_.reset();
}
TEST_F(Requester, GrantOfZeroCountsAsOne) {
  connect();
  ToyCall a(1, kToyNull, 0, 0), b(2, kToyNull, 0, 0);
  client_->submit(a);
  run();
  answer_null(1, 0);
  client_->submit(b);
  run();
  EXPECT_EQ(server_.inbox.size(), 2u);
  client_.reset();
}
TEST_F(Requester, LargeArgumentIsOneReadChunkBehindTheHead) {
  connect();
  ToyCall call(1, kToyWrite, 9001, 0);
  const ChunkLists& chunks = submit(call).chunks;
  ASSERT_EQ(chunks.read_chunk_count, 1);
  EXPECT_EQ(chunks.read_chunks[0].position, call.head.size());
  EXPECT_EQ(chunks.read_chunks[0].length, 9001u);
  client_.reset();
}
TEST_F(Requester, ArgumentsGoInlineUpToTheVeryThreshold) {
  connect();
  // 28 of transport header, 52 of head, 4 of tail.
  constexpr std::uint32_t kLargest = 4096 - 28 - 52 - 4;
  ToyCall fits(1, kToyWrite, kLargest, 0);
  EXPECT_EQ(submit(fits).chunks.read_chunk_count, 0u);
  EXPECT_EQ(server_.inbox.back().size(), 4096u);
  answer_null(1);
  ToyCall larger(2, kToyWrite, kLargest + 1, 0);
  EXPECT_EQ(submit(larger).chunks.read_chunk_count, 1u);
  answer_null(2);
}
TEST_F(Requester, LongHeadIsAPositionZeroChunkAlone) {
  connect();
  ToyCall call(1, kToyWrite, 9001, 0);
  std::vector<std::byte> head(6000);
  call.head = head;
  const TransportHeader& header = submit(call);
  EXPECT_EQ(header.proc, RDMA_NOMSG);
  ASSERT_EQ(header.chunks.read_chunk_count, 1);
  EXPECT_EQ(header.chunks.read_chunks[0].length, 6000u + 9004u + 4u);
  client_.reset();
}
TEST_F(Requester, ExposesExactlyTheBytesOfTheCall) {
  connect();
  ToyCall call(1, kToyRead, 9001, 0);
  EXPECT_EQ(submit(call).chunks.write_segments[0].length, 9001u);
  EXPECT_EQ(fabric_.exposed_regions(), 1u);
  client_.reset();
}
// knfsd of Linux 6.1 ends the connection of a call that has both, when it is to fill both.
TEST_F(Requester, ACallHasAWriteChunkOrAReplyChunkNeverBoth) {
  connect();
  ToyCall fits(1, kToyRead, 9001, 0), long_rest(2, kToyRead, 9001, 0);
  fits.max_reply = 4096 - 28 - 24;  // the header, a Write chunk of one segment
  long_rest.max_reply = fits.max_reply + 1;
  EXPECT_EQ(submit(fits).chunks.write_chunk_count, 1);
  EXPECT_FALSE(header_.chunks.has_reply_chunk);
  answer_null(1);
  EXPECT_EQ(submit(long_rest).chunks.write_chunk_count, 0);
  EXPECT_TRUE(header_.chunks.has_reply_chunk);
  EXPECT_EQ(header_.chunks.reply_segments[0].length, long_rest.max_reply + 9004);
  client_.reset();
}
TEST_F(Requester, ShortReplyMayLeaveTheReplyChunkOut) {
  connect();
  ToyCall call(1, kToyList, 9000, 0);
  EXPECT_TRUE(submit(call).chunks.has_reply_chunk);
  answer_null(1);
  EXPECT_TRUE(call.ok);
}
TEST_F(Requester, ErrChunkFailsTheCallOnly) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  std::byte bytes[20];
  server_.post(WorkOpcode::kSend, {bytes, encode_err_chunk(bytes, 1, 32)});
  run();
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.error.code, Errc::kRefused);
  EXPECT_EQ(log_.closed, 0);
}
TEST_F(Requester, ErrVersFailsTheCall) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  std::byte bytes[28];
  server_.post(WorkOpcode::kSend, {bytes, encode_err_vers(bytes, 1, 32)});
  run();
  EXPECT_EQ(call.error.code, Errc::kUnsupported);
}
TEST_F(Requester, UnknownXidsAreDropped) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  answer_null(99);
  EXPECT_EQ(call.completions, 0);
  answer_null(1);
  EXPECT_TRUE(call.ok);
}
TEST_F(Requester, SecondReplyToTheSameCallIsDropped) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  answer_null(1);
  answer_null(1);
  EXPECT_EQ(call.completions, 1);
}
// The call and the reply of wire.md 7.4, but for the credits, which are ours to choose.
TEST_F(Requester, ABackwardCallIsAnsweredInLine) {
  connect();
  log_.backward_reply = 24;
  answer(0x9d, RDMA_MSG, none(), {0x9d, 0, 2, 0x40000000, 1, 0}, 16);
  ASSERT_EQ(log_.backward_calls.size(), 1u);
  ASSERT_EQ(log_.backward_calls[0].size(), 24u);
  ASSERT_EQ(server_.inbox.size(), 1u);
  const auto& message = server_.inbox[0];
  ASSERT_EQ(message.size(), 28u + 24u);
  const std::uint32_t words[] = {0x9d, 1, kBackwardCredits, 0, 0, 0, 0, 0x9d, 1, 0};
  for (std::size_t i = 0; i < std::size(words); ++i)
    EXPECT_EQ(load_be32(message.data() + 4 * i), words[i]) << i;
  // Its credits are those of the server's calls.
  ToyCall one(1, kToyNull, 0, 0), two(2, kToyNull, 0, 0);
  client_->submit(one);
  client_->submit(two);
  run();
  EXPECT_EQ(server_.inbox.size(), 2u);
  client_.reset();  // it knows both calls for as long as they are not answered
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(two.completions, 1);
}
TEST_F(Requester, WhatIsNoCallIsNotAnswered) {
  connect();
  log_.backward_reply = 24;
  answer(7, RDMA_MSG, none(), {8, 0, 2, 0x40000000, 1, 0});  // two xids
  answer(7, RDMA_MSG, none(), {7, 2, 2, 0x40000000, 1, 0});  // neither CALL nor REPLY
  answer(7, RDMA_NOMSG, none(), {7, 0, 2, 0x40000000, 1, 0});
  answer(7, RDMA_MSG, none(), {7});
  EXPECT_TRUE(log_.backward_calls.empty());
  EXPECT_TRUE(server_.inbox.empty());
  EXPECT_EQ(log_.closed, 0);
}
TEST_F(Requester, BackwardCallsAreIgnored) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  answer(1, RDMA_MSG, none(), {1, 0, 2, 0x40000000, 1, 0});
  EXPECT_EQ(call.completions, 0);
  answer_null(1);
  EXPECT_TRUE(call.ok);
}
TEST_F(Requester, HeaderAndRpcXidMustAgree) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  answer(1, RDMA_MSG, none(), {2, 1, 0, 0, 0, 0});
  EXPECT_EQ(call.error.code, Errc::kProtocol);
}
TEST_F(Requester, MoreWrittenThanOfferedIsRefused) {
  connect();
  ToyCall call(1, kToyRead, 9000, 0);
  Segment segment = submit(call).chunks.write_segments[0];
  segment.length = 9001;
  ChunkLists lists = none();
  lists.begin_write_chunk();
  lists.add_write_segment(segment);
  answer(1, RDMA_MSG, lists, {1, 1, 0, 0, 0, 0, 0, 0, 9001, 1, 9001});
  EXPECT_EQ(call.error.code, Errc::kProtocol);
}
TEST_F(Requester, WriteChunkNeverOfferedIsRefused) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  ChunkLists lists = none();
  lists.begin_write_chunk();
  lists.add_write_segment({1, 4, 0});
  answer(1, RDMA_MSG, lists, {1, 1, 0, 0, 0, 0});
  EXPECT_EQ(call.error.code, Errc::kProtocol);
}
TEST_F(Requester, LongReplyNeverOfferedIsRefused) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  ChunkLists lists = none();
  lists.add_reply_segment({1, 24, 0});
  answer(1, RDMA_NOMSG, lists, {});
  EXPECT_EQ(call.error.code, Errc::kProtocol);
}
TEST_F(Requester, ReadListInAReplyIsRefused) {
  connect();
  ToyCall call(1, kToyNull, 0, 0);
  client_->submit(call);
  run();
  ChunkLists lists = none();
  lists.add_read_segment(24, {1, 4, 0});
  answer(1, RDMA_MSG, lists, {1, 1, 0, 0, 0, 0});
  EXPECT_EQ(call.error.code, Errc::kProtocol);
}
TEST_F(Requester, LateWriteCannotReachTheSink) {
  connect();
  ToyCall call(1, kToyRead, 9000, 0);
  const Segment segment = submit(call).chunks.write_segments[0];
  answer_null(1);
  server_.post(WorkOpcode::kWrite, std::vector<std::byte>(100, std::byte{0xee}), segment);
  run();
  EXPECT_EQ(call.sink[0], std::byte{0});
  EXPECT_TRUE(server_.disconnected);
}
TEST_F(Requester, WithoutPrivateDataCallsStayUnder1024) {
  server_.private_data.clear();
  connect();
  ToyCall call(1, kToyWrite, 1000, 0);
  EXPECT_EQ(submit(call).chunks.read_chunk_count, 1);
  client_.reset();
}

TEST_F(Requester, ACallWaitsForTheMemoryThatOthersHaveExposed) {
  connect();
  ToyCall opener(9, kToyNull, 0, 0), first(1, kToyRead, 9000, 0), second(2, kToyRead, 9000, 0);
  submit(opener);
  answer_null(9);  // grants credits for both
  fabric_.limit_exposed_regions(1);
  submit(first);
  const std::size_t sent_before = server_.inbox.size();
  client_->submit(second);
  run();
  EXPECT_EQ(server_.inbox.size(), sent_before) << "there is no room for its sink";
  EXPECT_EQ(second.completions, 0);
  answer_null(1);
  EXPECT_TRUE(first.ok);
  EXPECT_EQ(server_.inbox.size(), sent_before + 1) << "it goes when the first one's came back";
  answer_null(2);
  EXPECT_TRUE(second.ok);
}
TEST_F(Requester, CountsChunksOfCallsThatAreSentAndOfNoAttempt) {
  connect();
  ToyCall opener(9, kToyNull, 0, 0), first(1, kToyRead, 9000, 0), second(2, kToyRead, 9000, 0);
  submit(opener);
  answer_null(9);
  fabric_.limit_exposed_regions(2);
  submit(first);
  const std::vector<std::byte> payload(9000);
  second.payload = payload;
  second.has_payload = true;
  client_->submit(second);
  run();
  EXPECT_EQ(client_->describe().stats.rdma_writes, 1U) << "there was room for its sink alone";
  answer_null(1);
  const TransferStats stats = client_->describe().stats;
  EXPECT_EQ(stats.rdma_writes, 2U);
  EXPECT_EQ(stats.rdma_reads, 1U);
  EXPECT_EQ(stats.rdma_read_bytes, payload.size());
  answer_null(2);
}
TEST_F(Requester, ACallWaitsForRoomThatOthersHave) {
  connect();
  fabric_.limit_exposed_regions(0);
  ToyCall call(1, kToyRead, 9000, 0);
  client_->submit(call);
  run();
  network_.advance(*loop_, std::chrono::milliseconds(900));
  EXPECT_EQ(call.completions, 0);
  EXPECT_TRUE(server_.inbox.empty());
  fabric_.limit_exposed_regions(4);
  network_.advance(*loop_, std::chrono::milliseconds(100));
  run();
  ASSERT_EQ(server_.inbox.size(), 1u);
  answer_null(1);
  EXPECT_TRUE(call.ok);
}
TEST_F(Requester, WhenTheDeviceIsGoneCallsEndWithTheConnectionAndCanBeMadeAgain) {
  connect();
  fabric_.refuse_exposure();
  ToyCall first(1, kToyRead, 9000, 0), second(2, kToyWrite, 9000, 0);
  client_->submit(first);
  client_->submit(second);
  EXPECT_EQ(first.completions + second.completions, 0) << "failed by themselves";
  run();
  for (const ToyCall* call : {&first, &second}) {
    EXPECT_EQ(call->completions, 1);
    EXPECT_EQ(call->error.code, Errc::kClosed);
    EXPECT_FALSE(call->sent);
  }
  EXPECT_EQ(log_.closed, 1);
}
TEST_F(Requester, ACallThatNothingCanMakeRoomForFails) {
  connect();
  fabric_.limit_exposed_regions(0);
  for (const char* time : {"once", "another time"}) {
    ToyCall waits(1, kToyRead, 9000, 0), next(2, kToyRead, 9000, 0);
    client_->submit(waits);
    run();
    EXPECT_EQ(waits.completions, 0) << "others may make some, " << time;
    network_.advance(*loop_, std::chrono::milliseconds(1100));
    EXPECT_EQ(waits.completions, 1) << time;
    EXPECT_EQ(waits.error.code, Errc::kExhausted);
    client_->submit(next);
    run();
    EXPECT_EQ(next.completions, 1) << "it has been waited for, " << time;
    network_.advance(*loop_, std::chrono::minutes(1));
  }
}

}  // namespace
}  // namespace nfsrdma::test
