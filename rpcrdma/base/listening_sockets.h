// SPDX-License-Identifier: Apache-2.0
// Who listens on a TCP port, by /proc or a copy of it (proc(5)).
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace nfsrdma {

/// Inodes of the TCP sockets that listen on `port`, by /proc/net/tcp and tcp6. siw and other iWARP
/// drivers listen with such a socket inside the kernel, so an RDMA listener can be in the way of a
/// TCP one and the other way round; then no process holds the inode.
std::set<std::string> listening_inodes(const std::string& proc, std::uint16_t port);
/// The numbers of the users that made these sockets: root's are the kernel's own, too. Everybody
/// may know that.
std::set<std::string> listening_users(const std::string& proc, std::uint16_t port);

struct SocketHolder {
  std::string pid, name;  // empty: none was found
  bool hidden = false;    // some process would not let us look; it may be that one
};
/// The process that has one of these sockets open.
SocketHolder holder_of_sockets(const std::string& proc, const std::set<std::string>& inodes);

}  // namespace nfsrdma
