// SPDX-License-Identifier: Apache-2.0
// AdaptiveSpin: how long a loop polls before it blocks. Polling pays while the next event comes
// sooner than a wake-up would; it is a waste when nothing comes. So the time grows while events
// come within the limit, and falls to nothing with the first that did not. Pure.
#pragma once

#include <algorithm>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

class AdaptiveSpin {
 public:
  /// Polls at most that long; 0 (the default): never.
  void set_limit(Duration limit) {
    limit_ = limit;
    length_ = Duration::zero();
  }
  Duration limit() const { return limit_; }
  /// How long to poll now.
  Duration length() const { return length_; }
  /// There was nothing to do for `gap`, then an event came.
  void event_after(Duration gap) {
    if (gap > limit_) {
      length_ = Duration::zero();
    } else if (gap > length_ || length_ == Duration::zero()) {
      length_ = std::min(limit_, std::max(2 * gap, kLeast));
    }
  }

 private:
  static constexpr Duration kLeast = std::chrono::microseconds(2);
  Duration limit_{0};
  Duration length_{0};
};

}  // namespace nfsrdma
