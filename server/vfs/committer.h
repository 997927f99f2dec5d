// SPDX-License-Identifier: Apache-2.0
// Committer: group commit. Whoever needs something on stable storage submits a CommitJob; while one
// batch is being written, the next one gathers, so that many waiters share one fsync per inode.
//
// A job is durable when an fsync that *began* after its submission has succeeded, and none of that
// inode has failed since the job's change began (file_syncs.h). When one fails, every job of that
// inode in the batch gets the errno, and the write verifier changes, because the kernel reports
// such an error only once and drops the pages.
//
// What wants a whole file system synced takes as long as all that anybody wrote there: it has a
// queue and a thread of its own, which nobody else waits for.
//
// Threads: submit() from any thread. finish() runs on a committer thread; it hands the result to
// wherever it belongs (EventLoop::post or a queue of the shard's).
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "server/vfs/file_syncs.h"

namespace nfsrdma {

/// Embedded in whoever waits. Untouched by the committer after finish() was called.
class CommitJob {
 public:
  static constexpr std::size_t kMaxFds = 3;
  virtual ~CommitJob() = default;
  /// 0, or the errno of the fsync that failed. On a committer thread.
  virtual void finish(int error) = 0;

  /// Added to a descriptor's number, which are all smaller: not the file is to be synced, but all
  /// of the file system that it is on.
  static constexpr int kWholeFileSystem = 1 << 30;
  /// Descriptors, not O_PATH, open until finish(); -1 where unused.
  std::array<int, kMaxFds> fds{-1, -1, -1};
  bool data_only = false;  // fdatasync is enough for this job
  /// Committer::failures() before what is to be durable was done; kItsSyncAlone for who only wants
  /// a sync: what another one has told of before it is no failure of this job.
  static constexpr std::uint64_t kItsSyncAlone = ~std::uint64_t{0};
  std::uint64_t since = kItsSyncAlone;

 private:
  friend class Committer;
  int error_ = 0;
};

class Committer {
 public:
  /// Tests replace the system calls.
  struct Calls {
    int (*sync)(int fd, bool data_only);  // 0, or -1 with errno
    int (*sync_all)(int fd) = ::syncfs;   // the same, of a whole file system
  };
  static Calls system_calls();

  Committer(FileSyncs& syncs, unsigned threads, Calls calls = system_calls());
  /// Finishes what was submitted.
  ~Committer();

  void submit(CommitJob& job);
  /// Blocks until it is durable: for workers and tests. Returns the errno.
  int commit_now(std::array<int, CommitJob::kMaxFds> fds, bool data_only,
                 std::uint64_t since = CommitJob::kItsSyncAlone);
  /// For CommitJob::since.
  std::uint64_t failures() const { return file_syncs_.failures(); }

  struct Stats {
    std::uint64_t jobs = 0;
    std::uint64_t syncs = 0;  // fsync, fdatasync and syncfs calls made
    std::uint64_t failures = 0;
  };
  Stats stats() const;

 private:
  struct Target;
  struct Queue {
    std::condition_variable wake;
    std::vector<CommitJob*> waiting;  // guarded by mutex_
    unsigned syncing = 0;             // threads that have taken some; guarded by mutex_
  };
  void work(Queue& queue);
  bool take(Queue& queue, std::vector<CommitJob*>* batch);
  void commit(const std::vector<CommitJob*>& batch, std::vector<Target>& targets);
  bool would_wait(const CommitJob& job) const;
  int overtaken(const CommitJob& job) const;

  FileSyncs& file_syncs_;
  Calls calls_;
  std::mutex mutex_;
  Queue files_, file_systems_;
  bool stop_ = false;  // guarded by mutex_
  std::atomic<std::uint64_t> jobs_{0}, syncs_{0}, failures_{0};
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma
