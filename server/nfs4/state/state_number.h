// SPDX-License-Identifier: Apache-2.0
// What the stateids given by this server are made of (`other` is the server's own, RFC 8881 8.2.1):
// the boot, and behind it a number of 64 bits, which has from the top
//   2 bits   what it is of (StateNumberKind)
//   22 bits  the last ones of its client's number: in minor version 0 they say, when nothing is
//            known by it, whether its client is gone (NFS4ERR_EXPIRED) or only the state
//   40 bits  counted up in each table
// Pure.
#pragma once

#include <cstring>

#include "server/nfs4/state/client_table.h"
#include "server/nfs4/state/stateid_rules.h"

namespace nfsrdma::nfs4 {

using StateNumber = std::uint64_t;

/// The special stateids of all ones have all bits of the kind as well, and are none.
enum class StateNumberKind : std::uint8_t { kOpenOrLock = 0, kOffload = 1, kDelegation = 2 };

inline constexpr unsigned kStateKindShift = 62;
inline constexpr unsigned kStateClientShift = 40;
inline constexpr std::uint64_t kStateClientMask = (std::uint64_t{1} << 22) - 1;
inline constexpr std::uint64_t kStateCountMask = (std::uint64_t{1} << kStateClientShift) - 1;

constexpr StateNumber state_number(StateNumberKind kind, ClientId client, std::uint64_t count) {
  return static_cast<StateNumber>(kind) << kStateKindShift |
         (client & kStateClientMask) << kStateClientShift | (count & kStateCountMask);
}

/// The next number that `used` says nothing is known by; *count goes on.
template <typename Used>
StateNumber next_state_number(StateNumberKind kind, ClientId client, std::uint64_t* count,
                              const Used& used) {
  StateNumber number = 0;
  do {
    number = state_number(kind, client, ++*count);
  } while (used(number));  // only once they have begun anew
  return number;
}

inline StateNumberKind kind_in(StateNumber number) {
  return static_cast<StateNumberKind>(number >> kStateKindShift);
}
/// Could it be a number of that client's state?
constexpr bool may_be_of(StateNumber number, ClientId client) {
  return (number >> kStateClientShift & kStateClientMask) == (client & kStateClientMask);
}

inline Stateid make_stateid(std::uint32_t boot, StateNumber number, std::uint32_t seqid) {
  Stateid out{seqid, {}};
  std::memcpy(out.other.data(), &boot, sizeof boot);
  std::memcpy(out.other.data() + sizeof boot, &number, sizeof number);
  return out;
}
inline std::uint32_t boot_in(const Stateid& stateid) {
  std::uint32_t boot = 0;
  std::memcpy(&boot, stateid.other.data(), sizeof boot);
  return boot;
}
inline StateNumber number_in(const Stateid& stateid) {
  StateNumber number = 0;
  std::memcpy(&number, stateid.other.data() + sizeof(std::uint32_t), sizeof number);
  return number;
}

}  // namespace nfsrdma::nfs4
