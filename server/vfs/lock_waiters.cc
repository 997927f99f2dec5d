// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/lock_waiters.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace nfsrdma {

namespace {

/// Of a line about a lock: device (two numbers) and inode, with colons between.
std::string file_of(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  while (words >> word) {
    if (std::count(word.begin(), word.end(), ':') == 2) return word;
  }
  return {};
}

}  // namespace

std::string locked_file_name(int fd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("lock:")) return file_of(line);
  }
  return {};
}

std::set<std::string> awaited_files() {
  std::set<std::string> out;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::size_t waits = line.find("-> ");
    if (waits == std::string::npos) continue;
    // Those who wait for flock() or for a lease are in nobody's way, and of leases no file is told.
    const std::string_view kind = std::string_view(line).substr(waits + 3);
    if (kind.starts_with("POSIX") || kind.starts_with("OFDLCK")) out.insert(file_of(line));
  }
  return out;
}

}  // namespace nfsrdma
