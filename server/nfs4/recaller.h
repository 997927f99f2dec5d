// SPDX-License-Identifier: Apache-2.0
// Recaller: brings CB_RECALL to clients (RFC 8881 20.2) over the back channels of their sessions,
// again and again until the client has understood, or there is nothing to be recalled any more.
// What a client does not give back in time is for others to revoke.
//
// Locking: everything with ServerState::mutex held, but what says otherwise.
// Lifetimes: a call under way belongs to its connection's loop until on_complete(). The Recaller
// outlives the loops of all connections that were bound.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "rpcrdma/call.h"
#include "server/nfs4/state/delegation_table.h"
#include "server/nfs4/state/session_table.h"

namespace nfsrdma::nfs4 {

class ServerState;

class Recaller {
 public:
  explicit Recaller(ServerState& state);
  ~Recaller();

  /// All connections, from their first moment to their last: a call may outlive its connection, and
  /// must not bind what is gone.
  void connection_opened(ServerConnection& connection);
  void connection_lost(ConnectionId connection) { connections_.erase(connection); }
  bool is_open(ConnectionId connection) const { return connections_.contains(connection); }

  /// The delegation was recalled.
  void begin(DelegationNumber number);
  /// Asks again where that is due. Once a second while there is anything to be recalled.
  void tick();
  bool idle() const { return recalls_.empty(); }

 private:
  class Sent;
  struct Recall {
    bool under_way = false;
    bool understood = false;
    TimePoint next{};
  };
  void send(DelegationNumber number, Recall& recall);
  void send_waiting(ClientId client);
  // Without the mutex, on the loop of the call's connection:
  void transmit(std::uint64_t key);
  void completed(Sent& sent);

  void judge(Sent& sent, Recall* recall, bool* again);

  ServerState& state_;
  std::map<ConnectionId, ServerConnection*> connections_;
  std::map<DelegationNumber, Recall> recalls_;
  /// Those that no slot was free for, by client.
  std::map<ClientId, std::deque<DelegationNumber>> waiting_;
  std::uint64_t last_key_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Sent>> sent_;
};

}  // namespace nfsrdma::nfs4
