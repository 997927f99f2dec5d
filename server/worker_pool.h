// SPDX-License-Identifier: Apache-2.0
// WorkerPool: threads for system calls that may block. Work items are linked in by address: the
// submitter keeps them in place until run_on_worker() was called. In order of submission.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

class WorkItem : public ListNode<WorkItem> {
 public:
  virtual ~WorkItem() = default;
  /// On a worker's thread. The item may be gone when this returns.
  virtual void run_on_worker() = 0;

 private:
  friend class WorkerPool;
  std::uint64_t submitted_ns_ = 0;  // 0: no worker was free
};

/// Shared by all shards.
class WorkerPool {
 public:
  /// `hand_over_ns` gets a running average of how long a free worker takes to start. `after_each`
  /// (may be null) is what a worker does behind each item.
  explicit WorkerPool(unsigned threads, std::atomic<std::uint64_t>* hand_over_ns = nullptr,
                      void (*after_each)() = nullptr);
  /// Runs what was submitted, then ends the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void submit(WorkItem& item);
  std::size_t waiting() const;

 private:
  void serve();
  void note_start(const WorkItem& item);

  mutable std::mutex mutex_;
  std::condition_variable more_;
  IntrusiveList<WorkItem> queue_;  // guarded by mutex_
  std::size_t waiting_ = 0;        // guarded by mutex_
  std::size_t free_ = 0;           // threads that wait; guarded by mutex_
  std::atomic<std::uint64_t>* hand_over_ns_;
  void (*const after_each_)();
  bool stopping_ = false;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma
