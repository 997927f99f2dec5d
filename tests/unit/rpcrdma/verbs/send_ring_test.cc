// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/send_ring.h"

#include <gtest/gtest.h>

#include "rpcrdma/verbs/work_id.h"

namespace nfsrdma::verbs {
namespace {

SendRing::Entry entry(std::uint64_t wr_id, bool signaled = true) {
  return {wr_id, WorkOpcode::kWrite, signaled};
}

TEST(SendRing, RoomShrinksWithEachEntry) {
  SendRing ring(3);
  EXPECT_EQ(ring.room(), 3U);
  ring.push(entry(1));
  ring.push(entry(2));
  EXPECT_EQ(ring.room(), 1U);
  EXPECT_EQ(ring.outstanding(), 2U);
}

TEST(SendRing, RetiringOneRetiresAllBeforeIt) {
  SendRing ring(4);
  ring.push(entry(10, false));
  ring.push(entry(11, false));
  ring.push(entry(12));
  ring.push(entry(13));
  EXPECT_EQ(ring.retire(2).wr_id, 12U);
  EXPECT_EQ(ring.outstanding(), 1U);
  EXPECT_EQ(ring.pop().wr_id, 13U);
}

TEST(SendRing, LateAndRepeatedCompletionsAreNotContained) {
  SendRing ring(4);
  ring.push(entry(1));
  ring.push(entry(2));
  ring.retire(0);
  EXPECT_FALSE(ring.contains(0));
  EXPECT_TRUE(ring.contains(1));
  EXPECT_FALSE(ring.contains(2));
}

TEST(SendRing, TakesBackWhatTheAdapterRefused) {
  SendRing ring(4);
  ring.push(entry(1));
  ring.push(entry(2));
  ring.push(entry(3));
  ring.unpush(2);
  EXPECT_EQ(ring.next(), 1U);
  EXPECT_EQ(ring.outstanding(), 1U);
}

TEST(SendRing, DepthNeedNotBeAPowerOfTwo) {
  SendRing ring(5);
  for (std::uint32_t round = 0; round < 100; ++round) {
    for (std::uint32_t i = 0; i < 5; ++i)
      ring.push(entry(round * 5 + i));
    EXPECT_EQ(ring.room(), 0U);
    EXPECT_EQ(ring.retire(round * 5 + 3).wr_id, round * 5 + 3);
    EXPECT_EQ(ring.pop().wr_id, round * 5 + 4);
  }
}

TEST(SendRing, KnowsWhetherItsEndIsSignaled) {
  SendRing ring(4);
  EXPECT_TRUE(ring.newest_is_signaled());
  ring.push(entry(1));
  ring.push(entry(2, false));
  EXPECT_FALSE(ring.newest_is_signaled());
}

TEST(WorkId, SurvivesTheAdapter) {
  const WorkId id = WorkId::decode(WorkId{WorkKind::kReceive, 0xabcdef, 0x80000001}.encode());
  EXPECT_EQ(id.kind, WorkKind::kReceive);
  EXPECT_EQ(id.owner, 0xabcdefU);
  EXPECT_EQ(id.slot, 0x80000001U);
}

TEST(WorkId, KeepsTheOwnerInItsBits) {
  const WorkId id = WorkId::decode(WorkId{WorkKind::kSendQueue, 0x7fffffff, 5}.encode());
  EXPECT_EQ(id.kind, WorkKind::kSendQueue);
  EXPECT_EQ(id.owner, WorkId::kOwnerMask);
}

}  // namespace
}  // namespace nfsrdma::verbs
