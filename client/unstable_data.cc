// SPDX-License-Identifier: Apache-2.0
#include "client/unstable_data.h"

#include <algorithm>

namespace nfsrdma {

void UnstableData::cut(Map& map, std::uint64_t begin, std::uint64_t end) {
  auto it = map.upper_bound(begin);
  if (it != map.begin()) --it;
  while (it != map.end() && it->first < end) {
    const Kept kept = it->second;
    const std::uint64_t from = it->first;
    const std::uint64_t to = from + kept.piece.bytes.size();
    if (to <= begin) {
      ++it;
      continue;
    }
    it = map.erase(it);
    bytes_ -= kept.piece.bytes.size();
    auto keep = [&](std::uint64_t a, std::uint64_t b) {
      Kept part = kept;
      part.piece.offset = a;
      part.piece.bytes = kept.piece.bytes.subspan(a - from, b - a);
      bytes_ += part.piece.bytes.size();
      map.emplace(a, std::move(part));
    };
    if (from < begin) keep(from, begin);
    if (to > end) {
      keep(end, to);
      return;
    }
  }
}

void UnstableData::wrote(std::uint64_t offset, ByteSpan data, std::uint64_t verifier) {
  auto memory = std::make_shared<const std::vector<std::byte>>(data.begin(), data.end());
  Piece piece{offset, ByteSpan(*memory), memory};
  wrote(std::move(piece), verifier);
}

void UnstableData::wrote(Piece piece, std::uint64_t verifier) {
  if (piece.bytes.empty()) return;
  forget(piece.offset, piece.bytes.size());
  bytes_ += piece.bytes.size();
  const std::uint64_t offset = piece.offset;
  kept_.emplace(offset, Kept{std::move(piece), verifier, ++serial_});
}

void UnstableData::forget(std::uint64_t offset, std::uint64_t length) {
  std::uint64_t end = 0;
  if (!checked_add(offset, length, &end)) end = UINT64_MAX;
  cut(kept_, offset, end);
  cut(lost_, offset, end);
}

void UnstableData::truncated(std::uint64_t size) {
  cut(kept_, size, UINT64_MAX);
  cut(lost_, size, UINT64_MAX);
}

void UnstableData::committed(std::uint64_t mark, std::uint64_t verifier) {
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (it->second.serial > mark) {
      ++it;
      continue;
    }
    if (it->second.verifier == verifier) {
      bytes_ -= it->second.piece.bytes.size();
    } else {
      lost_.emplace(it->first, it->second);
    }
    it = kept_.erase(it);
  }
}

std::optional<UnstableData::Piece> UnstableData::take_lost() {
  if (lost_.empty()) return std::nullopt;
  Piece piece = std::move(lost_.begin()->second.piece);
  lost_.erase(lost_.begin());
  bytes_ -= piece.bytes.size();
  return piece;
}

}  // namespace nfsrdma
