// SPDX-License-Identifier: Apache-2.0
// What all locks of a file together keep others from, byte by byte: a lock for writing wins over
// locks for reading. For whoever shows NFSv4's locks to those who know one owner alone
// (lock_mirror.h).
//
// Pure: no I/O, no clock.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rpcrdma/base/byte_range_locks.h"

namespace nfsrdma::nfs4 {

struct CoverPiece {
  ByteRange range;
  std::optional<LockKind> kind;  // empty: nobody holds these bytes

  bool operator==(const CoverPiece&) const = default;
};

/// The pieces of `range`, in order and without gaps; no two neighbours are of one kind. What `held`
/// has outside the range counts for nothing; its order does not matter.
std::vector<CoverPiece> cover(std::span<const ByteRangeLocks::Held> held, const ByteRange& range);

/// Of two covers of one range, the pieces of `to` in which it is stronger than `from`.
std::vector<CoverPiece> raised(std::span<const CoverPiece> from, std::span<const CoverPiece> to);
/// Those in which it is weaker.
std::vector<CoverPiece> lowered(std::span<const CoverPiece> from, std::span<const CoverPiece> to);

}  // namespace nfsrdma::nfs4
