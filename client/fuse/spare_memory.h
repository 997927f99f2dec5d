// SPDX-License-Identifier: Apache-2.0
// SpareMemory: gives memory back to the system that a burst of work has left unused.
//
// What a mount frees stays with the C library, which uses it again without page faults: a gigabyte
// of written data, or the records of a million files, would be the daemon's for as long as it runs.
// While the work goes on that is right; when it is over the memory is somebody else's.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace nfsrdma {

class SpareMemory {
 public:
  /// Less is not worth the page faults of the next burst.
  static constexpr std::uint64_t kWorthIt = std::uint64_t{64} << 20;

  /// `give_back` returns all that is free; it may take a tenth of a second for a gigabyte.
  explicit SpareMemory(std::function<void()> give_back = [] { ::malloc_trim(0); })
      : give_back_(std::move(give_back)) {}

  /// To be told every few seconds: the most bytes in use since the last time. Memory goes back when
  /// two such times in a row less than half of it was needed.
  void observe(std::uint64_t in_use) {
    most_ = std::max(most_, in_use);
    const std::uint64_t needed = std::max(in_use, std::exchange(before_, in_use));
    const std::uint64_t spare = most_ - needed;
    if (spare < needed || spare < kWorthIt) return;
    give_back_();
    most_ = needed;
  }

 private:
  std::function<void()> give_back_;
  std::uint64_t most_ = 0;  // since memory was given back
  std::uint64_t before_ = 0;
};

}  // namespace nfsrdma
