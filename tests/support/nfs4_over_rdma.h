// SPDX-License-Identifier: Apache-2.0
// Nfs4OverRdma: what an Nfs4Harness serves, through a dispatcher as in a shard, to a client on a
// simulated RDMA connection and to one over TCP. Both send what the test made by hand: which items
// travel in which chunks is the test's to say.
//
// All of it lives on the harness's serving thread, where each call is waited for.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "rpcrdma/record_mark.h"
#include "rpcrdma/tcp_server.h"
#include "server/dispatch.h"
#include "tests/support/chunked_compound.h"
#include "tests/support/nfs4_harness.h"
#include "tests/support/raw_client.h"

namespace nfsrdma::test {

class Nfs4OverRdma {
 public:
  explicit Nfs4OverRdma(Nfs4Harness& harness) : harness_(harness) {
    harness_.on_its_thread([this] { start(); });
  }
  ~Nfs4OverRdma() {
    harness_.on_its_thread([this] { stop(); });
  }
  Nfs4OverRdma(const Nfs4OverRdma&) = delete;
  Nfs4OverRdma& operator=(const Nfs4OverRdma&) = delete;

  /// Write chunks with room for so many bytes each, of two segments (0: without segments), and a
  /// Reply chunk (0: none).
  struct Chunks {
    std::vector<std::size_t> write;
    std::size_t reply = 0;
  };
  ChunkedReply over_rdma(const ChunkedCompound& call, const Chunks& chunks) {
    ChunkedReply out;
    harness_.on_its_thread([&] { ask(call, chunks, out); });
    return out;
  }
  ChunkedReply over_tcp(const ChunkedCompound& call) {
    ChunkedReply out;
    harness_.on_its_thread([&] { ask(call, out); });
    return out;
  }
  /// How many regions a peer could reach at the same time, during the last call over RDMA: those of
  /// the client and, were there any, of the server.
  std::size_t most_exposed() const { return most_exposed_; }

 private:
  void start() {
    // Stubs count theirs for themselves, and no two connections have the same.
    while (next_connection_id() < 1000)
      continue;
    Dispatcher::Shared shared;
    shared.server = &harness_.server();
    committer_.emplace(harness_.server().syncs, 2);
    workers_.emplace(2);
    shared.workers = &*workers_;
    shared.committer = &*committer_;
    shared.replies = &replies_;
    shared.programs = {&nfs4::program_table(), 1};
    pair_ = std::make_unique<SimPair>(
        1, SimFaults{}, RdmaServerLimits{}, std::size_t{64} << 20,
        [&shared](EventLoop& loop) { return std::make_unique<Dispatcher>(loop, shared); });
    client_ = std::make_unique<RawClient>(*pair_);
    ASSERT_TRUE(client_->connected());
    tcp_server_ = std::make_unique<TcpServer>(*pair_->loop, *pair_->pool, *pair_->service);
    tcp_listener_ =
        std::move(TcpListener::listen(*pair_->loop, SocketAddress::parse("127.0.0.1", 0).value(),
                                      [this](UniqueFd fd) { tcp_server_->adopt(std::move(fd)); }))
            .value();
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress& address = tcp_listener_->address();
    ASSERT_EQ(::connect(socket_.get(), address.data(), address.length()), 0);
    turn_until([this] { return tcp_server_->connection_count() > 0; });
  }
  void stop() {
    EXPECT_EQ(pair_->fabric.violations(), std::vector<std::string>{});
    client_.reset();
    pair_->run();
    EXPECT_EQ(pair_->server->connection_count(), 0u);
    tcp_listener_.reset();
    tcp_server_.reset();
    // Their threads may still be about to wake the loop, which goes after them.
    workers_.reset();
    committer_.reset();
    pair_.reset();
  }
  /// Until something is so, while workers and the committer may have to do their part.
  template <typename Condition>
  bool turn_until(Condition condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) {
      while (pair_->run(1) != 0)
        most_exposed_ = std::max(most_exposed_, pair_->fabric.exposed_regions());
      if (!condition()) pair_->loop->turn(std::chrono::milliseconds(10));
    }
    return condition();
  }

  void ask(const ChunkedCompound& call, const Chunks& chunks, ChunkedReply& out) {
    ChunkLists lists;
    lists.clear();
    std::vector<ChunkedCompound::Item> items;
    const std::uint32_t xid = ++last_xid_;
    const std::vector<std::byte> rpc = call.reduced(xid, items);
    for (ChunkedCompound::Item& item : items)
      lists.add_read_segment(item.position, client_->expose(item.bytes, Access::kRemoteRead));
    std::vector<std::vector<std::byte>> memory;
    for (const std::size_t size : chunks.write) {
      MutableByteSpan bytes = memory.emplace_back(size);
      lists.begin_write_chunk();
      if (size == 0) continue;
      const std::size_t half = (size + 1) / 2;
      for (MutableByteSpan part : {bytes.first(half), bytes.subspan(half)})
        lists.add_write_segment(client_->expose(part, Access::kRemoteWrite));
    }
    std::vector<std::byte> reply_memory(chunks.reply);
    if (chunks.reply != 0) {
      lists.has_reply_chunk = true;
      lists.add_reply_segment(client_->expose(reply_memory, Access::kRemoteWrite));
    }
    std::vector<std::byte> message(2048);
    message.resize(encode_header(message, xid, 32, RDMA_MSG, lists));
    message.insert(message.end(), rpc.begin(), rpc.end());
    ASSERT_LE(message.size(), 4096u) << "longer than the server's inline threshold";
    client_->inbox.clear();
    most_exposed_ = 0;
    client_->send_only(message);
    ASSERT_TRUE(turn_until([this] { return !client_->inbox.empty(); }));
    take(client_->inbox[0], lists, chunks, memory, reply_memory, out);
    client_->regions.clear();
  }

  static void take(ByteSpan sent, const ChunkLists& asked, const Chunks& chunks,
                   const std::vector<std::vector<std::byte>>& memory,
                   const std::vector<std::byte>& reply_memory, ChunkedReply& out) {
    TransportHeader header;
    ASSERT_EQ(decode_header(sent, header), HeaderVerdict::kOk);
    out.proc = header.proc;
    out.error = header.error;
    if (header.proc == RDMA_ERROR) return;
    out.in_line = sent.size() - header.header_bytes;
    const ChunkLists& lists = header.chunks;
    ASSERT_EQ(lists.write_chunk_count, asked.write_chunk_count);
    for (std::size_t i = 0; i < lists.write_chunk_count; ++i) {
      const WriteChunk& chunk = lists.write_chunks[i];
      ASSERT_EQ(chunk.count, asked.write_chunks[i].count);
      for (std::size_t s = 0; s < chunk.count; ++s)
        EXPECT_EQ(lists.segments(chunk)[s].handle, asked.segments(asked.write_chunks[i])[s].handle);
      ASSERT_LE(chunk.length, memory[i].size());
      const ByteSpan all(memory[i]);
      out.written.emplace_back(as_text(all.first(chunk.length)));
      // Nothing else was touched.
      for (const std::byte left : all.subspan(chunk.length))
        EXPECT_EQ(left, std::byte{0}) << "chunk " << i;
    }
    ByteSpan message = sent.subspan(header.header_bytes);
    if (header.proc == RDMA_NOMSG) {
      EXPECT_TRUE(message.empty());
      out.in_reply_chunk = static_cast<std::uint32_t>(lists.reply_length);
      message = ByteSpan(reply_memory).first(lists.reply_length);
    } else {
      EXPECT_EQ(lists.reply_length, 0u);
    }
    out.take(message, chunks.write);
  }

  void ask(const ChunkedCompound& call, ChunkedReply& out) {
    const std::vector<std::byte> message = call.whole(++last_xid_);
    std::vector<std::byte> record(4);
    store_be32(record.data(), 0x80000000u | static_cast<std::uint32_t>(message.size()));
    record.insert(record.end(), message.begin(), message.end());
    ASSERT_EQ(::send(socket_.get(), record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
    std::vector<std::byte> got;
    const bool whole = turn_until([&] {
      std::byte bytes[4096];
      for (ssize_t n; (n = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
        got.insert(got.end(), bytes, bytes + n);
      return got.size() >= 4 && got.size() - 4 >= (load_be32(got.data()) & 0x7fffffffu);
    });
    ASSERT_TRUE(whole);
    out.take(ByteSpan(got).subspan(4), {});
  }

  Nfs4Harness& harness_;
  SteadyClock clock_;
  std::optional<Committer> committer_;
  std::optional<WorkerPool> workers_;
  ReplyCache replies_{std::size_t{1} << 20, clock_};
  std::unique_ptr<SimPair> pair_;
  std::unique_ptr<RawClient> client_;
  std::unique_ptr<TcpServer> tcp_server_;
  std::unique_ptr<TcpListener> tcp_listener_;
  UniqueFd socket_;
  std::size_t most_exposed_ = 0;
  std::uint32_t last_xid_ = 0x9000;
};

}  // namespace nfsrdma::test
