// SPDX-License-Identifier: Apache-2.0
// One file whose locks are mirrored. Part of LockMirror.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rpcrdma/base/unique_fd.h"
#include "server/nfs4/lock_mirror.h"
#include "server/vfs/record_locks.h"

namespace nfsrdma::nfs4 {

struct LockMirror::File {
  File(FileKey its_key, bool remote) : key(std::move(its_key)), is_remote(remote) {}

  const FileKey key;
  const bool is_remote;  // locking may block

  std::mutex turn;
  // Guarded by `turn`:
  UniqueFd fd;
  bool writable = false;  // what `fd` is open for
  ByteRangeLocks held;    // what the kernel has by `fd`, all of one owner
  bool gone = false;      // no longer in files_

  // Guarded by ServerState::mutex:
  std::vector<ByteRange> stale;  // where locks have ended
  bool queued = false;
  bool watched = false;  // the thread knows that there is something to watch

  /// Ends expired clients that local processes wait for, on files that are remote or are not.
  /// `lock`: of the mutex, given up meanwhile.
  static void end_courtesy(LockMirror& mirror, bool remote, std::unique_lock<std::mutex>& lock);

  void let_go_of_all() {
    if (!fd) return;
    set_record_lock(fd.get(), {RecordLock::Kind::kNone, 0, kLastByte});
    fd.reset();
    writable = false;
    held = ByteRangeLocks();
  }
};

}  // namespace nfsrdma::nfs4
