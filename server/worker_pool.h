// SPDX-License-Identifier: Apache-2.0
// WorkerPool: threads for system calls that may block. Work items are linked in by address: the
// submitter keeps them in place until run_on_worker() was called. In order of submission.
#pragma once

#include <condition_variable>
#include <cstddef>
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
};

/// Shared by all shards.
class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads);
  /// Runs what was submitted, then ends the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void submit(WorkItem& item);
  std::size_t waiting() const;
  /// Nanoseconds that it takes on this machine to have a worker do nothing and to be told so: the
  /// least of a few tries, for whatever else runs only adds to it. Blocks; for the start.
  std::uint64_t measure_hand_over();

 private:
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable more_;
  IntrusiveList<WorkItem> queue_;  // guarded by mutex_
  std::size_t waiting_ = 0;        // guarded by mutex_
  bool stopping_ = false;          // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace nfsrdma
