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

  /// The client of `connection` may be called back there.
  void connection_bound(ServerConnection& connection);
  void connection_lost(ConnectionId connection) { connections_.erase(connection); }

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
  // Without the mutex, on the loop of the call's connection:
  void transmit(std::uint64_t key);
  void completed(Sent& sent);

  void judge(Sent& sent, Recall* recall, bool* again);

  ServerState& state_;
  std::map<ConnectionId, ServerConnection*> connections_;
  std::map<DelegationNumber, Recall> recalls_;
  std::uint64_t last_key_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Sent>> sent_;
};

}  // namespace nfsrdma::nfs4
