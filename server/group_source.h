// SPDX-License-Identifier: Apache-2.0
// The groups of a uid from this host's user database (manage-gids): the way around AUTH_SYS's limit
// of 16 groups. Answers are kept for some minutes.
#pragma once

#include <cstdint>
#include <memory>

#include "server/credentials.h"

namespace nfsrdma {

class GroupSource {
 public:
  virtual ~GroupSource() = default;
  /// Which answer groups() would give without asking the name service: another number, another
  /// answer. 0: none.
  virtual std::uint64_t answer_at_hand(std::uint32_t uid) = 0;
  /// Fills the groups of *identity (not its gid, as knfsd does); false when the uid is not known on
  /// this host, and then the call's groups count. May block.
  virtual bool groups(std::uint32_t uid, CallerIdentity* identity) = 0;
};

std::unique_ptr<GroupSource> make_system_group_source();

}  // namespace nfsrdma
