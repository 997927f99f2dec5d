// SPDX-License-Identifier: Apache-2.0
// What a stateid says before anything is looked up: is it a special one, and is its sequence number
// the current one (RFC 8881 8.2.2 to 8.2.4, RFC 7530 9.1.4). Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace nfsrdma::nfs4 {

struct Stateid {
  std::uint32_t seqid = 0;
  std::array<std::byte, 12> other{};

  bool operator==(const Stateid&) const = default;
};

enum class StateidKind : std::uint8_t {
  kOrdinary,
  kAnonymous,   // all zeros: READ, WRITE, SETATTR without an open
  kReadBypass,  // all ones: READ that share reservations do not stop; else as kAnonymous
  kCurrent,     // from minor version 1 on: the one that an operation before left behind
  kInvalid,     // never good: NFS4ERR_BAD_STATEID
};

inline StateidKind kind_of(const Stateid& stateid, std::uint32_t minor_version) {
  auto all = [&stateid](std::byte value) {
    return std::all_of(stateid.other.begin(), stateid.other.end(),
                       [value](std::byte b) { return b == value; });
  };
  if (all(std::byte{0})) {
    if (stateid.seqid == 0) return StateidKind::kAnonymous;
    if (stateid.seqid == 1 && minor_version > 0) return StateidKind::kCurrent;
    return StateidKind::kInvalid;
  }
  if (all(std::byte{0xff})) {
    return stateid.seqid == UINT32_MAX ? StateidKind::kReadBypass : StateidKind::kInvalid;
  }
  return StateidKind::kOrdinary;
}

/// The sequence number behind `seqid`: 0 is left out when it wraps.
constexpr std::uint32_t next_seqid(std::uint32_t seqid) {
  return seqid == UINT32_MAX ? 1 : seqid + 1;
}

constexpr std::uint32_t seqid_before(std::uint32_t seqid) {
  return seqid <= 1 ? UINT32_MAX : seqid - 1;
}

enum class SeqidVerdict : std::uint8_t {
  kCurrent,
  kOld,     // NFS4ERR_OLD_STATEID: a later one has been given out
  kFuture,  // NFS4ERR_BAD_STATEID: never given out
};

/// `given` by the client for a state whose last one is `held`. From minor version 1 on 0 means
/// whichever is current. Numbers wrap: what is less than half of them away is behind or before.
constexpr SeqidVerdict judge_seqid(std::uint32_t given, std::uint32_t held,
                                   std::uint32_t minor_version) {
  if (given == held || (given == 0 && minor_version > 0)) return SeqidVerdict::kCurrent;
  return static_cast<std::int32_t>(given - held) < 0 ? SeqidVerdict::kOld : SeqidVerdict::kFuture;
}

}  // namespace nfsrdma::nfs4
