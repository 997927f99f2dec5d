// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/slot_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace nfsrdma::nfs4 {
namespace {

using Verdict = SlotTable::Verdict;
using testing::ElementsAre;

constexpr std::array<std::byte, 3> kReply{std::byte{1}, std::byte{2}, std::byte{3}};

TEST(SlotTable, ARetryWhileTheOriginalStillRuns) {
  SlotTable table(1);
  EXPECT_EQ(table.begin(0, 1, 77), Verdict::kNew);
  EXPECT_EQ(table.begin(0, 1, 77), Verdict::kInProgress);
  EXPECT_EQ(table.begin(0, 1, 78), Verdict::kInProgress);
  EXPECT_EQ(table.begin(0, 2, 77), Verdict::kMisordered) << "its answer is not out yet";
  EXPECT_EQ(table.running(), 1u);
  table.finish(0, kReply);
  EXPECT_EQ(table.running(), 0u);
  EXPECT_EQ(table.begin(0, 1, 77), Verdict::kReplay);
  EXPECT_THAT(table.reply(0), ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}));
}

TEST(SlotTable, AFreshSlotTakesOnlyTheFirst) {
  for (const SequenceId sequence : {0u, 2u, UINT32_MAX})
    EXPECT_EQ(SlotTable(1).begin(0, sequence, 0), Verdict::kMisordered) << sequence;
  EXPECT_EQ(SlotTable(1).begin(0, 1, 0), Verdict::kNew);
}

TEST(SlotTable, SlotsThatAreNotThere) {
  SlotTable table(3);
  EXPECT_EQ(table.begin(2, 1, 0), Verdict::kNew);
  EXPECT_EQ(table.begin(3, 1, 0), Verdict::kBadSlot);
  EXPECT_EQ(table.begin(UINT32_MAX, 1, 0), Verdict::kBadSlot);
}

TEST(SlotTable, SlotsAreIndependent) {
  SlotTable table(2);
  EXPECT_EQ(table.begin(0, 1, 5), Verdict::kNew);
  EXPECT_EQ(table.begin(1, 1, 5), Verdict::kNew);
  table.finish_uncached(1);
  EXPECT_EQ(table.running(), 1u);
  EXPECT_EQ(table.begin(1, 2, 5), Verdict::kNew);
  EXPECT_EQ(table.begin(0, 1, 5), Verdict::kInProgress);
}

TEST(SlotTable, ReplyBytesAreThoseThatAreKept) {
  SlotTable table(2);
  for (const SlotId slot : {0u, 1u}) {
    EXPECT_EQ(table.begin(slot, 1, 0), Verdict::kNew);
    table.finish(slot, kReply);
  }
  EXPECT_EQ(table.reply_bytes(), 6u);
  EXPECT_EQ(table.begin(0, 2, 0), Verdict::kNew);
  EXPECT_EQ(table.reply_bytes(), 3u);
  table.finish_uncached(0);
  EXPECT_EQ(table.reply_bytes(), 3u);
}

// One slot at every point of its life, close to where ids wrap as well, and every request that may
// come then.

enum class Life { kFresh, kRunning, kCached, kUncached };

struct Row {
  int distance;                     // of the request's sequence id from the last one
  bool same;                        // the same request as the last one?
  std::array<Verdict, 4> verdicts;  // by Life
};

TEST(SlotTable, EveryRequestAtEveryPoint) {
  const Row rows[] = {
      {0, true, {Verdict::kMisordered, Verdict::kInProgress, Verdict::kReplay, Verdict::kUncached}},
      {-1,
       true,
       {Verdict::kMisordered, Verdict::kMisordered, Verdict::kMisordered, Verdict::kMisordered}},
      {0,
       false,
       {Verdict::kMisordered, Verdict::kInProgress, Verdict::kFalseRetry, Verdict::kFalseRetry}},
      {1, true, {Verdict::kNew, Verdict::kMisordered, Verdict::kNew, Verdict::kNew}},
      {1, false, {Verdict::kNew, Verdict::kMisordered, Verdict::kNew, Verdict::kNew}},
      {2,
       false,
       {Verdict::kMisordered, Verdict::kMisordered, Verdict::kMisordered, Verdict::kMisordered}},
  };
  for (const SequenceId before : {0u, UINT32_MAX - 2, UINT32_MAX - 1, UINT32_MAX}) {
    for (const Row& row : rows) {
      for (const Life life : {Life::kFresh, Life::kRunning, Life::kCached, Life::kUncached}) {
        SlotTable table(1, before);
        SequenceId last = before;
        if (life != Life::kFresh) {
          ASSERT_EQ(table.begin(0, ++last, 5), Verdict::kNew);
          table.finish(0, kReply);
          ASSERT_EQ(table.begin(0, ++last, 5), Verdict::kNew);
          if (life == Life::kCached) table.finish(0, kReply);
          if (life == Life::kUncached) table.finish_uncached(0);
        }
        const SequenceId sequence = last + static_cast<SequenceId>(row.distance);
        const Verdict want = row.verdicts[static_cast<std::size_t>(life)];
        EXPECT_EQ(table.begin(0, sequence, row.same ? 5 : 6), want)
            << "distance " << row.distance << " life " << static_cast<int>(life);
        // What is refused changes nothing.
        if (want != Verdict::kNew && life == Life::kCached) {
          EXPECT_EQ(table.begin(0, last, 5), Verdict::kReplay);
        }
      }
    }
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4
