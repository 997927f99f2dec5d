// SPDX-License-Identifier: Apache-2.0
// BackwardCall: one RPC call in the backward direction (RFC 8167), made by the server over a
// connection that its client opened. The client answers it there. Calls of both directions share
// nothing but the connection: each has xids and credits of its own.
//
// Nothing here knows what is called. Whether the client serves calls on this connection at all is
// for the caller to know: Linux has receives for them over RDMA only once it asked for a
// backchannel (CREATE_SESSION), so nothing may be sent before the reply to that was given to
// Call::reply(); from there on order is kept.
//
// Everything on the thread of the connection's loop.
#pragma once

#include <cstdint>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/error.h"
#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

class BackwardCall : public ListNode<BackwardCall> {
 public:
  BackwardCall() = default;
  /// While it is under way: as cancel().
  virtual ~BackwardCall() = default;

  // --- filled in by the caller; the bytes stay as they are until the end of the call ---
  /// The RPC message. Its first word is for the xid, which the connection chooses.
  ByteSpan message;
  /// From send_backward() to the last moment at which a reply is taken.
  Duration timeout = std::chrono::seconds(10);

  // --- valid in on_complete() ---
  bool ok = false;
  /// When !ok: kClosed (the connection ended; the client may or may not have seen the call),
  /// kTimedOut (sent, no reply), kExhausted (not sent in time: the client grants no more calls, or
  /// there are no buffers), kRefused (answered by RDMA_ERROR).
  Error error{};
  /// The RPC reply, xid first. Gone after on_complete().
  ByteSpan reply;

  /// Once, from the loop, never from within send_backward(). May destroy the call and make others.
  virtual void on_complete() = 0;

  /// No on_complete() any more. The client may have seen the call, or may still see it when it was
  /// sent.
  void cancel() { unlink(); }

 private:
  friend class BackwardCalls;
  std::uint32_t xid_ = 0;
  TimePoint deadline_{};
};

}  // namespace nfsrdma
