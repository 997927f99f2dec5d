// SPDX-License-Identifier: Apache-2.0
// LoopOwner: a fixture's event loop, turned until something is so. A base of the fixture, so that
// the loop outlives what stands on it.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma::test {

class LoopOwner {
 protected:
  /// `turns`: of a millisecond at most each, before turn_until() gives up.
  explicit LoopOwner(int turns = 5000) : turns_(turns) {}
  ~LoopOwner() = default;

  template <typename Condition>
  bool turn_until(Condition condition) {
    for (int i = 0; i < turns_; ++i) {
      if (condition()) return true;
      loop_->turn(std::chrono::milliseconds(1));
    }
    return condition();
  }

  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();

 private:
  const int turns_;
};

}  // namespace nfsrdma::test
