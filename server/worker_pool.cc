// SPDX-License-Identifier: Apache-2.0
#include "server/worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "server/credentials.h"

namespace nfsrdma {

namespace {

/// Does nothing, and lets its submitter know.
class Errand final : public WorkItem {
 public:
  void run_on_worker() override {
    // Notified under the mutex: the waiter may destroy us as soon as it can take it.
    std::lock_guard lock(mutex_);
    done_ = true;
    done_signal_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_signal_.wait(lock, [this] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_signal_;
  bool done_ = false;
};

}  // namespace

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

std::uint64_t WorkerPool::measure_hand_over() {
  using std::chrono::steady_clock;
  constexpr int kTries = 16;
  auto least = std::chrono::nanoseconds::max();
  for (int i = 0; i < kTries; ++i) {
    Errand errand;
    const steady_clock::time_point start = steady_clock::now();
    submit(errand);
    errand.wait();
    least = std::min<std::chrono::nanoseconds>(least, steady_clock::now() - start);
  }
  return static_cast<std::uint64_t>(least.count());
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
