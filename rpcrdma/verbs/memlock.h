// SPDX-License-Identifier: Apache-2.0
// The limit of locked memory (RLIMIT_MEMLOCK): registering memory pins it, and the kernel counts
// every region, also two of the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nfsrdma::verbs {

/// A mount exposes up to this much at once with default settings.
constexpr std::uint64_t kComfortableMemlock = std::uint64_t{64} << 20;

struct MemlockLimit {
  std::uint64_t bytes = 0;
  bool unlimited = false;
  bool exempt = false;  // CAP_IPC_LOCK: the kernel does not look at the limit (siw may)

  /// For tests and messages: does the limit bind us?
  bool binds() const { return !unlimited && !exempt; }
  bool is_little() const { return binds() && bytes < kComfortableMemlock; }
};

/// Of this process, with the capabilities of the calling thread.
MemlockLimit memlock_limit();

/// What an administrator can do about a limit that is too low, in one sentence.
std::string memlock_remedy();

}  // namespace nfsrdma::verbs
