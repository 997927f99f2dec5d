// SPDX-License-Identifier: Apache-2.0
// ByteRangeLocks: who holds which bytes of one file (RFC 8881 9.2 to 9.5, RFC 7530 9.4). Locks are
// advisory and per byte, as POSIX has them: a lock replaces what its owner holds in that range,
// neighbours of one kind become one, unlocking the middle leaves two.
//
// The server and the client both keep
// them. Pure: no I/O, no clock. The caller serialises; an object lives as long as its file has
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace nfsrdma {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive; UINT64_MAX: to the end of the file, wherever that is

  bool overlaps(const ByteRange& other) const { return first <= other.last && other.first <= last; }
  bool operator==(const ByteRange&) const = default;
};

inline constexpr ByteRange kAllBytes{0, UINT64_MAX};

/// What LOCK, LOCKT and LOCKU name. Empty for what they must refuse by NFS4ERR_INVAL: no byte, or
/// an end beyond 2^64 - 1 (RFC 8881 18.10.3). A length of 2^64 - 1 means to the end of the file.
std::optional<ByteRange> byte_range(std::uint64_t offset, std::uint64_t length);
/// The length that names `range`.
std::uint64_t length_of(const ByteRange& range);

enum class LockKind : std::uint8_t { kRead, kWrite };

/// A lock-owner, as its table numbers them.
using LockOwnerId = std::uint64_t;

class ByteRangeLocks {
 public:
  struct Held {
    LockOwnerId owner = 0;
    ByteRange range;
    LockKind kind = LockKind::kRead;

    bool operator==(const Held&) const = default;
  };

  /// A lock of somebody else that `owner` would have to wait for, until the next change; null when
  /// there is none.
  const Held* conflict(LockOwnerId owner, LockKind kind, const ByteRange& range) const;

  enum class Outcome : std::uint8_t { kDone, kConflict, kTooMany };
  /// Changes nothing unless kDone. `room`: how many more pieces there may be.
  Outcome lock(LockOwnerId owner, LockKind kind, const ByteRange& range,
               std::size_t room = SIZE_MAX);
  /// Whatever others hold: for lists of what was held.
  void put(LockOwnerId owner, LockKind kind, const ByteRange& range) {
    replace(owner, range, kind, SIZE_MAX);
  }
  /// Never kConflict. Bytes that are not held need not be. kTooMany: one piece would become two
  /// where there is no room for two; nothing is changed.
  Outcome unlock(LockOwnerId owner, const ByteRange& range, std::size_t room = SIZE_MAX);
  /// All of them, for RELEASE_LOCKOWNER, FREE_STATEID and the end of a client.
  void release(LockOwnerId owner);

  bool holds_any(LockOwnerId owner) const;
  /// What of `range` the owner does not hold, in order.
  std::vector<ByteRange> gaps(LockOwnerId owner, const ByteRange& range) const;
  bool empty() const { return held_.empty(); }
  /// By owner, then by range; of one owner they neither overlap nor touch with the same kind.
  const std::vector<Held>& held() const { return held_; }

 private:
  Outcome replace(LockOwnerId owner, const ByteRange& range, std::optional<LockKind> kind,
                  std::size_t room);

  std::vector<Held> held_;
};

}  // namespace nfsrdma
