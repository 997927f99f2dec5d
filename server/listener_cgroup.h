// SPDX-License-Identifier: Apache-2.0
// In which control group, that is unit or session of systemd, a port is listened on. The service
// may not look at what other processes have open, but everybody may ask for that (sock_diag(7)).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace nfsrdma {

/// Ids of the groups in which TCP sockets were made that listen on `port`. Empty as well where the
/// kernel does not tell (before Linux 5.8).
std::set<std::uint64_t> cgroups_of_listeners(std::uint16_t port);

/// Part of that: what `socket` has as the answer to one question, up to its end.
void read_listeners(int socket, std::uint16_t port, std::set<std::uint64_t>* ids);

struct Cgroup {
  std::string name;                    // "nginx.service"
  std::vector<std::string> processes;  // "812 (nginx)", the first few
  bool more = false;                   // than these
};

/// The group with that id below `root` ("/sys/fs/cgroup"), with the names of its processes by
/// `proc`. Nothing when it is not there (any more), or empty.
std::optional<Cgroup> find_cgroup(const std::string& root, const std::string& proc,
                                  std::uint64_t id);

}  // namespace nfsrdma
