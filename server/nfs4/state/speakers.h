// SPDX-License-Identifier: Apache-2.0
// Speakers: which client of minor version 0 speaks over which connection. Most of its operations do
// not say whose they are; a client has connections of its own, and names itself on each of them
// sooner or later: by its ID, or by a stateid. Used where it matters whether an object's delegation
// is the caller's own, for operations that name nobody. Somebody else must never be taken for the
// holder, so nothing is concluded from addresses; a holder that is taken for somebody else is asked
// for once too often what it knows, or for the delegation.
//
// Without a lock of its own; ServerState::mutex.
#pragma once

#include <cstdint>
#include <map>

#include "server/nfs4/state/client_table.h"
#include "server/nfs4/state/session_table.h"

namespace nfsrdma::nfs4 {

class Speakers {
 public:
  void connection_opened(ConnectionId connection) { clients_.emplace(connection, kNobody); }
  void connection_lost(ConnectionId connection) { clients_.erase(connection); }

  /// An operation over `connection` named `client`. What of() says from now on; nothing is noted
  /// where the connection is not open (any more).
  ClientId note(ConnectionId connection, ClientId client, ClientTable& clients) {
    const auto found = clients_.find(connection);
    if (found == clients_.end()) return kNobody;
    ClientId& whose = found->second;
    if (whose == client) return client;
    const bool free = whose == kNobody || (whose != kSeveral && clients.find(whose) == nullptr);
    whose = free ? client : kSeveral;
    return free ? client : kNobody;
  }
  /// 0: nobody has named itself there, or several have.
  ClientId of(ConnectionId connection) const {
    const auto found = clients_.find(connection);
    return found == clients_.end() || found->second == kSeveral ? kNobody : found->second;
  }

 private:
  static constexpr ClientId kNobody = 0;
  static constexpr ClientId kSeveral = UINT64_MAX;  // for as long as the connection lasts
  std::map<ConnectionId, ClientId> clients_;
};

}  // namespace nfsrdma::nfs4
