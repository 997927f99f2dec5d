// SPDX-License-Identifier: Apache-2.0
// OffloadCallbacks: tells clients how their copies ended (CB_OFFLOAD, RFC 7862 16.1), again and
// again until they have answered. An error is not taken for an answer at once, since the reply with
// the stateid may still be under way.
//
// Locking: everything with ServerState::mutex held.
#pragma once

#include <map>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/state/offload_table.h"

namespace nfsrdma::nfs4 {

class ServerState;

class OffloadCallbacks {
 public:
  OffloadCallbacks(ServerState& state, OffloadTable& table) : state_(state), table_(table) {}

  /// Tells what is due. Once a second while there is anything to be told.
  void tick();
  bool idle() const { return table_.ended().empty(); }

 private:
  class Report;
  struct Progress {
    bool under_way = false;
    int refusals = 0;
    TimePoint next{};
  };

  ServerState& state_;
  OffloadTable& table_;
  std::map<OffloadNumber, Progress> reports_;
};

}  // namespace nfsrdma::nfs4
