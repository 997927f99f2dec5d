// SPDX-License-Identifier: Apache-2.0
// FileSyncs: the syncs of files that calls share, and which of them failed.
//
// The kernel tells of pages that it could not write once for each open file, whoever of us asks
// first. So a sync that succeeds proves nothing of what was written before it while another one
// that ended meanwhile has failed: who must know that its own change is on the disk takes
// failures() before it makes the change, and asks failed_since() behind its sync.
//
// A descriptor is synced by one at a time, until the failure is on record here: else the next one
// could succeed, and be believed, between the moment at which the kernel tells and ours.
//
// Threads: any.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "server/vfs/write_verifier.h"

namespace nfsrdma {

class FileSyncs {
 public:
  /// An open file, or all of the file system that it is on.
  struct Object {
    int fd = -1;
    bool whole = false;
    bool operator==(const Object&) const = default;
  };

  explicit FileSyncs(WriteVerifier& verifier) : verifier_(verifier) {}

  /// How many there were so far.
  std::uint64_t failures() const { return failures_.load(std::memory_order_acquire); }
  /// The errno of a sync of that file, by whichever descriptor, that is none of the first `since`
  /// which failed; 0: there was none.
  int failed_since(std::uint64_t since, Object object) const;

  /// Somebody syncs it now: run() would wait.
  bool busy(Object object) const;
  /// Calls `sync` (0, or -1 with errno) when nobody else syncs the object: 0, or the errno, and
  /// then clients have to send again whatever they did not commit.
  template <typename Sync>
  int run(Object object, Sync sync) {
    begin(object);
    const int error = sync() == 0 ? 0 : errno;
    if (error != 0) note_failure(object, error);
    end(object);
    return error;
  }

 private:
  /// The last one of a file, or of a whole file system.
  struct Failure {
    dev_t device = 0;
    ino_t inode = 0;  // 0: of all
    bool whole = false;
    int error = 0;
    std::uint64_t number = 0;  // how many there were before it

    bool is_of_same(const Failure& other) const {
      return device == other.device && inode == other.inode && whole == other.whole;
    }
  };
  /// Of `object`, which is open as `st` says.
  static Failure failure_of(const struct stat& st, Object object, int error, std::uint64_t number);
  /// Who began before more files than these failed is told that its file was among them.
  static constexpr std::size_t kKept = 1024;

  void begin(Object object);
  void end(Object object);
  void note_failure(Object object, int error);
  void keep(const Failure& failure);  // with mutex_

  WriteVerifier& verifier_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Object> running_;  // guarded by mutex_
  std::vector<Failure> failed_;  // guarded by mutex_; each file once, in no order
  std::uint64_t forgotten_ = 0;  // guarded by mutex_; of the first so many some are not in failed_
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace nfsrdma
