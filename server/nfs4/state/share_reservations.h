// SPDX-License-Identifier: Apache-2.0
// ShareReservations: what the opens of one file let their owners do, and deny to later opens (RFC
// 8881 9.7 to 9.10, 18.16.3, 18.18.3; RFC 7530 9.9 to 9.11). One entry per open-owner that has the
// file open, however often: further OPENs add to it, OPEN_DOWNGRADE takes away, CLOSE ends it.
//
// Pure: no I/O, no clock. The caller serialises; an object lives as long as its file has state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace nfsrdma::nfs4 {

/// OPEN4_SHARE_ACCESS_* and OPEN4_SHARE_DENY_* without the wants of 4.1.
inline constexpr std::uint8_t kShareRead = 1;
inline constexpr std::uint8_t kShareWrite = 2;

struct Share {
  std::uint8_t access = 0;  // kShareRead, kShareWrite; never 0 in an OPEN, but in NLM
  std::uint8_t deny = 0;

  bool operator==(const Share&) const = default;
};

/// May an OPEN or OPEN_DOWNGRADE carry these? Otherwise NFS4ERR_INVAL.
constexpr bool valid(const Share& share) {
  return share.access >= 1 && share.access <= 3 && share.deny <= 3;
}

/// The open state of one open-owner on the file, as its table numbers them.
using OpenId = std::uint64_t;
constexpr OpenId kNobody = UINT64_MAX;

class ShareReservations {
  static constexpr unsigned kCombinations = 16;

 public:
  /// OPEN. False: an open stands against it, of whomever (NFS4ERR_SHARE_DENIED), and nothing
  /// changed.
  /// NLM has shares without access too, be it that they deny something or stand for locks alone.
  bool open(OpenId id, const Share& share);
  /// Takes back one open() of `id` with that share; what other OPENs asked for stays, and what they
  /// gave up meanwhile stays given up. False: nothing of `id` is left.
  bool undo(OpenId id, const Share& share);

  enum class Downgrade : std::uint8_t { kDone, kInvalid };
  /// OPEN_DOWNGRADE to what a subset of this owner's OPENs asked for, taken together; kInvalid
  /// (NFS4ERR_INVAL) for all else, and nothing changed. `id` has the file open.
  Downgrade downgrade(OpenId id, const Share& share);
  /// CLOSE, and the end of a client. Nothing when `id` has it not open.
  void close(OpenId id);

  /// May somebody without an open (special stateids, NFSv3) do this? `access` as in Share.
  /// What `own` has denied does not count.
  bool allows(std::uint8_t access, OpenId own = kNobody) const;
  /// What `id` may do: {0, 0} when it has the file not open.
  Share share(OpenId id) const;
  /// What all opens do, and deny.
  Share together() const;
  bool empty() const { return opens_.empty(); }

 private:
  struct Open {
    Share share;
    /// How many OPENs asked for each combination (`access + 4 * deny`). At its largest value a
    /// count stays: so many are not counted back.
    std::array<std::uint16_t, kCombinations> asked{};
  };
  using Opens = std::unordered_map<OpenId, Open>;
  /// How many opens have kShareRead (the first) and kShareWrite set.
  using Counts = std::array<std::size_t, 2>;

  void change(Open& open, const Share& share);
  void end(Opens::iterator open);

  Opens opens_;
  // One client can have a file open for very many owners, and everybody asks about all of them.
  Counts access_{}, deny_{};
};

}  // namespace nfsrdma::nfs4
