// SPDX-License-Identifier: Apache-2.0
#include "server/worker_pool.h"

#include <pthread.h>

#include "rpcrdma/base/clock.h"
#include "server/credentials.h"

namespace nfsrdma {

WorkerPool::WorkerPool(unsigned threads, std::atomic<std::uint64_t>* hand_over_ns,
                       void (*after_each)())
    : hand_over_ns_(hand_over_ns), after_each_(after_each) {
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
    // With as many waiting as are free the item would have to wait for another one's end.
    item.submitted_ns_ = waiting_ < free_ && hand_over_ns_ != nullptr ? now_ns() : 0;
    queue_.push_back(item);
    ++waiting_;
  }
  more_.notify_one();
}

std::size_t WorkerPool::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

/// Several workers at once may lose one of their figures: it is an average.
void WorkerPool::note_start(const WorkItem& item) {
  if (hand_over_ns_ == nullptr || item.submitted_ns_ == 0) return;
  const std::uint64_t took = now_ns() - item.submitted_ns_;
  const std::uint64_t before = hand_over_ns_->load(std::memory_order_relaxed);
  hand_over_ns_->store(before - before / 8 + took / 8, std::memory_order_relaxed);
}

void WorkerPool::serve() {
  prepare_serving_thread();
  for (;;) {
    WorkItem* item = nullptr;
    {
      std::unique_lock lock(mutex_);
      ++free_;
      more_.wait(lock, [this] { return !queue_.empty() || stopping_; });
      --free_;
      item = queue_.pop_front();
      if (item == nullptr) return;
      --waiting_;
    }
    note_start(*item);
    item->run_on_worker();
    if (after_each_ != nullptr) after_each_();
  }
}

}  // namespace nfsrdma
