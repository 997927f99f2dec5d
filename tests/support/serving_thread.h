// SPDX-License-Identifier: Apache-2.0
// A thread that serves: the identities of callers stay on it, and the test's own thread keeps its.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "server/credentials.h"

namespace nfsrdma::test {

class ServingThread {
 public:
  ServingThread() : thread_([this] { serve(); }) {}
  ~ServingThread() {
    run({});
    thread_.join();
  }
  /// Runs `work` there and waits; an empty one ends the thread.
  void run(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    pending_ = true;
    wake_.notify_all();
    wake_.wait(lock, [this] { return !pending_; });
  }

 private:
  void serve() {
    prepare_serving_thread();
    std::unique_lock lock(mutex_);
    for (bool more = true; more;) {
      wake_.wait(lock, [this] { return pending_; });
      more = static_cast<bool>(work_);
      if (more) work_();
      pending_ = false;
      wake_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> work_;
  bool pending_ = false;
  std::thread thread_;
};

}  // namespace nfsrdma::test
