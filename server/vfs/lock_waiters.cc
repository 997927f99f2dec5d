// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/lock_waiters.h"

#include <algorithm>
#include <fstream>
#include <sstream>

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
    if (line.find("->") != std::string::npos) out.insert(file_of(line));
  }
  return out;
}

}  // namespace nfsrdma
