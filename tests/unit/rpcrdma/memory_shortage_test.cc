// SPDX-License-Identifier: Apache-2.0
// Servers whose memory is used up by calls that wait for more of it: whatever comes, in whatever
// order, all of them are served once what others hold is given back. In the smallest pool, which
// takes the fewest calls to fill.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/raw_client.h"
#include "tests/support/tcp_transport.h"

namespace nfsrdma::test {
namespace {

/// Others who hold all memory, and give it back too little at a time for anybody who waits.
class Others {
 public:
  explicit Others(BufferPool& pool) {
    for (const std::size_t size : {std::size_t{64} << 10, std::size_t{4096}}) {
      while (Buffer buffer = pool.acquire(size))
        held_.push_back(std::move(buffer));
    }
  }
  bool done() const { return held_.empty(); }
  void give_back(std::size_t bytes) {
    while (bytes > 0 && !held_.empty()) {
      bytes -= std::min(bytes, held_.back().size());
      held_.pop_back();
    }
  }

 private:
  std::vector<Buffer> held_;
};

// --- RDMA ---

class RdmaShortage : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kCredits = 100;
  static constexpr std::uint32_t kClients = 14;
  static constexpr std::uint32_t kGranted = 12;  // to the last of them, by its connect

  static RdmaServerLimits many_credits() {
    RdmaServerLimits limits;
    limits.credits.initial = kCredits;
    return limits;
  }
  RawClient& connect() {
    clients_.push_back(std::make_unique<RawClient>(pair_));
    EXPECT_TRUE(clients_.back()->connected());
    return *clients_.back();
  }
  void write(RawClient& client, std::uint32_t xid, const ToyCall& call) {
    std::vector<std::byte> rpc(call.head.begin(), call.head.end());
    store_be32(rpc.data(), xid);
    const MutableByteSpan data(const_cast<std::byte*>(call.payload.data()), call.payload.size());
    ChunkLists chunks;
    chunks.clear();
    chunks.add_read_segment(static_cast<std::uint32_t>(rpc.size()),
                            client.expose(data, Access::kRemoteRead));
    rpc.insert(rpc.end(), call.tail.begin(), call.tail.end());
    std::vector<std::byte> out(2048);
    out.resize(encode_header(out, xid, kCredits, RDMA_MSG, chunks));
    out.insert(out.end(), rpc.begin(), rpc.end());
    client.send_only(out);
  }
  void send_small(RawClient& client, std::uint32_t xid) {
    const ToyCall call(xid, kToyNull, 0, 0);
    ChunkLists none;
    none.clear();
    std::vector<std::byte> out(2048);
    out.resize(encode_header(out, xid, kCredits, RDMA_MSG, none));
    out.insert(out.end(), call.head.begin(), call.head.end());
    client.send_only(out);
  }
  std::size_t answered() const {
    std::size_t count = 0;
    for (const auto& client : clients_)
      count += client->inbox.size();
    return count;
  }

  SimPair pair_{1, {}, many_credits(), BufferPool::kLeastBudget};
  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_F(RdmaShortage, CallsThatWaitForTheirDataAllGetIt) {
  for (std::uint32_t i = 0; i < kClients; ++i)
    connect();
  Others others(*pair_.pool);
  const ToyCall call(0, kToyWrite, 5000, 9);  // a buffer of 64 KiB
  std::uint32_t sent = 0;
  while (!others.done()) {
    others.give_back(60'000);
    for (int i = 0; i < 7 && sent < kClients * kGranted; ++i, ++sent)
      write(*clients_[sent % kClients], sent, call);
    pair_.run();
  }
  EXPECT_EQ(sent, kClients * kGranted);
  EXPECT_EQ(answered(), sent);
  EXPECT_EQ(pair_.handler.bad_calls, 0u);
  EXPECT_EQ(pair_.pool->waiting(), 0u);
}

// Those with data could begin with less left free: each byte that is given back would be theirs
// before there is enough for a call without.
TEST_F(RdmaShortage, CallsWithoutDataTakeTurnsWithThoseThatHaveSome) {
  RawClient& writer = connect();
  RawClient& other = connect();
  const ToyCall write_call(0, kToyWrite, 1 << 20, 3);
  pair_.handler.hold = true;
  for (std::uint32_t i = 0; i < 60; ++i)
    write(writer, i, write_call);
  pair_.run();
  ASSERT_LT(pair_.handler.calls, 20u);
  send_small(other, 1000);
  for (int round = 0; round < 2; ++round) {
    pair_.handler.answer_held();
    pair_.run();
  }
  EXPECT_TRUE(std::ranges::find(pair_.handler.xids, 1000u) != pair_.handler.xids.end());
  EXPECT_LT(pair_.handler.calls, 40u);
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.run();
  EXPECT_EQ(answered(), 61u);
}

// Their buffers were kept, and they would come in between for ever.
TEST_F(RdmaShortage, CallsThatNeedNoMemoryDoNotPassThoseThatWait) {
  RawClient& one = connect();
  RawClient& other = connect();
  pair_.handler.hold = true;
  for (std::uint32_t i = 0; i < 4; ++i)
    send_small(other, i);  // leave as many calls with buffers
  pair_.run();
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.run();
  ASSERT_EQ(answered(), 4u);
  const ToyCall write_call(0, kToyWrite, 5000, 9);
  {
    const Others others(*pair_.pool);
    write(one, 4, write_call);
    pair_.run();
    ASSERT_EQ(pair_.pool->waiting(), 1u);
    send_small(other, 5);
    pair_.run();
    EXPECT_EQ(pair_.handler.calls, 4u);
  }
  pair_.run();
  EXPECT_EQ(answered(), 6u);
}

TEST_F(RdmaShortage, SomeClientsFindAPlaceUnderLoad) {
  connect();
  const Others others(*pair_.pool);
  connect();
}

TEST_F(RdmaShortage, AnIdleServerHasMemoryForTheLargestCall) {
  for (std::uint32_t i = 0; i < kClients; ++i)
    connect();
  const ToyCall small(0, kToyWrite, 64, 1);
  pair_.handler.hold = true;
  for (std::uint32_t i = 0; i < 200; ++i)
    write(*clients_[i % 4], i, small);
  pair_.run();
  pair_.handler.hold = false;
  pair_.handler.answer_held();
  pair_.run();
  EXPECT_EQ(answered(), 200u);
  // As many calls of TCP as are kept, and records that have begun.
  std::vector<Buffer> of_tcp;
  for (std::size_t i = 0; i < pair_.pool->budget() / 32 / 4096; ++i)
    of_tcp.push_back(pair_.pool->acquire(4096));
  const ToyCall largest(0, kToyWrite, 4u << 20, 2);
  write(*clients_[0], 1000, largest);
  pair_.run();
  EXPECT_EQ(answered(), 201u);
  EXPECT_TRUE(pair_.pool->acquire(BufferPool::kMaxBuffer));
}

// --- TCP ---

/// Calls for 1 MiB while they are served, as the dispatcher does, and answers in a few bytes.
class HungryHandler final : public CallHandler {
 public:
  std::size_t calls = 0, answered = 0;
  std::vector<std::uint32_t> xids;
  bool hungry = true;

  void on_connection_opened(ServerConnection&) override {}
  void on_connection_closed(ServerConnection&) override {}
  void on_call(Call& call) override {
    ++calls;
    xids.push_back(call.xid());
    guests_.push_back(std::make_unique<Guest>(*this, call));
    guests_.back()->on_buffers();
  }

 private:
  struct Guest : BufferWaiter {
    HungryHandler& handler;
    Call& call;
    Guest(HungryHandler& h, Call& c) : handler(h), call(c) {}
    void on_buffers() override {
      BufferPool& pool = call.connection().buffers();
      if (handler.hungry && !pool.acquire(1 << 20)) {
        return pool.wait_for_buffers(*this, call.connection().buffer_share);
      }
      xdr::Encoder out(call.reply_room());
      for (const std::uint32_t word : {call.xid(), 1u, 0u, 0u, 0u, 0u})
        out.u32(word);
      ++handler.answered;
      call.reply(out, {});
    }
  };
  std::vector<std::unique_ptr<Guest>> guests_;
};

class TcpShortage : public TcpStalls {
 protected:
  TcpShortage() : TcpStalls(BufferPool::kLeastBudget) {}
  ~TcpShortage() override {
    settle();
    server_.reset();
  }
  UniqueFd client() {
    UniqueFd fd = connected();
    settle();
    return fd;
  }
  void push(const UniqueFd& fd, ByteSpan bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ASSERT_TRUE(n > 0 || errno == EAGAIN);
      if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
      loop_->turn(Duration::zero());
    }
  }
  void call(const UniqueFd& fd, std::uint32_t xid) {
    push(fd, record_of(ToyCall(xid, kToyNull, 0, 0).head));
  }
  /// Sends more calls than there is memory for, while others give back what they have.
  std::vector<UniqueFd> crowd() {
    constexpr std::uint32_t kClients = 10, kCalls = 250;
    std::vector<UniqueFd> clients;
    for (std::uint32_t i = 0; i < kClients; ++i)
      clients.push_back(client());
    Others others(pool_);
    while (!others.done()) {
      others.give_back(256 << 10);
      for (int i = 0; i < 40 && sent_ < kClients * kCalls; ++i, ++sent_)
        call(clients[sent_ % kClients], sent_);
      settle();
    }
    EXPECT_EQ(sent_, kClients * kCalls);
    return clients;
  }

  HungryHandler hungry_;
  std::uint32_t sent_ = 0;
};

TEST_F(TcpShortage, CallsThatWaitWithTheHandlerAllGetTheirMemory) {
  start(hungry_);
  const std::vector<UniqueFd> clients = crowd();
  turn_until([this] { return hungry_.answered == sent_; });
  EXPECT_EQ(hungry_.answered, sent_);
  EXPECT_EQ(pool_.waiting(), 0u);
}

TEST_F(TcpShortage, OthersAreServedWhenThoseWhoUsedUpTheMemoryHaveGone) {
  start(hungry_);
  crowd();
  const UniqueFd other = client();
  call(other, 0xabcdef);
  turn_until([this] { return !hungry_.xids.empty() && hungry_.xids.back() == 0xabcdef; });
  settle();
  EXPECT_EQ(hungry_.xids.back(), 0xabcdefu);
  EXPECT_EQ(hungry_.answered, hungry_.calls);
  EXPECT_EQ(pool_.waiting(), 0u);
}

// The other one's call comes between them, though they are here already.
TEST_F(TcpShortage, ATurnIsForOneCall) {
  hungry_.hungry = false;
  start(hungry_);
  const UniqueFd many = client(), one = client();
  {
    const Others others(pool_);
    std::vector<std::byte> calls;
    for (std::uint32_t i = 0; i < 100; ++i) {
      const auto record = record_of(ToyCall(i, kToyNull, 0, 0).head);
      calls.insert(calls.end(), record.begin(), record.end());
    }
    push(many, calls);
    settle();
    call(one, 1000);
    settle();
    EXPECT_EQ(hungry_.calls, 0u);
  }
  settle();
  EXPECT_EQ(hungry_.calls, 101u);
  ASSERT_GE(hungry_.xids.size(), 3u);
  EXPECT_EQ(hungry_.xids[1], 1000u);
}

// In fragments of 4 KiB nobody knows how much comes.
TEST_F(TcpShortage, RecordsThatGrowDoNotKeepEachOtherWaiting) {
  start();
  const ToyCall write(7, kToyWrite, 300'000, 1);
  const std::vector<std::byte> record = record_of(message_of(write), 4096);
  const ByteSpan all(record);
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 70; ++i) {
    clients.push_back(client());
    push(clients.back(), all.first(255'000));
    settle();
  }
  for (const UniqueFd& fd : clients)
    push(fd, all.subspan(255'000));
  turn_until([&] { return handler_.calls == clients.size(); });
  EXPECT_EQ(handler_.calls, clients.size());
  EXPECT_EQ(handler_.bad_calls, 0u);
}

// It is the server that does not read.
TEST_F(TcpShortage, ARecordThatWaitsForMemoryIsNotOneThatStalls) {
  start();
  const UniqueFd fd = client();
  const ToyCall write(7, kToyWrite, 300'000, 1);
  const std::vector<std::byte> record = record_of(message_of(write));
  push(fd, ByteSpan(record).first(200'000));
  settle();
  {
    const Others others(pool_);
    push(fd, ByteSpan(record).subspan(200'000));
    for (int i = 0; i < 30; ++i)
      pass(std::chrono::seconds(5));
    EXPECT_EQ(handler_.calls, 0u);
  }
  settle();
  EXPECT_EQ(handler_.calls, 1u);
  EXPECT_EQ(handler_.closed, 0u);
}

}  // namespace
}  // namespace nfsrdma::test
