// SPDX-License-Identifier: Apache-2.0
// DirectoryReader: the entries of a directory from a cookie on.
// Cookies are the kernel's own (getdents64's d_off), so they mean the same after a restart and
// while the directory changes, as far as the file system promises that. Borrows the cached stream
// of the directory and gives it back on destruction, with the entries that nobody took.
#pragma once

#include <cstdint>

#include "server/files/file_call.h"

namespace nfsrdma {

struct DirectoryEntry {
  std::uint64_t inode = 0;
  std::uint64_t cookie = 0;    // of the entry behind this one
  const char* name = nullptr;  // until the next call of next()
};

class DirectoryReader {
 public:
  DirectoryReader(FileCall& call, Resolved& directory) : call_(call), directory_(directory) {}
  ~DirectoryReader();
  DirectoryReader(const DirectoryReader&) = delete;
  DirectoryReader& operator=(const DirectoryReader&) = delete;

  /// `chunk`: how much to ask the kernel for at a time; about as much as the reply will take. 0 or
  /// an errno.
  int open(std::uint64_t cookie, std::size_t chunk);

  enum class Next : std::uint8_t { kEntry, kEnd, kError };
  /// kError: *error is set.
  Next next(DirectoryEntry* entry, int* error);
  /// The entry that next() gave is in the reply. Those that are not come again with the next one.
  void take() {
    taken_ = used_;
    taken_cookie_ = used_cookie_;
  }

 private:
  FileCall& call_;
  Resolved& directory_;
  DirectoryStream stream_;
  std::size_t chunk_ = 0;
  // In the thread's room for entries:
  std::size_t taken_ = 0;   // up to here they are in the reply
  std::size_t used_ = 0;    // up to here they were handed out
  std::size_t filled_ = 0;  // up to here the kernel gave some
  std::uint64_t taken_cookie_ = 0;
  std::uint64_t used_cookie_ = 0;
};

}  // namespace nfsrdma
