// SPDX-License-Identifier: Apache-2.0
// Other NFS servers of this host, as far as they can be seen from the sandbox of the service: there
// neither /proc/fs/nfsd nor what other processes have open can be read, but their names can.
#pragma once

#include <string>
#include <vector>

namespace nfsrdma {

struct OtherServers {
  bool kernel = false;               // Linux's NFS server has threads
  std::vector<std::string> daemons;  // process ids of other programs like this one
};

/// By `proc`, "/proc" or a copy of it. Looks at every process: for messages, not for calls.
OtherServers other_servers(const std::string& proc);

/// Where file systems of NFS version 3 of the kernel's client are mounted, by
/// `proc`/self/mountinfo.
std::vector<std::string> kernel_mounts_of_v3(const std::string& proc);

/// Who has the place of a lock manager of NFSv3, with a remedy for each that is possible.
std::string other_lock_manager(const OtherServers& servers, const std::vector<std::string>& mounts);

}  // namespace nfsrdma
