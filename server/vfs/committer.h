// SPDX-License-Identifier: Apache-2.0
// Committer: group commit. Whoever needs something on stable storage submits a CommitJob; while one
// batch is being written, the next one gathers, so that many waiters share one fsync per inode.
//
// A job is durable when an fsync that *began* after its submission has succeeded. When one fails,
// every job of that inode in the batch gets the errno, and the write verifier changes, because the
// kernel reports such an error only once and drops the pages.
//
// Threads: submit() from any thread. finish() runs on a committer thread; it hands the result to
// wherever it belongs (EventLoop::post or a queue of the shard's).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "server/vfs/write_verifier.h"

namespace nfsrdma {

/// Embedded in whoever waits. Untouched by the committer after finish() was called.
class CommitJob {
 public:
  static constexpr std::size_t kMaxFds = 3;
  virtual ~CommitJob() = default;
  /// 0, or the errno of the fsync that failed. On a committer thread.
  virtual void finish(int error) = 0;

  /// Descriptors, not O_PATH, open until finish(); -1 where unused.
  std::array<int, kMaxFds> fds{-1, -1, -1};
  bool data_only = false;  // fdatasync is enough for this job

 private:
  friend class Committer;
  int error_ = 0;
};

class Committer {
 public:
  /// Tests replace the system calls.
  struct Calls {
    int (*sync)(int fd, bool data_only);  // 0, or -1 with errno
  };
  static Calls system_calls();

  Committer(WriteVerifier& verifier, unsigned threads, Calls calls = system_calls());
  /// Finishes what was submitted.
  ~Committer();

  void submit(CommitJob& job);
  /// Blocks until it is durable: for workers and tests. Returns the errno.
  int commit_now(std::array<int, CommitJob::kMaxFds> fds, bool data_only);

  struct Stats {
    std::uint64_t jobs = 0;
    std::uint64_t syncs = 0;  // fsync and fdatasync calls made
    std::uint64_t failures = 0;
  };
  Stats stats() const;

 private:
  struct Target;
  void work();
  void commit(std::vector<CommitJob*>& batch, std::vector<Target>& targets);

  WriteVerifier& verifier_;
  Calls calls_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<CommitJob*> waiting_;  // guarded by mutex_
  bool stop_ = false;                // guarded by mutex_
  std::atomic<std::uint64_t> jobs_{0}, syncs_{0}, failures_{0};
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma
