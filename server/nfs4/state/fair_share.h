// SPDX-License-Identifier: Apache-2.0
// FairShare: how much of something that all clients share one of them may have.
//
// The bound of a client is per client; the share is per host, since a host can call itself as many
// clients as it likes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace nfsrdma::nfs4 {

/// Why a client asks for more.
enum class Claim : std::uint8_t {
  kNew,
  /// The client holds it already, in another form: from before a restart, by a delegation, as part
  /// of a lock that is cut in two. A refusal would take from it what it was promised. Or a file was
  /// made for the open that is asked for.
  kHeld,
};

struct FairShare {
  std::size_t per_client = SIZE_MAX;
  std::size_t all = SIZE_MAX;

  /// How many more a client may have that has `own`, its host `of_host` of the `everybody` that
  /// there are. A host never gets more than three times what it leaves to others: alone it may have
  /// three quarters, and whoever takes without end leaves a quarter to all who take less.
  ///
  /// A claim of what is held already has no share, only bounds, which are a quarter higher: its
  /// host got no more than three quarters before, and so has no more to claim, but for the OPENs
  /// that made their files at the same time. That quarter is a reserve for such claims.
  constexpr std::size_t room(std::size_t own, std::size_t of_host, std::size_t everybody,
                             Claim claim = Claim::kNew) const {
    if (claim == Claim::kHeld) {
      return std::min({left(with_reserve(per_client), own),
                       left(with_reserve(three_quarters(all)), of_host),
                       left(with_reserve(all), everybody)});
    }
    const std::size_t left_to_all = left(all, everybody);
    const std::size_t more = std::min(left(per_client, own), left_to_all);
    if (left_to_all > SIZE_MAX / 8) return more;  // as good as no bound
    const std::size_t share = 3 * left_to_all;
    return share <= of_host ? 0 : std::min(more, (share - of_host + 3) / 4);
  }

  /// `bound`, and a quarter of it.
  static constexpr std::size_t with_reserve(std::size_t bound) {
    return bound > SIZE_MAX / 2 ? bound : bound + (bound + 3) / 4;
  }

 private:
  static constexpr std::size_t left(std::size_t bound, std::size_t held) {
    return held >= bound ? 0 : bound - held;
  }
  static constexpr std::size_t three_quarters(std::size_t bound) {
    return bound > SIZE_MAX / 8 ? bound : (3 * bound + 3) / 4;
  }
};

}  // namespace nfsrdma::nfs4
