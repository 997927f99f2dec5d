// SPDX-License-Identifier: Apache-2.0
// ClientTransport: one connection to a server, on which RPC calls can be submitted: requester.h
// over RDMA, tcp_client.h over TCP. It knows nothing of reconnecting; client/rpc_client.h makes a
// new one and submits the unanswered calls again with the same xids.
//
// Everything happens on the EventLoop's thread. Nothing here allocates per call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/connection_info.h"
#include "xdr/decoder.h"

namespace nfsrdma {

/// One RPC call of the client. Owned by the caller, which keeps it and all memory that it names in
/// place until on_complete(). May be submitted again afterwards.
class ClientCall : public ListNode<ClientCall> {
 public:
  virtual ~ClientCall() = default;

  // --- filled in by the caller before submit() ---
  std::uint32_t xid = 0;
  /// The RPC call message, xid first, without the payload below.
  ByteSpan head;
  /// DDP-eligible argument (WRITE data, SYMLINK text). It stands in the XDR stream right after
  /// head, followed by its pad and then by `tail`. May be empty. has_payload says whether there is
  /// such an argument at all (a WRITE of 0 bytes has one).
  bool has_payload = false;
  ByteSpan payload;
  ByteSpan tail;
  /// Where the DDP-eligible result (READ data, READLINK text) is to be placed. Empty: none
  /// expected. The server can write here from submit() to on_complete(), never before or after.
  MutableByteSpan sink;
  /// Upper bound of the reply's bytes without the sink's data; decides about a Reply chunk.
  std::size_t max_reply = 0;
  /// Where the reply goes when it does not fit inline: at least max_reply bytes, or empty (then the
  /// transport takes its own).
  MutableByteSpan long_reply;

  // --- valid in on_complete() ---
  /// All of it was given to the network: the server may have run it. For whoever submits it to
  /// take back.
  bool sent = false;
  /// The rest only when this is true.
  bool ok = false;
  Error error{};
  /// The RPC reply, xid first, valid until on_complete() returns. Without the data that was placed
  /// in `sink`; `reduced` tells a Decoder about it. (When the server sent the data inline, it is
  /// in `reply` and `reduced` is empty: the caller copies it.)
  ByteSpan reply;
  std::span<const xdr::ReducedItem> reduced;

  /// Done: answered, or failed (kClosed: the connection is gone and whether the server ran the call
  /// is unknown). All remote access to the call's memory has ended.
  virtual void on_complete() = 0;

 protected:
  friend class ClientTransport;

 public:
  /// For the transport that has the call.
  void* transport_state = nullptr;
};

/// Calls of the server's own (the backward direction, RFC 8167) that it may have under way at once
/// on one connection. More are not answered.
inline constexpr std::uint32_t kBackwardCredits = 2;
/// The longest reply to one of them. Their length is for the server to choose, within the inline
/// threshold over RDMA and the longest record over TCP.
inline constexpr std::size_t kMaxBackwardReply = 1024;

class ClientTransportHandler {
 public:
  virtual ~ClientTransportHandler() = default;
  /// The server calls: an RPC message, xid first, valid until this returns. Encodes the reply into
  /// `room`, kMaxBackwardReply bytes, and returns how many it has; 0: there is none, ever.
  virtual std::size_t on_backward_call(ByteSpan call, MutableByteSpan room) {
    static_cast<void>(call);
    static_cast<void>(room);
    return 0;
  }
  /// Calls may be submitted.
  virtual void on_transport_ready() = 0;
  /// Never became ready, or was ready and is gone. Every call still with the transport has
  /// completed with kClosed before. `detail` is for people. The transport may be destroyed from a
  /// posted or deferred item, not inside this call.
  virtual void on_transport_closed(Error why, const std::string& detail) = 0;
};

class ClientTransport {
 public:
  virtual ~ClientTransport() = default;
  /// Queues `call`; it leaves when a credit is free, in order of submission. Before ready or after
  /// close it completes with kClosed.
  virtual void submit(ClientCall& call) = 0;
  /// Withdraws `call`: its memory is no longer reachable when this returns and on_complete() will
  /// not be called. A late reply is ignored. (On fabrics that cannot withdraw one call this closes
  /// the connection.)
  virtual void cancel(ClientCall& call) = 0;
  virtual void close() = 0;
  virtual TransportKind kind() const = 0;
  virtual ConnectionInfo describe() const = 0;
  /// When something last arrived from the server.
  virtual std::chrono::steady_clock::time_point last_heard() const = 0;
};

}  // namespace nfsrdma
