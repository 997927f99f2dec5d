// SPDX-License-Identifier: Apache-2.0
// The server side of RPC-over-RDMA, below RdmaServer.
//
//   ResponderShard       one per device: endpoint, credit ledger, pool of Calls, who waits for
//                        buffers
//   ResponderConnection  one queue pair: its calls, its Reads, its send queue
//   ResponderCall        one message, from the receive to the completion of its reply
//   ResponderBackward    the connection's calls in the other direction, once there are any
//
// A call's way: arrive -> (wait for buffers) -> (pull Read chunks) -> with the handler ->
// (wait for the send queue) -> sending -> free. Each state's owner is named below. When the
// connection dies, calls in any state but "with the handler" are dropped at once; that one is when
// the handler replies.
//
// Memory: a call holds the receive buffer until it is answered, and buffers for its header, reply
// and chunks; whatever is posted stays with the call until its completion, or until the queue pair
// is destroyed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "rpcrdma/call.h"
#include "rpcrdma/credits.h"
#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/rdma_endpoint.h"
#include "rpcrdma/rdma_server.h"
#include "rpcrdma/reply_chain.h"
#include "rpcrdma/responder_backward.h"

namespace nfsrdma {

struct WaitingTag {};     // for Reads or the send queue (connection)
struct OpenTag {};        // all calls of a connection
struct ConnectionTag {};  // all connections of a shard

class ResponderCall final : public Call,
                            public WorkOwner,
                            public BufferWaiter,
                            public ListNode<WaitingTag>,
                            public ListNode<OpenTag> {
 public:
  enum class State : std::uint8_t {
    kFree,          // in the shard's free list
    kNeedsBuffers,  // waits with the pool
    kReading,       // in ResponderConnection::readers_ until all its Reads are posted
    kWithHandler,
    kNeedsSendQueue,  // in ResponderConnection::senders_
    kSending,
  };
  /// What the call will be answered with if it never reaches the handler.
  enum class Refusal : std::uint8_t { kNone, kErrVers, kErrChunk };

  explicit ResponderCall(ResponderShard& shard) : shard_(shard) {}

  // --- Call ---
  bool reserve_reply(std::size_t bytes) override;
  MutableByteSpan reply_room() override;
  void reply(const xdr::Encoder& encoder, Buffer payload) override;
  void drop() override;

 private:
  friend class ResponderConnection;
  friend class ResponderShard;

  void on_work_done(std::uint32_t tag, WorkStatus status) override;
  void on_buffers() override;
  ResponderConnection& responder() const;

  /// Message arrived: decode, judge, go on.
  void arrive(ResponderConnection& connection, const ReceivedMessage& message);
  bool judge(const ReceivedMessage& message);
  /// Takes the buffers that the call needs; false when it must wait for them, with none of them,
  /// in stage kNewCall.
  bool take_buffers();
  bool take_chunk_buffers();
  bool chunks_affordable() const;
  void proceed();
  void read_done(WorkStatus status);
  void all_read();
  /// None of its Reads is under way: gives back the sinks of those that are done.
  void drop_sinks();
  void deliver();
  void refuse(Refusal refusal);
  /// Its connection is cut, and nothing of it is posted.
  void abandon();
  void give_back_request();
  ReplyParts parts();
  /// What it holds for as long as the client likes.
  void count_held(HeldBuffers& held) const;

  ResponderShard& shard_;
  State state_ = State::kFree;
  Refusal refusal_ = Refusal::kNone;
  TransportHeader header_;
  std::uint32_t receive_slot_ = 0;
  bool holds_receive_ = false;
  TimePoint held_since_{};  // when its Reads could begin, then when it was answered
  ByteSpan inline_message_;
  Buffer send_buffer_;        // header of the reply
  Buffer reply_buffer_;       // reply_room() at first
  Buffer long_reply_buffer_;  // after reserve_reply() of more

  // Read chunks: one buffer each, all segments one after the other.
  std::array<Buffer, ChunkLists::kMaxReadChunks> chunk_buffers_;
  std::array<MemoryRegion, ChunkLists::kMaxReadChunks> sinks_;
  std::array<xdr::ReducedItem, ChunkLists::kMaxReadChunks> items_;
  std::uint16_t next_chunk_ = 0;    // the next segment to read
  std::uint16_t next_segment_ = 0;  // within that chunk
  std::uint32_t chunk_done_ = 0;    // bytes of that chunk before the segment
  std::uint32_t reads_out_ = 0;
  bool read_failed_ = false;

  // The reply, while it is sent.
  std::size_t encoded_bytes_ = 0;
  std::array<xdr::PayloadReference, xdr::Encoder::kMaxPayloads> payloads_;
  std::size_t payload_count_ = 0;
  Buffer payload_;
  std::uint32_t send_entries_ = 0;
};

class ResponderConnection final : public ServerConnection,
                                  public QueuePairHandler,
                                  public BufferHolder,
                                  public ListNode<ConnectionTag>,
                                  private Deferred {
 public:
  ResponderConnection(ResponderShard& shard, const SocketAddress& peer, const PrivateData& theirs);
  ~ResponderConnection() override;

  /// The credits are there and the queue pair is up; false: refuse.
  bool reserve_credits();
  void start(std::unique_ptr<QueuePair> queue_pair);

  // --- ServerConnection ---
  const SocketAddress& peer() const override { return peer_; }
  const SocketAddress& local() const override { return info_.local; }
  TransportKind transport() const override;
  EventLoop& loop() override;
  BufferPool& buffers() override;
  bool sends_file_pages() const override { return info_.sends_file_pages && tap == nullptr; }
  ConnectionInfo describe() const override;
  void close() override { cut(); }
  Result<void> send_backward(BackwardCall& call) override;
  std::size_t max_backward_call() const override;

  // --- QueuePairHandler ---
  void on_disconnected(Error why) override;

  // --- BufferHolder ---
  HeldBuffers held() override;
  std::string host() const override { return peer_.host_text(); }
  void give_way() override;

  void on_message(const ReceivedMessage& message);
  /// Takes no more calls and closes when the last one is answered.
  void drain();
  /// Closes now. None of its calls gets to the handler from here on, though the fabric may hand up
  /// messages until the peer knows.
  void cut();
  /// The same, and says why.
  void cut_off(const char* why);
  /// Has no call under way, and can be cut.
  bool is_idle() const { return usable() && !draining_ && open_count_ == 0; }
  bool has_called() const { return stats_.calls != 0; }
  /// For the destruction of the server: as if disconnected.
  void tear_down();

 private:
  friend class ResponderBackward;
  friend class ResponderCall;
  friend class ResponderShard;
  friend class RdmaServer;

  void run_deferred() override { tear_down(); }
  /// An RPC message that is no call; `header` is that of the Send. False: nothing that we wait for.
  bool take_backward_reply(const TransportHeader& header, ByteSpan rpc);
  /// RDMA_ERROR. False: not about a call of ours.
  bool take_backward_error(const TransportHeader& header);
  void pump_reads();
  bool add_read(ResponderCall& call);
  /// No sink can be registered now. The call stays in front, and its turn comes when a Read of ours
  /// ends, or soon: other connections have sinks as well. Cuts after
  /// RdmaServerLimits::stalled_after.
  void wait_for_sink();
  /// Counts a Read that is being posted.
  void read_posted();
  void read_ended();
  void reply_taken();
  /// Cuts a peer none of whose Reads ended, and that took no reply, for
  /// RdmaServerLimits::stalled_after.
  void watch_reads();
  void submit_send(ResponderCall& call);
  void pump_sends();
  /// False when the send queue lacks the room.
  bool try_send(ResponderCall& call);
  void call_finished(ResponderCall& call);
  /// Are replies to end exposures? The device may have turned out not to have it.
  bool invalidates() const;
  bool usable() const { return queue_pair_ != nullptr && !disconnected_; }

  ResponderShard& shard_;
  SocketAddress peer_;
  InlineThresholds inline_;
  bool invalidate_ = false;
  std::unique_ptr<QueuePair> queue_pair_;
  QueuePairInfo info_;
  std::chrono::steady_clock::time_point since_;
  TimePoint last_heard_;
  SendQueue send_queue_;
  ConnectionCredits credits_;
  std::uint32_t outbound_reads_ = 0;
  std::uint32_t reads_out_ = 0;
  // When the latest Read ended or the latest reply was taken, or the first of the Reads that are
  // out was posted.
  TimePoint read_progress_{};
  // Left armed when no Read is out, since arming costs an allocation: it looks when it fires.
  Timer read_watch_;
  std::optional<TimePoint> no_sink_since_;  // readers_.front() waits for one
  Timer sink_timer_;
  IntrusiveList<ResponderCall, OpenTag> open_calls_;
  std::uint32_t open_count_ = 0;
  std::uint32_t receives_held_ = 0;  // by its calls
  IntrusiveList<ResponderCall, WaitingTag> readers_;
  IntrusiveList<ResponderCall, WaitingTag> senders_;
  std::unique_ptr<ResponderBackward> backward_;  // null until it is used
  bool disconnected_ = false;
  bool torn_down_ = false;
  bool draining_ = false;
  bool cut_ = false;
  TransferStats stats_;
};

class ResponderShard final : public MessageHandler {
 public:
  static Result<std::unique_ptr<ResponderShard>> create(RdmaServer& server, Device& device);
  ~ResponderShard() override;

  RdmaServer& server() { return server_; }
  RdmaEndpoint& endpoint() { return *endpoint_; }
  CreditLedger& ledger() { return ledger_; }
  ReplyChain& chain() { return chain_; }
  BufferPool& pool();
  /// Then nobody passes those who wait, by buffers that were kept either.
  bool memory_is_short() { return pool().in_use() > pool().budget() / 16 * 7; }

  void accept(std::unique_ptr<ConnectRequest> request);
  /// Posts receives for `more` credits than are granted now, as far as possible.
  void cover_credits(std::uint32_t more);
  /// A call of `connection` keeps its receive until it is answered.
  void receive_held(ResponderConnection& connection);
  void receive_given_back(ResponderConnection& connection, std::uint32_t slot);
  /// Receives that are posted.
  std::uint32_t receives_left() const;
  ResponderCall* take_call();
  void recycle(ResponderCall& call);

  void on_message(const ReceivedMessage& message) override;
  void on_device_gone() override;

 private:
  friend class RdmaServer;
  friend class ResponderCall;
  friend class ResponderConnection;

  ResponderShard(RdmaServer& server, Device& device);

  void cut_who_has_too_many();

  RdmaServer& server_;
  Device& device_;
  CreditLedger ledger_;
  std::unique_ptr<RdmaEndpoint> endpoint_;
  ReplyChain chain_;
  IntrusiveList<ResponderConnection, ConnectionTag> connections_;
  IntrusiveList<ResponderConnection, ConnectionTag> dead_;
  IntrusiveList<ResponderCall, WaitingTag> free_;
  std::size_t free_count_ = 0;
  std::size_t warm_calls_;           // so many keep their buffers for the next message
  std::uint32_t receives_held_ = 0;  // by calls
  bool device_gone_ = false;
};

}  // namespace nfsrdma
