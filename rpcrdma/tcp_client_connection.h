// SPDX-License-Identifier: Apache-2.0
// TcpClient: the ClientTransport behind make_tcp_transport() (tcp_client.h).
//
// Receiving: a reply that is complete in the scratch buffer is handed out from there. Of a longer
// one the head goes into record_, and the data, when find_result() knows where it is, from the
// socket into the call's sink; any other long reply is read into record_ whole.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/nfs_binding.h"
#include "rpcrdma/record_mark.h"
#include "rpcrdma/tcp_client.h"

struct iovec;

namespace nfsrdma {

class TcpClient final : public ClientTransport, private FdWatcher, private Deferred {
 public:
  TcpClient(EventLoop& loop, const SocketAddress& server, const TcpClientOptions& options,
            ClientTransportHandler& handler);
  ~TcpClient() override;
  void start();

  void submit(ClientCall& call) override;
  void cancel(ClientCall& call) override;
  void close() override;
  TransportKind kind() const override { return TransportKind::kTcp; }
  ConnectionInfo describe() const override;
  TimePoint last_heard() const override { return last_heard_; }

 private:
  enum class State : std::uint8_t { kConnecting, kReady, kClosed };

  /// One call that left or is leaving.
  struct Slot : ListNode<Slot> {
    ClientCall* call = nullptr;  // null: cancelled
    std::uint32_t xid = 0;
    std::byte mark[kRecordMarkBytes];
    std::size_t record_bytes = 0;
    bool large_sink = false;
    // The record, when its call was cancelled half sent, or when it is a backward reply.
    std::vector<std::byte> copy;
    bool backward = false;  // one of backward_replies_
  };
  // Replies to the server's own calls that are not in the socket yet. A server that goes on calling
  // without taking them is not answered.
  static constexpr std::size_t kMaxBackwardReplies = 2 * kBackwardCredits;
  static constexpr std::size_t kMaxPieces = 5;  // mark, head, payload, pad, tail
  static constexpr std::size_t kScratchBytes = 64 << 10;
  static constexpr std::size_t kSpillBytes = 4096;
  static constexpr std::size_t kLargeSink = 16 << 10;

  void on_fd_ready(std::uint32_t events) override;
  void run_deferred() override;
  bool begin_connecting(bool* port_taken);
  void finish_connecting();
  void shut(Error why, std::string detail);
  void fail_calls();

  void flush();
  void fill_output();
  static std::size_t pieces(const Slot& slot, std::size_t skip, iovec* out);
  void sent(std::size_t bytes);
  void update_interest();

  bool read_once();
  void parse();
  bool parse_record();
  bool begin_long_reply(ByteSpan available);
  void take_long(ByteSpan* available);
  void finish_long();
  void deliver(ByteSpan reply, std::span<const xdr::ReducedItem> reduced);
  void answer_backward_call(ByteSpan rpc);
  Slot* find(std::uint32_t xid);
  void release(Slot& slot);

  EventLoop& loop_;
  SocketAddress server_;
  TcpClientOptions options_;
  ClientTransportHandler& handler_;
  std::uint64_t id_;
  State state_ = State::kConnecting;
  Error why_{};
  std::string detail_;
  UniqueFd socket_;
  SocketAddress local_;
  std::uint32_t interest_ = 0;
  Timer connect_timer_;

  IntrusiveList<ClientCall> waiting_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> idle_;
  std::array<Slot, kMaxBackwardReplies> backward_replies_;  // free: in no list
  IntrusiveList<Slot> out_;                                 // not yet in the socket entirely
  IntrusiveList<Slot> sent_;                                // awaiting their replies
  std::size_t out_offset_ = 0;
  std::size_t large_sinks_ = 0;  // of the calls in sent_ and out_

  std::unique_ptr<std::byte[]> scratch_;
  std::size_t scratch_begin_ = 0;
  std::size_t scratch_end_ = 0;
  RecordCursor cursor_;
  // The reply that is not complete in the scratch buffer:
  bool in_long_ = false;
  std::vector<std::byte> record_;  // without what goes to the sink
  std::size_t record_have_ = 0;
  Slot* target_ = nullptr;  // whose sink is being filled; null: none, or cancelled
  std::optional<ResultPlace> place_;
  std::size_t placed_ = 0;  // of place_->length, pad not counted
  xdr::ReducedItem reduced_;
  TimePoint since_{};
  TimePoint last_heard_{};
  TransferStats stats_;
};

}  // namespace nfsrdma
