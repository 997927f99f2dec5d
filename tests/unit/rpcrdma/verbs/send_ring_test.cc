// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/send_ring.h"

#include <gtest/gtest.h>

#include <string>

#include "rpcrdma/verbs/work_id.h"

namespace nfsrdma::verbs {
namespace {

void push(SendRing& ring, std::uint64_t wr_id, bool signaled = true,
          WorkOpcode opcode = WorkOpcode::kWrite) {
  ring.push(wr_id, opcode, signaled);
}

/// The wr_ids that have ended, in order; those that are not reported in parentheses.
std::string ended(SendRing& ring) {
  std::string text;
  SendRing::Entry entry;
  while (ring.pop_ended(&entry)) {
    const std::string id = std::to_string(entry.wr_id);
    text += (text.empty() ? "" : " ") + (entry.reported() ? id : "(" + id + ")");
  }
  return text;
}

TEST(SendRing, RoomShrinksWithEachEntry) {
  SendRing ring(3);
  EXPECT_EQ(ring.room(), 3U);
  push(ring, 1);
  push(ring, 2);
  EXPECT_EQ(ring.room(), 1U);
  EXPECT_EQ(ring.outstanding(), 2U);
}

TEST(SendRing, ReportRetiresTheUnsignalledBeforeIt) {
  SendRing ring(4);
  push(ring, 10, false);
  push(ring, 11, false);
  push(ring, 12);
  push(ring, 13);
  EXPECT_TRUE(ring.complete(2, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "(10) (11) 12");
  EXPECT_EQ(ring.outstanding(), 1U);
}

TEST(SendRing, UnsignalledAloneStays) {
  SendRing ring(4);
  push(ring, 10, false);
  push(ring, 11);
  EXPECT_EQ(ended(ring), "");
}

TEST(SendRing, SendWaitsForTheReadInFrontOfIt) {
  SendRing ring(4);
  push(ring, 1, true, WorkOpcode::kRead);
  push(ring, 2);
  EXPECT_TRUE(ring.complete(1, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "");
  EXPECT_TRUE(ring.complete(0, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "1 2");
}

TEST(SendRing, UnsignalledReadIsWaitedForAndNotReported) {
  SendRing ring(4);
  push(ring, 1, false, WorkOpcode::kRead);
  push(ring, 2);
  EXPECT_TRUE(ring.complete(1, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "");
  EXPECT_TRUE(ring.complete(0, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "(1) 2");
}

TEST(SendRing, UnsignalledBehindAReadWaitsForAReportBehindItself) {
  SendRing ring(4);
  push(ring, 1, true, WorkOpcode::kRead);
  push(ring, 2, false);
  push(ring, 3);
  EXPECT_TRUE(ring.complete(0, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "1");
  EXPECT_TRUE(ring.complete(2, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "(2) 3");
}

TEST(SendRing, UnsignalledThatFailsIsReported) {
  SendRing ring(4);
  push(ring, 1, false);
  push(ring, 2, false);
  EXPECT_TRUE(ring.complete(0, WorkStatus::kFailed));
  EXPECT_TRUE(ring.complete(1, WorkStatus::kFlushed));
  EXPECT_EQ(ended(ring), "1 2");
}

TEST(SendRing, NobodyHearsOfInternalWorkWhateverBecomesOfIt) {
  for (WorkStatus status : {WorkStatus::kSuccess, WorkStatus::kFlushed}) {
    SendRing ring(4);
    ring.push_internal(WorkOpcode::kRead);
    push(ring, 1);
    EXPECT_TRUE(ring.complete(1, WorkStatus::kSuccess));
    EXPECT_EQ(ended(ring), "") << "it is waited for";
    EXPECT_TRUE(ring.complete(0, status));
    EXPECT_EQ(ended(ring), "(0) 1");
  }
}

TEST(SendRing, LateAndRepeatedReportsChangeNothing) {
  SendRing ring(4);
  push(ring, 1);
  push(ring, 2);
  EXPECT_TRUE(ring.complete(0, WorkStatus::kSuccess));
  EXPECT_FALSE(ring.complete(0, WorkStatus::kSuccess)) << "repeated";
  EXPECT_EQ(ended(ring), "1");
  EXPECT_FALSE(ring.complete(0, WorkStatus::kSuccess)) << "late";
  EXPECT_FALSE(ring.complete(2, WorkStatus::kSuccess)) << "never posted";
  EXPECT_EQ(ring.outstanding(), 1U);
}

TEST(SendRing, TakesBackWhatTheAdapterRefused) {
  SendRing ring(4);
  push(ring, 1);
  push(ring, 2);
  push(ring, 3);
  ring.unpush(2);
  EXPECT_EQ(ring.next(), 1U);
  EXPECT_EQ(ring.outstanding(), 1U);
}

TEST(SendRing, DepthNeedNotBeAPowerOfTwo) {
  SendRing ring(5);
  for (std::uint32_t round = 0; round < 100; ++round) {
    const std::uint32_t first = round * 5;
    for (std::uint32_t i = 0; i < 5; ++i)
      push(ring, first + i, i == 4);
    EXPECT_EQ(ring.room(), 0U);
    EXPECT_TRUE(ring.complete(first + 4, WorkStatus::kSuccess));
    SendRing::Entry entry;
    std::uint32_t count = 0;
    while (ring.pop_ended(&entry))
      EXPECT_EQ(entry.wr_id, first + count++);
    EXPECT_EQ(count, 5U);
  }
}

TEST(SendRing, KnowsWhetherItsEndIsSignaled) {
  SendRing ring(4);
  EXPECT_TRUE(ring.newest_is_signaled());
  push(ring, 1);
  push(ring, 2, false);
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

TEST(SendRing, BindsHavePlacesOfTheirOwn) {
  SendRing ring(2, 3);
  EXPECT_EQ(ring.places(), 5U);
  ring.push_bind();
  ring.push_bind();
  push(ring, 1);
  EXPECT_EQ(ring.room(), 1U);
  EXPECT_EQ(ring.bind_room(), 1U);
  ring.push_bind();
  push(ring, 2);
  EXPECT_EQ(ring.room(), 0U);
  EXPECT_EQ(ring.bind_room(), 0U);
  EXPECT_TRUE(ring.complete(2, WorkStatus::kSuccess));
  EXPECT_EQ(ended(ring), "(0) (0) 1");
  EXPECT_EQ(ring.room(), 1U);
  EXPECT_EQ(ring.bind_room(), 2U);
  EXPECT_TRUE(ring.is_outstanding(3));
  EXPECT_FALSE(ring.is_outstanding(1));
}

TEST(SendRing, RefusedBindsGiveTheirPlacesBack) {
  SendRing ring(2, 2);
  ring.push_bind();
  ring.push_bind();
  push(ring, 1);
  ring.unpush(2);
  EXPECT_EQ(ring.bind_room(), 1U);
  EXPECT_EQ(ring.room(), 2U);
  EXPECT_EQ(ring.pop().bind, true);
  EXPECT_EQ(ring.bind_room(), 2U);
}

TEST(SendRing, ABindThatFailsIsNotReported) {
  SendRing ring(2, 2);
  ring.push_bind();
  push(ring, 7);
  EXPECT_TRUE(ring.complete(0, WorkStatus::kFailed));
  EXPECT_TRUE(ring.complete(1, WorkStatus::kFlushed));
  EXPECT_EQ(ended(ring), "(0) 7");
}

}  // namespace
}  // namespace nfsrdma::verbs
