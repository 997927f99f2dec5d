// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/lock_cover.h"

#include <algorithm>

namespace nfsrdma::nfs4 {

namespace {

int strength(const std::optional<LockKind>& kind) {
  if (!kind) return 0;
  return *kind == LockKind::kRead ? 1 : 2;
}

/// At a byte, so many locks of a kind begin (or, below 0, have ended with the byte before).
struct Edge {
  std::uint64_t at = 0;
  LockKind kind{};
  int change = 0;
};

std::optional<LockKind> stronger(int reading, int writing) {
  if (writing > 0) return LockKind::kWrite;
  if (reading > 0) return LockKind::kRead;
  return std::nullopt;
}

/// The pieces of `to` whose strength, less that of `from`, has the sign of `sign`.
std::vector<CoverPiece> differing(std::span<const CoverPiece> from, std::span<const CoverPiece> to,
                                  int sign) {
  std::vector<CoverPiece> out;
  auto old = from.begin();
  for (const CoverPiece& piece : to) {
    while (old != from.end() && old->range.last < piece.range.first)
      ++old;
    for (auto at = old; at != from.end() && at->range.first <= piece.range.last; ++at) {
      if ((strength(piece.kind) - strength(at->kind)) * sign <= 0) continue;
      const ByteRange part{std::max(piece.range.first, at->range.first),
                           std::min(piece.range.last, at->range.last)};
      const bool goes_on = !out.empty() && out.back().kind == piece.kind &&
                           out.back().range.last == part.first - 1 && part.first != 0;
      if (goes_on) {
        out.back().range.last = part.last;
      } else {
        out.push_back({part, piece.kind});
      }
    }
  }
  return out;
}

}  // namespace

std::vector<CoverPiece> cover(std::span<const ByteRangeLocks::Held> held, const ByteRange& range) {
  std::vector<Edge> edges;
  for (const ByteRangeLocks::Held& one : held) {
    if (!one.range.overlaps(range)) continue;
    edges.push_back({std::max(one.range.first, range.first), one.kind, 1});
    if (one.range.last < range.last) edges.push_back({one.range.last + 1, one.kind, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });

  std::vector<CoverPiece> out{{range, std::nullopt}};
  int reading = 0, writing = 0;
  for (auto edge = edges.begin(); edge != edges.end();) {
    const std::uint64_t at = edge->at;
    for (; edge != edges.end() && edge->at == at; ++edge)
      (edge->kind == LockKind::kWrite ? writing : reading) += edge->change;
    const std::optional<LockKind> kind = stronger(reading, writing);
    if (kind == out.back().kind) continue;
    if (at == range.first) {
      out.back().kind = kind;
    } else {
      out.back().range.last = at - 1;
      out.push_back({{at, range.last}, kind});
    }
  }
  return out;
}

std::vector<CoverPiece> raised(std::span<const CoverPiece> from, std::span<const CoverPiece> to) {
  return differing(from, to, 1);
}

std::vector<CoverPiece> lowered(std::span<const CoverPiece> from, std::span<const CoverPiece> to) {
  return differing(from, to, -1);
}

}  // namespace nfsrdma::nfs4
