// SPDX-License-Identifier: Apache-2.0
// RdmaClient: the ClientTransport behind make_rdma_transport() (requester.h). One per connection,
// with an endpoint (protection domain, queues) and message buffers of its own.
//
// A call occupies an Exchange from the moment it leaves until its reply is here and its Send is
// complete. The Exchange owns what is exposed for the call; destroying those regions is what
// withdraws the exposure, and that comes before on_complete() on every path.
//
// A call that was cancelled leaves its Exchange behind, without any memory, until the reply comes:
// the server still counts it against our credits.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/rdma_endpoint.h"
#include "rpcrdma/requester.h"

namespace nfsrdma {

class RdmaClient;

/// Receives beyond the calls outstanding: for the server's own calls, and for those of a server
/// that makes more of them than it may.
inline constexpr std::uint32_t kSpareReceives = 2 * kBackwardCredits;

/// One call on the wire.
class Exchange final : public WorkOwner {
 public:
  explicit Exchange(RdmaClient& client) : client_(client) {}
  void on_work_done(std::uint32_t tag, WorkStatus status) override;

 private:
  friend class RdmaClient;
  // The head, the payload, and the pad with the tail.
  static constexpr std::size_t kMaxSources = 3;

  void withdraw();
  bool free() const { return !awaiting_reply_ && !sending_; }

  RdmaClient& client_;
  ClientCall* call_ = nullptr;  // null when cancelled
  std::uint32_t xid_ = 0;
  bool awaiting_reply_ = false;
  bool sending_ = false;
  Buffer message_;                                 // what is sent
  std::array<MemoryRegion, kMaxSources> sources_;  // Read chunk
  MemoryRegion sink_;                              // Write chunk
  MemoryRegion long_reply_;                        // Reply chunk
  MutableByteSpan long_reply_bytes_;               // empty: no Reply chunk was offered
  bool sink_offered_ = false;
  std::vector<std::byte> own_long_reply_;  // when the call brought none
  std::vector<std::byte> own_tail_;        // pad and tail of a Position-Zero Read chunk
};

/// One reply to a call of the server's own, while its Send is posted.
class BackwardReply final : public WorkOwner {
 public:
  explicit BackwardReply(RdmaClient& client) : client_(client) {}
  void on_work_done(std::uint32_t tag, WorkStatus status) override;

 private:
  friend class RdmaClient;
  RdmaClient& client_;
  Buffer message_;  // empty: free
};

class RdmaClient final : public ClientTransport,
                         private ConnectHandler,
                         private QueuePairHandler,
                         private MessageHandler,
                         private Deferred {
 public:
  RdmaClient(EventLoop& loop, Fabric& fabric, const SocketAddress& server,
             const RdmaClientOptions& options, ClientTransportHandler& handler);
  ~RdmaClient() override;
  void start();

  void submit(ClientCall& call) override;
  void cancel(ClientCall& call) override;
  void close() override;
  TransportKind kind() const override;
  ConnectionInfo describe() const override;
  TimePoint last_heard() const override { return last_heard_; }

 private:
  friend class Exchange;
  friend class BackwardReply;
  enum class State : std::uint8_t { kConnecting, kReady, kClosing, kClosed };

  Result<QueuePairOptions> on_device(Device& device) override;
  void on_connected(std::unique_ptr<QueuePair> queue_pair, ByteSpan private_data) override;
  void on_connect_failed(Error error, const std::string& detail) override;
  void on_disconnected(Error why) override;
  void on_message(const ReceivedMessage& message) override;
  void run_deferred() override;

  void pump();
  enum class Sent : std::uint8_t { kYes, kFailed, kNotNow };
  Sent send(Exchange& exchange, ClientCall& call);
  bool wait_for_room();
  Result<std::size_t> marshal(Exchange& exchange, ClientCall& call);
  Result<void> offer_room(Exchange& exchange, ClientCall& call);
  Result<void> offer_sink(Exchange& exchange, ClientCall& call);
  Result<void> offer_long_reply(Exchange& exchange, ClientCall& call, std::size_t size);
  Result<void> offer_payload(Exchange& exchange, ClientCall& call);
  Result<void> offer_whole_call(Exchange& exchange, ClientCall& call);
  void count_sent(std::size_t inline_bytes);
  Result<MemoryRegion> expose(ByteSpan bytes, Access access);
  Segment segment_of(const MemoryRegion& region) const;

  void handle_reply(const ReceivedMessage& message);
  bool is_backward_call(HeaderVerdict verdict, ByteSpan rpc) const;
  void answer_backward_call(ByteSpan rpc);
  Error take_reply(Exchange& exchange, ClientCall& call, const ReceivedMessage& message);
  Error take_inline(Exchange& exchange, ClientCall& call, ByteSpan rpc);
  Error take_long(Exchange& exchange, ClientCall& call);
  Error place_result(const Exchange& exchange, ClientCall& call, ByteSpan rpc);
  void note_credits(std::uint32_t granted);
  void complete(Exchange& exchange, ClientCall& call, Error error);
  Exchange* find(std::uint32_t xid);
  Exchange* idle_exchange();
  void shut(Error why, std::string detail);
  void tear_down();
  void fail_calls();

  EventLoop& loop_;
  Fabric& fabric_;
  SocketAddress server_;
  RdmaClientOptions options_;
  std::array<std::byte, PrivateData::kBytes> private_data_{};
  std::uint64_t id_;
  ClientTransportHandler& handler_;
  State state_ = State::kConnecting;
  Error why_{};
  std::string detail_;
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<RdmaEndpoint> endpoint_;
  std::unique_ptr<QueuePair> queue_pair_;
  QueuePairInfo info_;
  DeviceInfo device_;
  InlineThresholds inline_;
  Timer connect_timer_;
  Timer room_timer_;                        // to look for room that others have
  std::optional<TimePoint> no_room_since_;  // with nothing of ours under way
  TimePoint looked_for_room_{};

  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<Exchange*> idle_;
  // A call may be here before the completion of the Send that answered the one before it.
  std::vector<std::unique_ptr<BackwardReply>> backward_replies_;
  IntrusiveList<ClientCall> waiting_;
  std::uint32_t outstanding_ = 0;  // exchanges that await a reply
  std::uint32_t credits_ = 1;      // RFC 8166, 3.3.3: one until the first reply
  bool pumping_ = false;
  TransportHeader header_;  // of the message being handled
  ChunkLists chunks_;       // of the call being marshalled
  xdr::ReducedItem reduced_;
  TimePoint since_{};
  TimePoint last_heard_{};
  TransferStats stats_;
  std::uint64_t unmatched_ = 0;  // replies to nobody, backward calls that are not answered
};

}  // namespace nfsrdma
