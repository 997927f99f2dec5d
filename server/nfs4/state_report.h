// SPDX-License-Identifier: Apache-2.0
// StateReport: what clients of NFSv4 hold, for `nfs-rdma status`.
#pragma once

#include <string>
#include <vector>

#include "rpcrdma/base/json_writer.h"
#include "server/nfs4/limits.h"

namespace nfsrdma::nfs4 {

class ServerState;

struct StateReport {
  /// Of what a client has in sessions.
  struct Sessions {
    std::size_t count = 0;
    std::size_t slots = 0;
    std::size_t slots_in_use = 0;
    std::size_t reply_bytes = 0;  // kept for clients that ask again
    std::size_t called_back = 0;  // those by which it can be called back now
    std::size_t connections = 0;  // bound to them, each once for a client

    Sessions& operator+=(const Sessions& more);
  };
  struct OneClient {
    ClientId id = 0;
    std::string name;  // its owner string; printable, cut
    std::string address;
    std::uint32_t minor_version = 0;
    bool locks_by_nlm = false;  // a host of NFSv3, in no minor version
    /// Courteous: its lease is over, and what it holds is kept until somebody wants it. Expired:
    /// it holds nothing, and is about to be forgotten.
    enum class Phase : std::uint8_t { kActive, kCourteous, kExpired };
    Phase phase = Phase::kActive;
    std::int64_t seconds_since_renewal = 0;
    Sessions sessions;
    OpenStates::Held opens;
    DelegationTable::Held delegations;
  };
  /// Those who hold most, in this order; not all where there are more than were asked for.
  std::vector<OneClient> clients;
  std::size_t confirmed = 0, unconfirmed = 0;
  std::size_t active = 0, courteous = 0, expired = 0;  // of those that are confirmed
  Sessions sessions;
  OpenStates::Held opens;
  /// How often each limit was met, be it of a client or of all.
  struct Refused {
    std::uint64_t clients = 0;
    std::uint64_t sessions = 0;  // too many, or for want of slots
    std::uint64_t opens = 0;
    std::uint64_t files = 0;
    std::uint64_t locks = 0;
    std::uint64_t locks_per_file = 0;
    std::uint64_t delegations = 0;
    std::uint64_t owners = 0;
    /// Clients that were gone, and ended for others.
    std::uint64_t gave_way = 0;
  };
  Refused refused;
  std::size_t delegations = 0, delegations_recalled = 0;
  bool in_grace = false;
  std::int64_t lease_seconds = 0;
  Limits limits;
};

/// With up to `most` clients one by one. Takes the state's mutex for a few clients at a time, so
/// that nobody waits for longer than that; what changes in between is seen before or after. Any
/// thread that may wait for the mutex.
StateReport report_state(ServerState& state, std::size_t most);

/// The member "nfs4" of the status document.
void write_state(JsonWriter& json, const StateReport& report);

}  // namespace nfsrdma::nfs4
