// SPDX-License-Identifier: Apache-2.0
// Limit: which bound it was that a request met. What each is, and its option, are in
// server/nfs4/refusals.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nfsrdma::nfs4 {

enum class Limit : std::uint8_t {
  kNone,
  kClients,
  kSessionsOfClient,
  kSlots,  // of all sessions
  kOpensOfClient,
  kOpens,
  kFiles,
  kLocksOfClient,
  kLocks,
  kLocksOfFile,
  kDelegationsOfClient,
  kDelegations,
  kOwnersOfClient,
  kOwners,
};
inline constexpr std::size_t kLimits = 14;

}  // namespace nfsrdma::nfs4
