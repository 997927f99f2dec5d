// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/listening_sockets.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace nfsrdma {

namespace {

namespace fs = std::filesystem;

bool is_denied(const std::error_code& error) {
  return error == std::errc::permission_denied || error == std::errc::operation_not_permitted;
}

bool holds(const fs::path& descriptors, const std::set<std::string>& inodes, bool* hidden) {
  std::error_code error;
  for (fs::directory_iterator it(descriptors, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unread;
    const std::string target = fs::read_symlink(it->path(), unread).string();
    // What may be listed may still not be read: that takes the right to trace the process.
    if (is_denied(unread)) *hidden = true;
    if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9))) {
      return true;
    }
  }
  if (is_denied(error)) *hidden = true;
  return false;
}

/// A column of the tables of TCP sockets, of those that listen on `port`.
std::set<std::string> column_of_listeners(const std::string& proc, std::uint16_t port,
                                          std::size_t wanted) {
  constexpr std::string_view kListen = "0A";
  constexpr std::size_t kLocal = 1, kState = 3, kColumns = 10;
  std::set<std::string> values;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(proc + table);
    for (std::string line; std::getline(file, line);) {
      // sl local_address rem_address st queues timer retransmits uid timeout inode
      std::istringstream words(line);
      std::array<std::string, kColumns> column;
      for (std::string& word : column)
        words >> word;
      const std::string& local = column[kLocal];
      const std::size_t colon = local.rfind(':');
      if (!words || colon == std::string::npos || column[kState] != kListen) continue;
      std::uint16_t its = 0;
      const char* end = local.data() + local.size();
      const bool read = std::from_chars(local.data() + colon + 1, end, its, 16).ptr == end;
      if (read && its == port) values.insert(column[wanted]);
    }
  }
  return values;
}

}  // namespace

std::set<std::string> listening_inodes(const std::string& proc, std::uint16_t port) {
  constexpr std::size_t kInode = 9;
  return column_of_listeners(proc, port, kInode);
}

std::set<std::string> listening_users(const std::string& proc, std::uint16_t port) {
  constexpr std::size_t kUser = 7;
  return column_of_listeners(proc, port, kUser);
}

SocketHolder holder_of_sockets(const std::string& proc, const std::set<std::string>& inodes) {
  SocketHolder holder;
  if (inodes.empty()) return holder;
  std::error_code error;
  for (fs::directory_iterator it(proc, error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds(it->path() / "fd", inodes, &holder.hidden)) continue;
    holder.pid = pid;
    std::ifstream comm(it->path() / "comm");
    if (!std::getline(comm, holder.name)) holder.name = "?";
    break;
  }
  return holder;
}

}  // namespace nfsrdma
