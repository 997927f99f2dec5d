// SPDX-License-Identifier: Apache-2.0
// Recaller: asks clients for their delegations (CB_RECALL, RFC 7530 16.2.2, RFC 8881 20.2), again
// and again until the client has understood, or there is nothing to be recalled any more. What a
// client does not give back in time is for others to revoke.
//
// Locking: everything with ServerState::mutex held.
#pragma once

#include <map>

#include "server/nfs4/caller.h"
#include "server/nfs4/state/delegation_table.h"

namespace nfsrdma::nfs4 {

class Recaller {
 public:
  explicit Recaller(ServerState& state) : state_(state) {}

  /// The delegation was recalled.
  void begin(DelegationNumber number) { send(number, recalls_[number]); }
  /// Asks again where that is due. Once a second while there is anything to be recalled.
  void tick();
  bool idle() const { return recalls_.empty(); }

 private:
  class Recall;
  struct Progress {
    bool under_way = false;
    bool understood = false;
    TimePoint next{};
  };
  void send(DelegationNumber number, Progress& progress);

  ServerState& state_;
  std::map<DelegationNumber, Progress> recalls_;
};

}  // namespace nfsrdma::nfs4
