// SPDX-License-Identifier: Apache-2.0
#include "server/worker_pool.h"

#include <pthread.h>

#include "server/credentials.h"

namespace nfsrdma {

WorkerPool::WorkerPool(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { serve(); });
    ::pthread_setname_np(threads_.back().native_handle(), "worker");
  }
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

void WorkerPool::submit(WorkItem& item) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(item);
    ++waiting_;
  }
  more_.notify_one();
}

std::size_t WorkerPool::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

void WorkerPool::serve() {
  prepare_serving_thread();
  for (;;) {
    WorkItem* item = nullptr;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return !queue_.empty() || stopping_; });
      item = queue_.pop_front();
      if (item == nullptr) return;
      --waiting_;
    }
    item->run_on_worker();
  }
}

}  // namespace nfsrdma
