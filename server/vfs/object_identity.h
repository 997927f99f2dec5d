// SPDX-License-Identifier: Apache-2.0
// What identifies an object in its file system, as it goes into the body of a file handle.
#pragma once

#include <cstring>

#include "server/vfs/resolver.h"

namespace nfsrdma {

struct Resolver::Identity {
  HandleScheme scheme = HandleScheme::kKernel;
  std::uint8_t kernel_type = 0;
  std::uint8_t body_size = 0;
  std::array<std::byte, HandleParts::kMaxBody> body{};
  int mount_id = -1;

  /// Scheme kInode only.
  std::uint64_t inode() const { return load_be64(body.data()); }
  std::uint64_t birth() const { return load_be64(body.data() + 8); }
  void set_inode(std::uint64_t inode_number, std::uint64_t birth_time) {
    store_be64(body.data(), inode_number);
    store_be64(body.data() + 8, birth_time);
    body_size = 16;
  }
  bool same_as(const Identity& other) const {
    return scheme == other.scheme && kernel_type == other.kernel_type &&
           mount_id == other.mount_id && body_size == other.body_size &&
           std::memcmp(body.data(), other.body.data(), body_size) == 0;
  }
  /// False when the handle is certainly not of that inode. The kernel's most common handle type
  /// (ext4 and many others) starts with the low word of the inode number.
  bool may_be_inode(std::uint64_t inode_number) const {
    constexpr std::uint8_t kFileidIno32Gen = 1;
    if (scheme == HandleScheme::kInode) return inode() == inode_number;
    if (kernel_type != kFileidIno32Gen || body_size < 4) return true;
    std::uint32_t low;
    std::memcpy(&low, body.data(), sizeof low);
    return low == static_cast<std::uint32_t>(inode_number);
  }
};

/// fattr3.fsid. Subvolumes within one mount have device numbers of their own and may repeat inode
/// numbers, so they must differ.
inline std::uint64_t fsid_on(const MountPoint& mount, const struct stat& attributes) {
  if (attributes.st_dev == mount.device) return mount.fsid;
  return mount.fsid ^ (attributes.st_dev * 0x9e3779b97f4a7c15u);
}

}  // namespace nfsrdma
