// SPDX-License-Identifier: Apache-2.0
// The groups of a uid from this host's user database (manage-gids): the way around AUTH_SYS's limit
// of 16 groups. Answers are kept for some minutes, and those that the database has no user for
// some seconds. Where it cannot be asked the last answer counts, and is tried again as soon.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/credentials.h"

namespace nfsrdma {

class GroupSource {
 public:
  virtual ~GroupSource() = default;
  /// Which answer groups() would give without asking the name service: another number, another
  /// answer. 0: none.
  virtual std::uint64_t answer_at_hand(std::uint32_t uid) = 0;
  /// Fills the groups of *identity (not its gid, as knfsd does): none for a uid that is not known
  /// on this host, as rpc.mountd has it; what a call says of itself never counts. May block.
  virtual void groups(std::uint32_t uid, CallerIdentity* identity) = 0;
};

/// `now` may be called by any thread.
std::unique_ptr<GroupSource> make_system_group_source(
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now);

}  // namespace nfsrdma
