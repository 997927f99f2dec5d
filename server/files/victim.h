// SPDX-License-Identifier: Apache-2.0
// Victim: an object whose name is about to go (REMOVE, RMDIR, the target of RENAME). When that was
// its last name, the descriptor cache must let go of it, or it would keep the disk space.
#pragma once

#include "server/files/file_call.h"

namespace nfsrdma {

class Victim {
 public:
  /// Before the change: whether we hold it open at all.
  Victim(FileCall& call, Resolved& directory, const char* name)
      : call_(call), files_(call.server().files) {
    FileHandle handle;
    if (call.server().resolver.handle_of(call.exported(), *directory.file, name, &handle)) {
      file_ = files_.find(handle);
    }
  }
  /// After it succeeded.
  void removed() {
    struct stat st;
    if (!file_ || ::fstat(file_->path_fd(), &st) != 0) return;
    // Not every file system counts the links of directories.
    if (st.st_nlink > 0 && !file_->is_directory()) return;
    files_.forget(file_->handle());
    call_.server().resolver.forget_place(call_.exported(), *file_);
  }

 private:
  FileCall& call_;
  FdCache& files_;
  FilePin file_;
};

}  // namespace nfsrdma
