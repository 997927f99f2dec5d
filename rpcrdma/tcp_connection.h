// SPDX-License-Identifier: Apache-2.0
// One TCP connection of a server and the calls on it; private to tcp_server.cc and
// tcp_connection.cc.
//
// Reading has two regimes. Small records come many at a time through the server's scratch buffer
// and are copied out of it, into the call's own buffer or one of the pool. Once a record is known
// to be large, the rest of it is read straight into its pool buffer, together with the first bytes
// of what follows (readv).
//
// Writing: replies collect until the end of the loop's turn, then leave in one sendmsg, payload by
// reference.
#pragma once

#include <array>
#include <vector>

#include "rpcrdma/backward_calls.h"
#include "rpcrdma/record_mark.h"
#include "rpcrdma/tcp_server.h"

struct iovec;

namespace nfsrdma {

struct TcpOutTag {};

class TcpCall final : public Call, public ListNode<TcpFreeTag>, public ListNode<TcpOutTag> {
 public:
  explicit TcpCall(TcpServer& server) : server_(server) {}

  bool reserve_reply(std::size_t bytes) override;
  MutableByteSpan reply_room() override;
  void reply(const xdr::Encoder& encoder, Buffer payload) override;
  void drop() override;

 private:
  friend class TcpServer;
  friend class TcpServerConnection;

  // Record mark, then up to three pieces for each payload, then the rest.
  static constexpr std::size_t kMaxPieces = 2 + 3 * xdr::Encoder::kMaxPayloads;

  /// The pieces of the reply's record from byte `skip` on; returns how many.
  std::size_t pieces(std::size_t skip, iovec* out) const;
  TcpServerConnection& tcp() const;
  void give_back_unused();

  TcpServer& server_;
  bool with_handler_ = false;
  Buffer small_request_;
  Buffer large_request_;
  Buffer reply_buffer_;
  Buffer long_reply_buffer_;
  std::array<std::byte, kRecordMarkBytes> mark_{};
  std::size_t encoded_bytes_ = 0;
  std::array<xdr::PayloadReference, xdr::Encoder::kMaxPayloads> payloads_;
  std::size_t payload_count_ = 0;
  Buffer payload_;
  std::size_t record_bytes_ = 0;  // of the reply, mark included
  TimePoint answered_{};
};

class TcpServerConnection final : public ServerConnection,
                                  public BufferHolder,
                                  public ListNode<TcpServerConnection>,
                                  private FdWatcher,
                                  private Deferred,
                                  private BufferWaiter,
                                  private BackwardLink {
 public:
  TcpServerConnection(TcpServer& server, UniqueFd socket);
  ~TcpServerConnection() override;
  Result<void> start();

  const SocketAddress& peer() const override { return peer_; }
  const SocketAddress& local() const override { return local_; }
  TransportKind transport() const override { return TransportKind::kTcp; }
  EventLoop& loop() override;
  BufferPool& buffers() override;
  bool sends_file_pages() const override { return tap == nullptr; }
  ConnectionInfo describe() const override;
  void close() override { fail(); }
  Result<void> send_backward(BackwardCall& call) override;
  std::size_t max_backward_call() const override { return kMaxBackward; }

  HeldBuffers held() override;
  std::string host() const override { return peer_.host_text(); }
  void give_way() override;

  /// Takes no more calls and closes when the last one is answered.
  void drain();
  /// Closes as soon as the loop comes round.
  void fail();
  /// The same, and says why.
  void cut_off(const char* why);
  void tear_down();
  /// Waits for the client to close.
  bool is_leaving() const { return leaving_ && !closing_; }
  /// The same, and the client has taken all by now, and sent nothing since the last look.
  bool has_left();
  /// Has no call under way, and can be cut.
  bool is_idle() const { return !closing_ && open_calls_ == 0; }
  bool has_called() const { return stats_.calls != 0; }
  bool pins_large_buffer() const { return record_.size() > kStageBytes; }
  bool has_output() const { return !out_.empty(); }
  TimePoint last_progress() const { return last_progress_; }
  /// Since when the client could have sent more of a record; the future while we do not read.
  TimePoint waits_for_record_since() const {
    return paused() ? TimePoint::max() : std::max(last_progress_, record_since_);
  }
  /// When the client last took something of what is sent to it; only while has_output().
  TimePoint last_taken();

 private:
  friend class TcpCall;
  friend class TcpServer;

  // The longest call in the backward direction, and how many may be without a reply.
  static constexpr std::size_t kMaxBackward = 64 << 10;
  static constexpr std::uint32_t kMostBackward = 64;
  // What a connection may hold of an incomplete record before it gets a buffer of the full size.
  static constexpr std::size_t kStageBytes = 4096;
  // Whole records up to this size are copied out of the scratch buffer: 4 KiB WRITEs come many at a
  // time, and a read of its own for each would cost more.
  static constexpr std::size_t kCopyBytes = 16384;
  // Less than this left of a record is not worth a read of its own.
  static constexpr std::size_t kDirectBytes = 8192;
  // After a large record, read no more than this into the scratch buffer at a time ...
  static constexpr std::size_t kSpillBytes = 4096;
  // ... until this many small ones came in a row.
  static constexpr std::uint32_t kLargeMemory = 64;

  void on_fd_ready(std::uint32_t events) override;
  void run_deferred() override;
  void on_buffers() override;

  void read_ready();
  void client_ended();
  void leave();
  bool has_something_to_lose() const;
  void discard();
  void tell_closed();
  /// One system call; true when there may be more to read.
  bool read_once();
  /// Takes what it can of `data`; what it cannot (no buffers, too many calls) is stashed.
  void consume(ByteSpan data);
  std::size_t consume_some(ByteSpan data);
  std::size_t take_whole_record(ByteSpan data);
  std::size_t take_mark(ByteSpan data);
  bool make_room(std::size_t bytes);
  void shrink_record();
  bool deliver_copy(ByteSpan record);
  bool deliver_record();
  void deliver(TcpCall& call, ByteSpan record);
  void starve(BufferStage stage);
  void resume();

  void submit(TcpCall& call);
  bool transmit(std::uint32_t xid, ByteSpan message) override;
  void enqueue(TcpCall& call);
  void flush();
  void sent(std::size_t bytes);
  void call_finished(TcpCall& call);
  bool paused() const;
  void update_interest();

  TcpServer& server_;
  UniqueFd socket_;
  SocketAddress peer_;
  SocketAddress local_;
  TimePoint since_;
  TimePoint last_progress_;
  TimePoint last_sent_{};   // or acknowledged, or when the first of out_ came
  int unacknowledged_ = 0;  // bytes in the kernel's hands, when last_taken() looked
  std::uint32_t interest_ = 0;

  RecordCursor cursor_;
  std::array<std::byte, kRecordMarkBytes> mark_{};
  std::size_t mark_have_ = 0;
  Buffer record_;
  std::size_t record_have_ = 0;
  TimePoint record_since_{};      // since record_ is of its size
  std::vector<std::byte> stash_;  // read but not taken yet; empty unless something ran out
  std::uint32_t large_memory_ = 0;
  bool starved_ = false;
  bool its_turn_ = false;  // among those who wait with the pool: for one record
  bool had_turn_ = false;
  bool blocked_ = false;  // the socket took not all of out_

  IntrusiveList<TcpCall, TcpOutTag> out_;
  std::size_t out_bytes_ = 0;                // of all of out_
  std::size_t out_offset_ = 0;               // sent of the first
  std::size_t open_calls_ = 0;               // with the handler or in out_
  std::unique_ptr<BackwardCalls> backward_;  // null until it is used
  bool closing_ = false;
  bool torn_down_ = false;
  bool draining_ = false;
  bool client_ended_ = false;  // it sends no more, but may wait for answers
  bool leaving_ = false;       // we send no more, and wait for the client to close
  bool heard_ = false;         // from it meanwhile
  bool told_closed_ = false;
  TransferStats stats_;
};

}  // namespace nfsrdma
