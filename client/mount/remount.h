// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/mount/command_line.h"

namespace nfsrdma {

/// `mount -o remount`: gives the mount at line.mount_point the flags asked for. Blocking; never
/// asks the mount itself, whose server may be gone, but its daemon. Empty, or one line that says
/// why not.
std::string remount(const MountCommandLine& line);

}  // namespace nfsrdma
