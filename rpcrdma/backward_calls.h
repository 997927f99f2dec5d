// SPDX-License-Identifier: Apache-2.0
// BackwardCalls: the calls of one connection in the backward direction, the same over RDMA and TCP:
// xids, who waits, credits and deadlines. The connection below carries the bytes.
//
// Credits (RFC 8167): one until the first reply, then what the last reply granted, but no more
// than `most`. A call that was given up keeps its credit until its reply comes, since the client
// may still be busy with it; a client that never answers is not sent more than it granted.
#pragma once

#include <cstdint>
#include <vector>

#include "rpcrdma/backward_call.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

/// What carries the calls.
class BackwardLink {
 public:
  virtual ~BackwardLink() = default;
  /// Sends a copy of `message` under `xid`. False: not now (no buffer, no room); it is tried again
  /// at the next pump(), and soon. Completes nothing.
  virtual bool transmit(std::uint32_t xid, ByteSpan message) = 0;
  /// A call that was transmitted has been answered.
  virtual void on_answered() {}
};

class BackwardCalls {
 public:
  /// More than these waiting to be sent are refused.
  static constexpr std::size_t kMaxWaiting = 64;

  enum class Flow : std::uint8_t { kCredits, kFree };
  /// `most`: outstanding at any time.
  BackwardCalls(EventLoop& loop, BackwardLink& link, std::uint32_t first_xid, Flow flow,
                std::uint32_t most);

  Result<void> submit(BackwardCall& call);
  /// There may be room again.
  void pump();
  /// The client's grant, from the header of a reply.
  void on_grant(std::uint32_t credits);
  /// An RPC message that is no call. False: no reply to a call of ours.
  bool on_reply(ByteSpan rpc);
  /// The client could not take the call. False: none of ours.
  bool on_refused(std::uint32_t xid);
  /// The connection is over: so are all calls.
  void close();

 private:
  std::size_t outstanding();
  /// Takes the call with `xid` off the books; *call is null when it was given up.
  bool answered(std::uint32_t xid, BackwardCall** call);
  void complete(BackwardCall& call, const Error& error);
  void expire();
  void arm();

  EventLoop& loop_;
  BackwardLink& link_;
  const Flow flow_;
  const std::uint32_t most_;
  std::uint32_t next_xid_;
  std::uint32_t limit_;
  IntrusiveList<BackwardCall> waiting_;
  IntrusiveList<BackwardCall> sent_;
  std::vector<std::uint32_t> owed_;  // kCredits: xids that the client owes a reply to
  bool retry_ = false;               // what waits lacked more than a credit
  bool pumping_ = false;
  bool closed_ = false;
  Timer timer_;
};

}  // namespace nfsrdma
