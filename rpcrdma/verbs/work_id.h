// SPDX-License-Identifier: Apache-2.0
// The wr_id that the adapter sees: never a pointer, so that a late or repeated completion finds
// nothing instead of freed memory. kind (8 bits) | owner (24) | slot (32).
#pragma once

#include <cstdint>

namespace nfsrdma::verbs {

enum class WorkKind : std::uint8_t { kSendQueue = 1, kReceive = 2 };

struct WorkId {
  WorkKind kind;
  std::uint32_t owner;  // kSendQueue: queue pair's id on its CQ; kReceive: receive queue's id
  std::uint32_t slot;   // kSendQueue: sequence number; kReceive: slot of the receive queue

  static constexpr std::uint32_t kOwnerMask = 0xffffff;

  std::uint64_t encode() const {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
           std::uint64_t{owner & kOwnerMask} << 32 | slot;
  }
  static WorkId decode(std::uint64_t value) {
    return {static_cast<WorkKind>(value >> 56),
            static_cast<std::uint32_t>(value >> 32) & kOwnerMask,
            static_cast<std::uint32_t>(value)};
  }
};

}  // namespace nfsrdma::verbs
