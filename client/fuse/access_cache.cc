// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/access_cache.h"

#include <algorithm>

namespace nfsrdma {

std::optional<std::uint32_t> AccessCache::find(const CallerRef& caller, std::uint32_t asked,
                                               TimePoint now) const {
  for (const Row& row : rows_) {
    if (row.caller != caller || now >= row.until) continue;
    if ((row.asked & asked) == asked) return row.granted & asked;
  }
  return {};
}

void AccessCache::store(const CallerRef& caller, std::uint32_t asked, std::uint32_t granted,
                        TimePoint until) {
  auto same = [&caller](const Row& row) { return row.caller == caller; };
  if (auto it = std::find_if(rows_.begin(), rows_.end(), same); it != rows_.end()) {
    // Newer bits win; older ones about other rights keep their (earlier) end.
    it->granted = (it->granted & ~asked) | (granted & asked);
    if ((it->asked & ~asked) == 0) it->until = until;
    it->asked |= asked;
    return;
  }
  if (rows_.size() >= kMostCallers) rows_.erase(rows_.begin());
  rows_.push_back({caller, asked, granted & asked, until});
}

}  // namespace nfsrdma
