// SPDX-License-Identifier: Apache-2.0
// Where one batch of FPDUs is laid out for sendmsg: headers and trailers in an arena, payload by
// reference. One per loop; its contents are used up before the next connection fills it.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>

#include "rpcrdma/iwarp/ddp_wire.h"
#include "rpcrdma/iwarp/rdmap_wire.h"

namespace nfsrdma::iwarp {

struct TransmitScratch {
  static constexpr std::size_t kMaxFpdus = 64;
  static constexpr std::size_t kMaxIov = 768;
  static constexpr std::size_t kPerFpdu = kMaxFpduHeader + kReadRequestBody + kMaxTrailer;

  /// iovecs of each FPDU: [first_iov[i], first_iov[i + 1]). When coalescing, a header may be part
  /// of the iovec of the trailer before it, so only the whole range means something.
  std::array<iovec, kMaxIov> iov;
  std::array<std::uint16_t, kMaxFpdus + 1> first_iov;
  std::array<std::byte, kMaxFpdus * kPerFpdu> arena;
  std::size_t iov_count = 0;
  std::size_t fpdu_count = 0;
  std::size_t arena_used = 0;
  std::size_t bytes = 0;
};

}  // namespace nfsrdma::iwarp
