// SPDX-License-Identifier: Apache-2.0
// Occasion: something that comes about once, for coroutines that wait for it. On one thread.
#pragma once

#include "client/gate.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

class Occasion {
 public:
  bool over() const { return over_; }
  void come() {
    over_ = true;
    gate_.wake_all();
  }
  /// False: cancelled (`cancel` may be null). This outlives the Task.
  Task<bool> wait(CancelToken* cancel) {
    bool open = true;
    while (open && !over_)
      open = co_await gate_.wait(cancel);
    co_return over_;
  }

 private:
  bool over_ = false;
  Gate gate_;
};

}  // namespace nfsrdma
