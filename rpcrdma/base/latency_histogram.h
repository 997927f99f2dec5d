// SPDX-License-Identifier: Apache-2.0
// LatencyHistogram: how long things took, in buckets of a quarter of a power of two from 1 us to
// 17 s: percentiles are exact to a fifth, in less than a kilobyte. One writer and reader, on one
// thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nfsrdma {

/// Where the buckets lie.
struct LatencyBuckets {
  static constexpr unsigned kFirst = 10;  // what is below 2^10 ns is in bucket 0
  static constexpr unsigned kLast = 34;   // what is 2^34 ns or more is in the last one
  static constexpr std::size_t kCount = (kLast - kFirst) * 4 + 2;

  static constexpr std::size_t index(std::uint64_t ns) {
    if (ns >> kFirst == 0) return 0;
    if (ns >> kLast != 0) return kCount - 1;
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
    const auto quarter = static_cast<std::size_t>(ns >> (power - 2) & 3);
    return (power - kFirst) * 4 + quarter + 1;
  }
  /// The least value above bucket `i`, in ns. The last bucket has none; 0 then.
  static constexpr std::uint64_t end(std::size_t i) {
    if (i + 1 == kCount) return 0;
    const std::uint64_t quarters = 4 + i % 4;
    return quarters << (kFirst - 2 + i / 4);
  }
};

template <typename Count>
struct LatencyHistogram {
  std::array<Count, LatencyBuckets::kCount> buckets{};
  std::uint64_t sum_ns = 0;

  void add(std::uint64_t ns) {
    ++buckets[LatencyBuckets::index(ns)];
    sum_ns += ns;
  }
  std::uint64_t count() const {
    std::uint64_t total = 0;
    for (Count n : buckets)
      total += n;
    return total;
  }
  template <typename Other>
  LatencyHistogram& operator+=(const LatencyHistogram<Other>& other) {
    for (std::size_t i = 0; i < buckets.size(); ++i)
      buckets[i] += other.buckets[i];
    sum_ns += other.sum_ns;
    return *this;
  }
};

}  // namespace nfsrdma
