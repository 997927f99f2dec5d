// SPDX-License-Identifier: Apache-2.0
// The local side of a mount: the mount point before, the kernel's view of it after.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// Absolute, without symbolic links. On an error *why says in one line what is wrong.
Result<std::string> resolve_mount_point(const std::string& given, std::string* why);

/// Can this process mount with FUSE at all? Empty: yes, else why not.
std::string fuse_unavailable();

struct DeviceNumber {
  unsigned major = 0;
  unsigned minor = 0;
  bool operator==(const DeviceNumber&) const = default;
};
/// From /proc/self/mountinfo: asking the file system itself would be asking ourselves.
std::optional<DeviceNumber> device_of_mount(const std::string& mount_point);
/// Does `mount_point` lead to that mount? Behind `umount -l` while files are open, or below another
/// mount, it does not.
bool is_mounted_at(const std::string& mount_point, DeviceNumber device);

struct OurMount {
  DeviceNumber device;
  unsigned user = 0;  // who mounted it
  std::string mount_point;
  bool is_its_point = false;  // `path` is the mount point, not something inside
};
/// The FUSE mount of ours that `path` lies in, found without a call that the mount would have to
/// answer: component by component, symbolic links resolved, up to the mount point. On nothing,
/// *why says it in one line.
std::optional<OurMount> our_mount(const std::string& path, std::string* why);

/// Lets the kernel read ahead this far; needs root, silently less without.
void raise_read_ahead(DeviceNumber device, std::uint32_t bytes);

/// Unmounts as umount(8) or, for ordinary users, fusermount3 does. EBUSY when in use.
Result<void> unmount_now(const std::string& mount_point, bool lazily);

}  // namespace nfsrdma
