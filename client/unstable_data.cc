// SPDX-License-Identifier: Apache-2.0
#include "client/unstable_data.h"

#include <algorithm>

namespace nfsrdma {

namespace {

using Piece = UnstableData::Piece;

std::size_t memory_of(const Piece& piece) {
  return piece.memory->size() + UnstableData::kPieceMemory;
}

/// What is left of a cut piece holds on to the memory of all of it only where that is less than
/// twice as much. So at most one of two parts does.
Piece part_of(const Piece& piece, std::uint64_t begin, std::uint64_t end) {
  const ByteSpan bytes = piece.bytes.subspan(begin - piece.offset, end - begin);
  if (bytes.size() > piece.memory->size() / 2) return {begin, bytes, piece.memory};
  auto memory = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return {begin, ByteSpan(*memory), memory};
}

}  // namespace

void UnstableData::add(Map& map, Kept kept) {
  memory_ += memory_of(kept.piece);
  const std::uint64_t offset = kept.piece.offset;
  map.emplace(offset, std::move(kept));
}

UnstableData::Map::iterator UnstableData::remove(Map& map, Map::iterator it) {
  memory_ -= memory_of(it->second.piece);
  return map.erase(it);
}

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
    it = remove(map, it);
    auto keep = [&](std::uint64_t a, std::uint64_t b) {
      add(map, {part_of(kept.piece, a, b), kept.verifier, kept.serial});
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
  add(kept_, {std::move(piece), verifier, ++serial_});
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
    if (it->second.verifier != verifier) add(lost_, it->second);
    it = remove(kept_, it);
  }
}

std::optional<UnstableData::Piece> UnstableData::take_lost() {
  if (lost_.empty()) return std::nullopt;
  Piece piece = lost_.begin()->second.piece;
  remove(lost_, lost_.begin());
  return piece;
}

}  // namespace nfsrdma
