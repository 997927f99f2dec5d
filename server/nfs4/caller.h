// SPDX-License-Identifier: Apache-2.0
// Caller: brings callbacks to clients: over the back channels of their sessions (RFC 8881 2.10.3.1,
// 20), or over a connection to the address that a client of minor version 0 names. One attempt
// each: who asks for a callback is told how it ended, and decides whether and when it is made
// again.
//
// Locking: everything with ServerState::mutex held, but what says otherwise.
// Lifetimes: a call under way belongs to its connection's loop until on_complete(). The Caller
// outlives the loops of all connections that were bound.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "rpcrdma/call.h"
#include "server/nfs4/callback.h"
#include "server/nfs4/callback_lines.h"
#include "server/nfs4/state/session_table.h"

namespace nfsrdma::nfs4 {

class ServerState;

/// One operation for a client. Owned by the Caller while it is under way.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual xdr::nfs_cb_opnum4 operation() const = 0;
  /// The message at the beginning of `room` (callback.h), empty when it does not fit. Maybe more
  /// than once.
  virtual ByteSpan encode(MutableByteSpan room, const CallbackTarget& target,
                          const xdr::CB_SEQUENCE4args* sequence) const = 0;
  /// The request that gave the client what this is about. Null: none, or long ago.
  virtual const ReferringCall* about() const { return nullptr; }
  /// Once. `reply`: what the client said to the operation itself; null when it was not reached, or
  /// the operation did not run. Its bytes end with this call. May call() others.
  virtual void finished(const CallbackReply* reply) = 0;
};

class Caller {
 public:
  explicit Caller(ServerState& state);
  ~Caller();

  /// All connections, from their first moment to their last: a call may outlive its connection, and
  /// must not bind what is gone.
  void connection_opened(ServerConnection& connection);
  void connection_lost(ConnectionId connection) { connections_.erase(connection); }
  bool is_open(ConnectionId connection) const { return connections_.contains(connection); }

  CallbackLines& lines() { return lines_; }
  const CallbackLines& lines() const { return lines_; }
  /// Worked the client's callbacks so far?
  bool reaches(ClientId client) const;
  /// False: there is no way to that client now, or too much is waiting for one; finished() is not
  /// called. Else finished() comes later, never from within.
  bool call(ClientId client, std::unique_ptr<Callback> callback);

 private:
  class Sent;
  using Waiting = std::deque<std::unique_ptr<Callback>>;
  const ReferringCall* about(const Callback& callback) const;
  enum class Start : std::uint8_t { kSent, kNoSlot, kNoWay };
  Start start(ClientId client, std::unique_ptr<Callback>& callback);
  void start_waiting(ClientId client);
  // Without the mutex, on the loop of the call's connection:
  void transmit(std::uint64_t key);
  void completed(Sent& sent);

  /// What came back: how the slot stands, whether the channel works.
  const CallbackReply* judge(Sent& sent, CallbackReply* reply, bool* again);

  ServerState& state_;
  CallbackLines lines_;  // of minor version 0
  std::map<ConnectionId, ServerConnection*> connections_;
  /// Those that no slot was free for: another call to the client is under way, and starts them.
  std::map<ClientId, Waiting> waiting_;
  std::uint64_t last_key_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Sent>> sent_;
};

}  // namespace nfsrdma::nfs4
