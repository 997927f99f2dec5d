// SPDX-License-Identifier: Apache-2.0
// What `mount -o remount` asks for. The kernel can change its own flags of a mount (ro, nosuid and
// the like); what the daemon was started with stays, and a word that would change it is refused,
// as nfs(5) does for its own. mount(8) repeats the words of fstab or of the mount itself, so that
// all flags are there, but leaves out those that are the default, such as exec.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nfsrdma {

struct RemountPlan {
  unsigned long flags = 0;           // for mount(2), MS_REMOUNT among them
  std::vector<std::string> refused;  // words that ask for something else than what is
};

/// `given`: the words of -o in their order, each known to the table of options or to FUSE;
/// `running`: MountOptions::text() of the daemon.
RemountPlan plan_remount(std::span<const std::string> given, std::string_view running);

}  // namespace nfsrdma
