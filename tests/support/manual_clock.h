// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpcrdma/base/clock.h"

namespace nfsrdma::test {

/// Time that passes when a test says so: nothing that waits can be in a test's way unseen.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_ = std::chrono::steady_clock::now();
};

}  // namespace nfsrdma::test
