// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace nfsrdma {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

/// Where code above the event loop gets its time from, so that the simulator can own it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace nfsrdma
