// SPDX-License-Identifier: Apache-2.0
// Placement::kMeasured: where does a procedure run that usually takes microseconds and sometimes,
// on a slow disk or a network file system, milliseconds? A hand-over to a worker costs more than
// the usual case, so it runs inline while its average is short, moves to the workers when the
// average becomes long, and comes back when it is well below that (hysteresis).
#pragma once

#include <algorithm>
#include <cstdint>

namespace nfsrdma {

class MeasuredPlacement {
 public:
  static constexpr std::uint64_t kToWorkersNs = 300'000;
  static constexpr std::uint64_t kBackInlineNs = 100'000;
  /// One outlier counts for at most this, so that a single stall does not move everything.
  static constexpr std::uint64_t kOutlierNs = 2'000'000;

  bool on_workers() const { return on_workers_; }
  std::uint64_t average_ns() const { return average_ns_; }
  void add(std::uint64_t elapsed_ns) {
    elapsed_ns = std::min(elapsed_ns, kOutlierNs);
    average_ns_ = (average_ns_ * 15 + elapsed_ns) / 16;
    if (average_ns_ > kToWorkersNs) on_workers_ = true;
    if (average_ns_ < kBackInlineNs) on_workers_ = false;
  }

 private:
  std::uint64_t average_ns_ = 0;
  bool on_workers_ = false;
};

}  // namespace nfsrdma
