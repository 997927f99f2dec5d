// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/stateid_rules.h"

#include <gtest/gtest.h>

namespace nfsrdma::nfs4 {
namespace {

Stateid stateid(std::uint32_t seqid, std::byte fill) {
  Stateid out{seqid, {}};
  out.other.fill(fill);
  return out;
}

TEST(StateidRules, SpecialOnes) {
  struct Row {
    Stateid stateid;
    StateidKind in_4_0, later;
  };
  const std::byte zero{0}, ones{0xff};
  const Row rows[] = {
      {stateid(0, zero), StateidKind::kAnonymous, StateidKind::kAnonymous},
      {stateid(1, zero), StateidKind::kInvalid, StateidKind::kCurrent},
      {stateid(2, zero), StateidKind::kInvalid, StateidKind::kInvalid},
      {stateid(UINT32_MAX, zero), StateidKind::kInvalid, StateidKind::kInvalid},
      {stateid(UINT32_MAX, ones), StateidKind::kReadBypass, StateidKind::kReadBypass},
      {stateid(0, ones), StateidKind::kInvalid, StateidKind::kInvalid},
      {stateid(1, ones), StateidKind::kInvalid, StateidKind::kInvalid},
      {stateid(0, std::byte{7}), StateidKind::kOrdinary, StateidKind::kOrdinary},
      {stateid(UINT32_MAX, std::byte{7}), StateidKind::kOrdinary, StateidKind::kOrdinary},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(kind_of(row.stateid, 0), row.in_4_0) << row.stateid.seqid;
    EXPECT_EQ(kind_of(row.stateid, 1), row.later) << row.stateid.seqid;
    EXPECT_EQ(kind_of(row.stateid, 2), row.later) << row.stateid.seqid;
  }
  // One byte that is different makes an ordinary one.
  for (std::size_t i = 0; i < 12; ++i) {
    Stateid almost = stateid(0, zero);
    almost.other[i] = std::byte{1};
    EXPECT_EQ(kind_of(almost, 1), StateidKind::kOrdinary);
  }
}

TEST(StateidRules, SequenceNumbers) {
  using enum SeqidVerdict;
  EXPECT_EQ(judge_seqid(5, 5, 1), kCurrent);
  EXPECT_EQ(judge_seqid(4, 5, 1), kOld);
  EXPECT_EQ(judge_seqid(6, 5, 1), kFuture);
  EXPECT_EQ(judge_seqid(0, 5, 1), kCurrent);
  EXPECT_EQ(judge_seqid(0, 5, 0), kOld);
  // Where they wrap.
  EXPECT_EQ(next_seqid(UINT32_MAX - 1), UINT32_MAX);
  EXPECT_EQ(next_seqid(UINT32_MAX), 1u);
  EXPECT_EQ(judge_seqid(UINT32_MAX, 1, 0), kOld);
  EXPECT_EQ(judge_seqid(1, UINT32_MAX, 0), kFuture);
}

}  // namespace
}  // namespace nfsrdma::nfs4
