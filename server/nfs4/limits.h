// SPDX-License-Identifier: Apache-2.0
// Limits: how much clients of NFSv4 may hold. The defaults and what each is about stand in
// config/options.def (NFSoRDMA_NFS4_*); this is where the tables of the state get theirs from.
#pragma once

#include <cstdint>

#include "config/config.h"
#include "server/nfs4/state/delegation_table.h"
#include "server/nfs4/state/open_states.h"
#include "server/nfs4/state/session_table.h"

namespace nfsrdma::nfs4 {

struct Limits {
  std::size_t clients = 0;
  SessionTable::Limits sessions;
  std::uint32_t slots = 0;        // of one session
  std::uint32_t reply_bytes = 0;  // that a slot keeps
  OpenStates::Limits opens;
  DelegationTable::Limits delegations;
  std::size_t owners = 0;      // of a client of minor version 0
  std::size_t all_owners = 0;  // of all of them: one for each open that there may be

  /// As configured, and within what `descriptors`, the process' limit of them, lets be: an open
  /// file costs up to three, its locks one more, and so does a delegation.
  static Limits of(const Config& config, std::size_t descriptors);
};

/// RLIMIT_NOFILE of this process.
std::size_t descriptor_limit();

}  // namespace nfsrdma::nfs4
