// SPDX-License-Identifier: Apache-2.0
// A descriptor cache that has no room for a file.
#pragma once

#include <vector>

#include "server/vfs/fd_cache.h"

namespace nfsrdma::test {

/// Fills the stripe that `handle` belongs to, but for the file itself, which is not in it any more.
/// There is no room while these are kept.
inline std::vector<FilePin> leave_no_room(FdCache& files, const FileHandle& handle) {
  files.forget(handle);
  std::vector<FilePin> pins;
  // Twice as many as fit: whatever nobody uses has to go first.
  for (std::size_t i = 0; i < 2 * files.capacity() / 64 + 64; ++i) {
    FdCache::Opened other;
    other.handle = handle;
    // The last eight bytes are the hash, the lowest six bits of it the stripe.
    store_be32(&other.handle.data[handle.size - 4], static_cast<std::uint32_t>(i));
    pins.push_back(files.insert(std::move(other)));
  }
  return pins;
}

}  // namespace nfsrdma::test
