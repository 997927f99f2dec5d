// SPDX-License-Identifier: Apache-2.0
// Latencies in nanoseconds, in buckets that are 1/64 of their value wide: percentiles exact to 1.6
// %.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace nfsrdma::tool {

class Histogram {
 public:
  void add(std::uint64_t nanoseconds) {
    ++counts_[bucket(nanoseconds)];
    ++total_;
    sum_ += nanoseconds;
    if (nanoseconds < least_) least_ = nanoseconds;
    if (nanoseconds > most_) most_ = nanoseconds;
  }
  std::uint64_t count() const { return total_; }
  double mean() const {
    return total_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(total_);
  }
  std::uint64_t least() const { return total_ == 0 ? 0 : least_; }
  std::uint64_t most() const { return most_; }
  /// The value that `share` (0..1) of all are not above.
  std::uint64_t percentile(double share) const {
    auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    if (wanted >= total_) return most_;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return value(i);
    }
    return most_;
  }

 private:
  static constexpr unsigned kBits = 6;  // 64 buckets per power of two
  static constexpr std::size_t kBuckets = (64 - kBits + 1) << kBits;

  static std::size_t bucket(std::uint64_t v) {
    if (v < (1u << kBits)) return v;
    const unsigned shift = static_cast<unsigned>(std::bit_width(v)) - kBits - 1;
    return ((shift + 1) << kBits) + ((v >> shift) & ((1u << kBits) - 1));
  }
  static std::uint64_t value(std::size_t i) {
    if (i < (1u << kBits)) return i;
    const unsigned shift = static_cast<unsigned>(i >> kBits) - 1;
    return ((std::uint64_t{1} << kBits) + (i & ((1u << kBits) - 1))) << shift;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t least_ = UINT64_MAX;
  std::uint64_t most_ = 0;
};

}  // namespace nfsrdma::tool
