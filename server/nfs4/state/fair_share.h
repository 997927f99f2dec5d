// SPDX-License-Identifier: Apache-2.0
// FairShare: how much of something that all clients share one of them may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace nfsrdma::nfs4 {

struct FairShare {
  std::size_t per_client = SIZE_MAX;
  std::size_t all = SIZE_MAX;

  /// How many more a client may have that has `own` of the `everybody` that there are. It never
  /// gets more than three times what it leaves to others: alone it may have three quarters, and
  /// whoever takes without end leaves a quarter to all who take less.
  constexpr std::size_t room(std::size_t own, std::size_t everybody) const {
    if (own >= per_client || everybody >= all) return 0;
    const std::size_t left = all - everybody;
    std::size_t more = std::min(per_client - own, left);
    if (left > SIZE_MAX / 8) return more;  // as good as no bound
    more = 3 * left <= own ? 0 : std::min(more, (3 * left - own + 3) / 4);
    return more;
  }
};

}  // namespace nfsrdma::nfs4
