// SPDX-License-Identifier: Apache-2.0
// Call: one RPC call on the server side, from the arrival of its last byte to its reply. Both
// server transports (responder.h over RDMA, tcp_server.h over TCP) make them; the server layer
// (server/dispatch.h) sees nothing else of a transport.
//
// Lifetimes: the transport owns and recycles Call objects. Between on_call() and reply() or drop()
// the handler has it, and with it the request's bytes, which do not move and which no peer can
// write any more. Exactly one of reply() and drop() is called, on the loop's thread, also when
// the connection closed meanwhile (the transport then discards the reply). A worker thread may
// use a Call that the handler lent to it, everything but reply(), drop() and the buffer calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "rpcrdma/backward_call.h"
#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/base/latency_histogram.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/connection_info.h"
#include "rpcrdma/wire_tap.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace nfsrdma {

class EventLoop;

/// What the server layer may know about where a call came from.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;
  virtual const SocketAddress& peer() const = 0;
  /// What the client knows this server by; without a family where that is not known. Any thread
  /// that has a call.
  virtual const SocketAddress& local() const {
    static const SocketAddress none;
    return none;
  }
  virtual TransportKind transport() const = 0;
  virtual EventLoop& loop() = 0;
  virtual BufferPool& buffers() = 0;
  /// May the payload of a reply be a window (BufferPool::acquire_window())? On the loop's thread.
  virtual bool sends_file_pages() const { return false; }
  virtual ConnectionInfo describe() const = 0;
  /// Ends it soon; calls that the handler has are answered into the void. On the loop's thread.
  virtual void close() = 0;
  /// Calls the client, in the backward direction (backward_call.h). On the loop's thread. When this
  /// gives an error `call` is not taken: kClosed, kInvalid (longer than max_backward_call()),
  /// kExhausted (too many are waiting). Otherwise its on_complete() follows, no later than
  /// on_connection_closed(). A call beyond what the client grants waits.
  virtual Result<void> send_backward(BackwardCall& call);
  /// The longest RPC message that send_backward() takes. Replies are limited by the client.
  virtual std::size_t max_backward_call() const { return 0; }
  /// 0: nothing may be remembered of it, since whoever calls by it is always somebody else (UDP).
  std::uint64_t id = 0;
  BufferShare buffer_share;  // those of its calls that wait for buffers()
  /// How long its calls took, from arrival to reply. The handler's.
  LatencyHistogram<std::uint32_t> latency;
  /// Null: nobody wants to know what crosses the connection. The handler's to set.
  std::unique_ptr<WireTap> tap;
};

inline Result<void> ServerConnection::send_backward(BackwardCall&) {
  return Error{Errc::kUnsupported, 0, "calls in the backward direction"};
}

class Call : public ListNode<Call> {
 public:
  virtual ~Call() = default;

  ServerConnection& connection() const { return *connection_; }
  std::uint32_t xid() const { return xid_; }
  /// The RPC message: xid first. Reduced items (data that came by Read chunk) are not in it.
  ByteSpan message() const { return message_; }
  /// The reduced items, ascending in xdr_position. A Decoder takes both.
  std::span<const xdr::ReducedItem> reduced() const { return reduced_; }
  xdr::Decoder decoder() const { return xdr::Decoder(message_, reduced_); }
  /// Bytes of the whole call on the wire, payload included.
  std::size_t request_bytes() const { return request_bytes_; }

  /// Room for at least `bytes` of reply without payload; false when no buffer is to be had now
  /// (wait with connection().buffers()). Always succeeds up to kInlineReply bytes.
  static constexpr std::size_t kInlineReply = 4096;
  virtual bool reserve_reply(std::size_t bytes) = 0;
  /// The room reserved (kInlineReply bytes at first). The encoded reply starts at its beginning.
  virtual MutableByteSpan reply_room() = 0;

  /// Sends the reply that `encoder` wrote into reply_room(). Its payload references must lie in
  /// memory that `payload` holds (empty when there is none); the call keeps it until sent.
  virtual void reply(const xdr::Encoder& encoder, Buffer payload) = 0;
  /// No answer at all (the client will resend, or must not learn anything).
  virtual void drop() = 0;

  /// For the handler: linked state while the call is being served. Set to null by the transport
  /// before on_call().
  void* handler_state = nullptr;
  std::chrono::steady_clock::time_point arrived{};

 protected:
  ServerConnection* connection_ = nullptr;
  std::uint32_t xid_ = 0;
  ByteSpan message_;
  std::span<const xdr::ReducedItem> reduced_;
  std::size_t request_bytes_ = 0;
};

/// The server layer. On the loop's thread.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void on_connection_opened(ServerConnection& connection) = 0;
  /// No more calls will come; calls still with the handler must still be answered or dropped, and
  /// `connection` stays valid until the last one was.
  virtual void on_connection_closed(ServerConnection& connection) = 0;
  virtual void on_call(Call& call) = 0;
};

}  // namespace nfsrdma
