// SPDX-License-Identifier: Apache-2.0
// LastingTasks: what goes on behind whoever asked for it. None is cut short but by stop(), which
// cancels stopping(); they go by that, and look at stopped().
//
// stop() before destroying; nothing may be awaited then. Whatever the tasks refer to outlives this.
#pragma once

#include <utility>

#include "client/gate.h"
#include "client/op_context.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::nfs4 {

class LastingTasks {
 public:
  LastingTasks() = default;
  ~LastingTasks() { stop(); }
  LastingTasks(const LastingTasks&) = delete;
  LastingTasks& operator=(const LastingTasks&) = delete;

  void spawn(Task<void> task) { tasks_.spawn(run(std::move(task))); }
  /// Until none runs, or `op` is cancelled.
  Task<void> wait(const OpContext& op) {
    bool patient = true;
    while (patient && running_ > 0 && !stopped_)
      patient = co_await over_.wait(op.cancel);
  }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    stopping_.cancel();
    over_.wake_all();
  }
  bool stopped() const { return stopped_; }
  CancelToken& stopping() { return stopping_; }

 private:
  Task<void> run(Task<void> task) {
    ++running_;
    co_await std::move(task);
    --running_;
    over_.wake_all();
  }

  unsigned running_ = 0;
  Gate over_;  // one of them is
  CancelToken stopping_;
  bool stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace nfsrdma::nfs4
