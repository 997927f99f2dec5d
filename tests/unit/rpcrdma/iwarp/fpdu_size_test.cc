// SPDX-License-Identifier: Apache-2.0
// How large FPDUs are, for every segment size that TCP can have and every kind of peer.
#include "rpcrdma/iwarp/fpdu_size.h"

#include <gtest/gtest.h>

namespace nfsrdma::iwarp {
namespace {

constexpr std::uint32_t kTaggedExtra = kTaggedHeader + kMpaCrcSize;
constexpr std::uint32_t kUntaggedExtra = kUntaggedHeader + kMpaCrcSize;

TEST(FpduSizes, SiwWithoutCrcGetsWholeSegmentsUpTo64KiB) {
  const FpduSizes sizes = fpdu_sizes(1448, false, false, IwarpOptions::kAuto);
  EXPECT_EQ(sizes.tagged_payload, 45u * 1448 - kTaggedExtra);
  EXPECT_EQ(sizes.untagged_payload, 1448u - kUntaggedExtra);
}

TEST(FpduSizes, WithCrcEveryFpduFitsASegment) {
  const FpduSizes sizes = fpdu_sizes(1448, false, true, IwarpOptions::kAuto);
  EXPECT_EQ(sizes.tagged_payload, 1428u);
  EXPECT_EQ(sizes.untagged_payload, 1424u);
}

TEST(FpduSizes, OfEverySegmentSizeFitWhatSiwAndTheLengthFieldAllow) {
  for (std::uint32_t segment = 256; segment <= 65535; ++segment) {
    for (bool crc : {false, true}) {
      const FpduSizes sizes = fpdu_sizes(segment, false, crc, IwarpOptions::kAuto);
      const std::uint32_t tagged = sizes.tagged_payload + kTaggedExtra;
      const std::uint32_t untagged = sizes.untagged_payload + kUntaggedExtra;
      // A length that is no multiple of four would need padding inside a message.
      ASSERT_EQ(tagged % 8, 0u) << segment;
      ASSERT_EQ(untagged % 8, 0u) << segment;
      ASSERT_LE(untagged, segment);
      ASSERT_LE(tagged, crc ? segment : 65535u) << segment;
      ASSERT_GT(tagged, crc ? segment - 8 : 65535 / segment * segment - 8) << segment;
    }
  }
}

TEST(FpduSizes, OwnPeersGetTheLargest) {
  const FpduSizes sizes = fpdu_sizes(1448, true, true, IwarpOptions::kAuto);
  EXPECT_EQ(sizes.tagged_payload, kMaxTaggedPayload);
  EXPECT_EQ(sizes.untagged_payload, kMaxUntaggedPayload);
}

TEST(FpduSizes, OneSegmentCanBeAskedFor) {
  for (bool own_peer : {false, true}) {
    const FpduSizes sizes = fpdu_sizes(1448, own_peer, false, IwarpOptions::kMss);
    EXPECT_EQ(sizes.tagged_payload, 1428u);
    EXPECT_EQ(sizes.untagged_payload, 1424u);
  }
}

TEST(FpduSizes, ALimitIsALimit) {
  const FpduSizes sizes = fpdu_sizes(9000, false, false, 4000);
  EXPECT_EQ(sizes.tagged_payload, 4000u - kTaggedExtra);
  EXPECT_EQ(sizes.untagged_payload, 4000u - kUntaggedExtra);
}

}  // namespace
}  // namespace nfsrdma::iwarp
