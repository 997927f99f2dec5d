// SPDX-License-Identifier: Apache-2.0
// LoopDriver: lets threads that call the blocking library run Tasks on one EventLoop that has no
// thread of its own. The first caller turns the loop (it leads); others hand their Task to it and
// wait (they follow). When the leader's own Task is done it goes home and a follower leads. A
// single thread never waits for another one and never changes threads.
//
// What a server keeps for its client wants to be kept alive though: leases are renewed, calls of
// the server answered. From keep() on a thread of the driver's own, the keeper, turns the loop
// while nobody has called for kIdle, and steps back for whoever calls. It costs a busy caller
// nothing but that once.
//
// Shared: any thread may call run().
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

class LoopDriver {
 public:
  static constexpr std::chrono::milliseconds kIdle{50};

  static Result<std::unique_ptr<LoopDriver>> create();
  /// No run() may be going on.
  ~LoopDriver();

  /// From now on. Any thread, also from what runs on the loop.
  void keep();
  /// Runs `work` while nobody turns the loop.
  void while_it_stands(const std::function<void()>& work);

  EventLoop& loop() { return *loop_; }

  /// Runs `task` to its end. It may be resumed on other threads that are in run() meanwhile.
  template <typename T>
  T run(Task<T> task) {
    Job<T> job;
    job.task = std::move(task);
    drive(job);
    return std::move(*job.result);
  }

 private:
  struct JobBase {
    virtual ~JobBase() = default;
    virtual Task<void> body() = 0;
    bool finished = false;  // leader's
    bool done = false;      // under mutex_
  };
  template <typename T>
  struct Job final : JobBase {
    Task<T> task;
    std::optional<T> result;
    Task<void> body() override {
      result.emplace(co_await std::move(task));
      task = Task<T>();  // its frame ends where it ran, not where the caller waits
      finished = true;
    }
  };

  LoopDriver() = default;
  void drive(JobBase& job);
  void lead(JobBase& job, std::unique_lock<std::mutex>& lock);
  bool any_finished() const;
  void keeper();
  /// Turns the loop until somebody calls.
  void lead_idly(std::unique_lock<std::mutex>& lock);
  void step_back();

  std::unique_ptr<EventLoop> loop_;
  TaskGroup running_;              // leader's
  std::vector<JobBase*> started_;  // leader's
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  bool has_leader_ = false;
  std::vector<JobBase*> new_jobs_;
  std::chrono::steady_clock::time_point led_until_{};  // by the last leader
  unsigned waiting_ = 0;                               // who want to lead, or nobody to
  bool ending_ = false;
  std::condition_variable keeper_wakes_;  // of its own: callers come and go without waking it
  std::thread keeper_;
};

}  // namespace nfsrdma
