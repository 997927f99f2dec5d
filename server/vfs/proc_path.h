// SPDX-License-Identifier: Apache-2.0
// ProcPath: a path to what a descriptor stands for, O_PATH ones too, for system calls that take no
// such descriptor. It is a link that leads to the object itself, a symbolic link not excepted; no
// directory on the way to the object is walked.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstring>

namespace nfsrdma {

class ProcPath {
 public:
  /// Holds for as long as `fd` is open.
  explicit ProcPath(int fd) {
    std::memcpy(text_, kFolder, kFolderSize);
    *std::to_chars(text_ + kFolderSize, text_ + sizeof text_ - 1, fd).ptr = '\0';
  }
  const char* c_str() const { return text_; }

 private:
  static constexpr char kFolder[] = "/proc/self/fd/";
  static constexpr std::size_t kFolderSize = sizeof kFolder - 1;
  char text_[32];
};

}  // namespace nfsrdma
