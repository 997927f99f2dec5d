// SPDX-License-Identifier: Apache-2.0
// FileScope: files that an administrator speaks of: one, or all of a file system.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "server/vfs/file_entry.h"

namespace nfsrdma {

struct FileScope {
  /// As stat(2) has them. A file system has several where it has volumes of its own (btrfs), or
  /// layers (overlayfs).
  std::set<std::uint64_t> devices;
  std::optional<std::uint64_t> inode;  // of a single file

  bool has(const FileEntry& file) const {
    return devices.contains(file.device()) && (!inode || *inode == file.inode());
  }
};

}  // namespace nfsrdma
