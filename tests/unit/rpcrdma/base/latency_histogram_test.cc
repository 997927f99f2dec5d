// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/latency_histogram.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(LatencyHistogram, EachValueLiesBelowTheEndOfItsBucketAndNotBelowThatOfTheOneBefore) {
  for (std::uint64_t ns = 1; ns < std::uint64_t{1} << 36; ns += 1 + ns / 7) {
    const std::size_t i = LatencyBuckets::index(ns);
    ASSERT_LT(i, LatencyBuckets::kCount);
    if (i + 1 < LatencyBuckets::kCount) {
      EXPECT_LT(ns, LatencyBuckets::end(i));
    }
    if (i > 0) {
      EXPECT_GE(ns, LatencyBuckets::end(i - 1));
    }
  }
}

TEST(LatencyHistogram, EndsAscendByAQuarterAtMost) {
  for (std::size_t i = 1; i + 1 < LatencyBuckets::kCount; ++i) {
    EXPECT_GT(LatencyBuckets::end(i), LatencyBuckets::end(i - 1));
    EXPECT_LE(LatencyBuckets::end(i) * 4, LatencyBuckets::end(i - 1) * 5) << i;
  }
  EXPECT_EQ(LatencyBuckets::end(0), 1024u);
  EXPECT_EQ(LatencyBuckets::end(LatencyBuckets::kCount - 1), 0u);
}

TEST(LatencyHistogram, PowersOfTwoEndABucketEach) {
  // What Prometheus is told of stands at every fourth bucket.
  for (std::size_t i = 0; i + 1 < LatencyBuckets::kCount; i += 4) {
    EXPECT_EQ(LatencyBuckets::end(i), std::uint64_t{1024} << (i / 4)) << i;
  }
}

TEST(LatencyHistogram, SumsUpAnotherOne) {
  LatencyHistogram<std::uint32_t> small;
  small.add(1500);
  small.add(3'000'000'000);
  LatencyHistogram<std::uint64_t> sum;
  sum.add(1500);
  sum += small;
  EXPECT_EQ(sum.count(), 3u);
  EXPECT_EQ(sum.sum_ns, 3'000'003'000u);
  EXPECT_EQ(sum.buckets[LatencyBuckets::index(1500)], 2u);
}

}  // namespace
}  // namespace nfsrdma
