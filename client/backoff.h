// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next round of connection attempts: not at all for the first (a server
// that restarts, a connection that was idle), then twice as long each time.
#pragma once

#include <algorithm>
#include <chrono>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

class Backoff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(50);
  static constexpr Duration kLongest = std::chrono::seconds(5);

  /// The wait before the next attempt.
  Duration next() {
    Duration wait = delay_;
    delay_ = delay_ == Duration::zero() ? kFirst : std::min(2 * delay_, kLongest);
    ++attempts_;
    return wait;
  }
  unsigned attempts() const { return attempts_; }
  /// The server answered a call.
  void reset() {
    delay_ = Duration::zero();
    attempts_ = 0;
  }

 private:
  Duration delay_{0};
  unsigned attempts_ = 0;
};

}  // namespace nfsrdma
