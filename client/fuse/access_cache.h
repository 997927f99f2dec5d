// SPDX-License-Identifier: Apache-2.0
// What the server said about the rights of callers on one object (ACCESS, RFC 1813 3.3.4). Mode
// bits are never consulted: squashing, ACLs and group lists are the server's business. Bounded:
// the oldest answer gives way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/fuse/caller.h"
#include "rpcrdma/base/clock.h"

namespace nfsrdma {

class AccessCache {
 public:
  static constexpr std::size_t kMostCallers = 16;

  /// The rights of `caller` among `asked`, when the answer is known for all of them.
  std::optional<std::uint32_t> find(const CallerRef& caller, std::uint32_t asked,
                                    TimePoint now) const;
  /// The same, however long ago it was answered.
  std::optional<std::uint32_t> find_last(const CallerRef& caller, std::uint32_t asked) const {
    return find(caller, asked, TimePoint::min());
  }
  void store(const CallerRef& caller, std::uint32_t asked, std::uint32_t granted, TimePoint until);
  void clear() { rows_.clear(); }

 private:
  struct Row {
    CallerRef caller;
    std::uint32_t asked = 0;
    std::uint32_t granted = 0;
    TimePoint until;
  };
  std::vector<Row> rows_;  // oldest first
};

}  // namespace nfsrdma
