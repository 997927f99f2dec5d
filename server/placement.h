// SPDX-License-Identifier: Apache-2.0
// Placement::kMeasured: where does a procedure run that usually takes microseconds and sometimes,
// on a slow disk or a network file system, milliseconds? A hand-over to a worker costs more than
// the usual case, so it runs inline while its average is short, moves to the workers when the
// average becomes long, and comes back when it is well below that (hysteresis).
//
// What is short depends on the machine, and on the moment: where everything takes ten times as long
// (an emulated processor, or one with more to do than it can), so does the hand-over, and a call of
// 400 us is no reason for two wake-ups of 500. Hence the workers tell how long they took to start
// lately, and the limits grow with that.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nfsrdma {

class MeasuredPlacement {
 public:
  static constexpr std::uint64_t kToWorkersNs = 300'000;
  static constexpr std::uint64_t kBackInlineNs = 100'000;
  /// One outlier counts for at most this, so that a single stall does not move everything.
  static constexpr std::uint64_t kOutlierNs = 2'000'000;
  /// These limits are for workers that start within this.
  static constexpr std::uint64_t kHandOverNs = 40'000;
  /// None is taken for slower than this, whatever was measured.
  static constexpr std::uint64_t kMaxHandOverNs = 800'000;

  /// How long a worker takes to start, for all procedures of this process (WorkerPool).
  static std::atomic<std::uint64_t>& hand_over_ns() { return hand_over_ns_; }

  bool on_workers() const { return on_workers_; }
  std::uint64_t average_ns() const { return average_ns_; }
  void add(std::uint64_t elapsed_ns) {
    const std::uint64_t measured = hand_over_ns_.load(std::memory_order_relaxed);
    // Forgotten after some hundred calls: when no worker is asked, nobody measures it again.
    if (measured > kHandOverNs) {
      hand_over_ns_.store(measured - measured / 256, std::memory_order_relaxed);
    }
    const std::uint64_t hand_over = std::clamp(measured, kHandOverNs, kMaxHandOverNs);
    const auto scaled = [hand_over](std::uint64_t ns) { return ns * hand_over / kHandOverNs; };
    elapsed_ns = std::min(elapsed_ns, scaled(kOutlierNs));
    average_ns_ = (average_ns_ * 15 + elapsed_ns) / 16;
    if (average_ns_ > scaled(kToWorkersNs)) on_workers_ = true;
    if (average_ns_ < scaled(kBackInlineNs)) on_workers_ = false;
  }

 private:
  inline static std::atomic<std::uint64_t> hand_over_ns_{kHandOverNs};

  std::uint64_t average_ns_ = 0;
  bool on_workers_ = false;
};

}  // namespace nfsrdma
