// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/byte_range_locks.h"

#include <algorithm>

namespace nfsrdma {
namespace {

struct ByOwner {
  bool operator()(const ByteRangeLocks::Held& held, LockOwnerId id) const {
    return held.owner < id;
  }
  bool operator()(LockOwnerId id, const ByteRangeLocks::Held& held) const {
    return id < held.owner;
  }
};

}  // namespace

std::optional<ByteRange> byte_range(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return std::nullopt;
  if (length == UINT64_MAX) return ByteRange{offset, UINT64_MAX};
  if (length > UINT64_MAX - offset) return std::nullopt;
  return ByteRange{offset, offset + length - 1};
}

std::uint64_t length_of(const ByteRange& range) {
  return range.last == UINT64_MAX ? UINT64_MAX : range.last - range.first + 1;
}

const ByteRangeLocks::Held* ByteRangeLocks::conflict(LockOwnerId owner, LockKind kind,
                                                     const ByteRange& range) const {
  for (const Held& held : held_) {
    const bool excludes = kind == LockKind::kWrite || held.kind == LockKind::kWrite;
    if (excludes && held.owner != owner && held.range.overlaps(range)) return &held;
  }
  return nullptr;
}

ByteRangeLocks::Outcome ByteRangeLocks::lock(LockOwnerId owner, LockKind kind,
                                             const ByteRange& range, std::size_t room) {
  if (conflict(owner, kind, range) != nullptr) return Outcome::kConflict;
  return replace(owner, range, kind, room);
}

ByteRangeLocks::Outcome ByteRangeLocks::unlock(LockOwnerId owner, const ByteRange& range,
                                               std::size_t room) {
  return replace(owner, range, std::nullopt, room);
}

/// What `owner` holds in `range` becomes `kind`, or nothing.
ByteRangeLocks::Outcome ByteRangeLocks::replace(LockOwnerId owner, const ByteRange& range,
                                                std::optional<LockKind> kind, std::size_t room) {
  // The pieces of this owner that overlap the range or touch it.
  auto begin = std::lower_bound(held_.begin(), held_.end(), owner, ByOwner());
  while (begin != held_.end() && begin->owner == owner && begin->range.last < range.first &&
         range.first - begin->range.last > 1) {
    ++begin;
  }
  auto end = begin;
  while (end != held_.end() && end->owner == owner &&
         (end->range.first <= range.last || end->range.first - range.last == 1)) {
    ++end;
  }

  // What they become: at most a rest in front, the range itself, a rest behind.
  std::optional<Held> front, middle, behind;
  if (kind) middle = Held{owner, range, *kind};
  auto joins = [&](const Held& held) { return middle && held.kind == middle->kind; };
  for (auto held = begin; held != end; ++held) {
    if (held->range.first < range.first) {
      if (joins(*held)) {
        middle->range.first = held->range.first;
      } else {
        front = *held;
        front->range.last = std::min(held->range.last, range.first - 1);
      }
    }
    if (held->range.last > range.last) {
      if (joins(*held)) {
        middle->range.last = held->range.last;
      } else {
        behind = *held;
        behind->range.first = std::max(held->range.first, range.last + 1);
      }
    }
  }

  const auto before = static_cast<std::size_t>(end - begin);
  const std::size_t after = (front ? 1u : 0u) + (middle ? 1u : 0u) + (behind ? 1u : 0u);
  if (after > before && after - before > room) return Outcome::kTooMany;
  auto at = held_.erase(begin, end);
  for (const auto* piece : {&behind, &middle, &front}) {
    if (*piece) at = held_.insert(at, **piece);
  }
  return Outcome::kDone;
}

// Of many owners most hold nothing of a file where others hold much: they are found, and not looked
// for among all.

void ByteRangeLocks::release(LockOwnerId owner) {
  const auto [begin, end] = std::equal_range(held_.begin(), held_.end(), owner, ByOwner());
  held_.erase(begin, end);
}

bool ByteRangeLocks::holds_any(LockOwnerId owner) const {
  return std::binary_search(held_.begin(), held_.end(), owner, ByOwner());
}

std::vector<ByteRange> ByteRangeLocks::gaps(LockOwnerId owner, const ByteRange& range) const {
  std::vector<ByteRange> gaps;
  std::uint64_t from = range.first;
  const auto [begin, end] = std::equal_range(held_.begin(), held_.end(), owner, ByOwner());
  for (auto at = begin; at != end; ++at) {
    const Held& held = *at;
    if (!held.range.overlaps(range)) continue;
    if (held.range.first > from) gaps.push_back({from, held.range.first - 1});
    if (held.range.last >= range.last) return gaps;
    from = held.range.last + 1;
  }
  gaps.push_back({from, range.last});
  return gaps;
}

}  // namespace nfsrdma
