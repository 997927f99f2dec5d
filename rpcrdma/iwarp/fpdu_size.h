// SPDX-License-Identifier: Apache-2.0
// How much payload an FPDU may carry to a peer of each kind (the reasons are in README.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "rpcrdma/iwarp/ddp_wire.h"
#include "rpcrdma/iwarp/iwarp_fabric.h"

namespace nfsrdma::iwarp {

struct FpduSizes {
  std::uint32_t tagged_payload = 0;
  std::uint32_t untagged_payload = 0;
};

/// `segment` is what one TCP segment carries.
inline FpduSizes fpdu_sizes(std::uint32_t segment, bool own_peer, bool crc,
                            std::uint32_t max_fpdu) {
  constexpr std::uint32_t kTaggedExtra = kTaggedHeader + kMpaCrcSize;
  constexpr std::uint32_t kUntaggedExtra = kUntaggedHeader + kMpaCrcSize;
  constexpr std::uint32_t kSmallest = 64;
  const std::uint32_t one_segment = segment & ~7u;
  std::uint32_t tagged = one_segment;
  std::uint32_t untagged = one_segment;
  if (max_fpdu != IwarpOptions::kMss) {
    if (own_peer) {
      tagged = kMaxTaggedPayload + kTaggedExtra;
      untagged = kMaxUntaggedPayload + kUntaggedExtra;
    } else if (!crc) {
      // Whole segments: a header then never begins inside one.
      tagged = 65535 / segment * segment & ~7u;
    }
    if (max_fpdu > IwarpOptions::kMss) {
      tagged = std::min(tagged, max_fpdu & ~7u);
      untagged = std::min(untagged, max_fpdu & ~7u);
    }
  }
  tagged = std::max(tagged, kSmallest);
  untagged = std::max(untagged, kSmallest);
  return {tagged - kTaggedExtra, untagged - kUntaggedExtra};
}

}  // namespace nfsrdma::iwarp
