// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace nfsrdma::nfs4 {

namespace {

// Of all descriptors. The descriptor cache takes up to three eighths; connections get the rest:
// when every file is open for reading and writing, and the reserve of FairShare used up, a tenth.
constexpr std::size_t kPerOpenFile = 8;
constexpr std::size_t kPerDelegation = 16;
constexpr std::size_t kFewestFiles = 16;

}  // namespace

std::size_t descriptor_limit() {
  constexpr std::size_t kMost = 1u << 20;  // as much as the kernel gives by default
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
  return limit.rlim_cur;
}

Limits Limits::of(const Config& config, std::size_t descriptors) {
  Limits out;
  out.clients = config.nfs4_clients;
  out.sessions.sessions_per_client = config.nfs4_sessions;
  out.sessions.slots = config.nfs4_all_slots;
  out.sessions.sessions = std::min<std::size_t>(config.nfs4_clients, config.nfs4_all_slots);
  out.slots = static_cast<std::uint32_t>(config.nfs4_slots);
  out.reply_bytes = static_cast<std::uint32_t>(config.nfs4_kept_reply);
  out.opens.opens = {config.nfs4_opens, config.nfs4_all_opens};
  out.opens.locks = {config.nfs4_locks, config.nfs4_all_locks};
  out.opens.locks_per_file = config.nfs4_file_locks;
  const std::size_t fit = std::max(descriptors / kPerOpenFile, kFewestFiles);
  out.opens.files.all = config.nfs4_files == 0 ? fit : config.nfs4_files;
  if (config.nfs4_delegations > 0) {
    out.delegations.all =
        std::min<std::size_t>(config.nfs4_all_delegations, descriptors / kPerDelegation);
  } else {
    out.delegations.all = 0;
  }
  // Not all of them to one client.
  out.delegations.per_client =
      std::min<std::size_t>(config.nfs4_delegations, (out.delegations.all + 1) / 2);
  out.owners = config.nfs4_owners;
  out.all_owners = config.nfs4_all_opens;
  return out;
}

}  // namespace nfsrdma::nfs4
