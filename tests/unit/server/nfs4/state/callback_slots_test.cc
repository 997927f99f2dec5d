// SPDX-License-Identifier: Apache-2.0
// CallbackSlots against a client: SlotTable has its rules.
#include "server/nfs4/state/callback_slots.h"

#include <gtest/gtest.h>

namespace nfsrdma::nfs4 {
namespace {

using Next = CallbackSlots::Next;
using Refusal = CallbackSlots::Refusal;

TEST(CallbackSlots, TakesAsManyAsTheClientOffers) {
  CallbackSlots slots(3);
  for (SlotId i = 0; i < 3; ++i) {
    const auto ticket = slots.take();
    ASSERT_TRUE(ticket.has_value());
    EXPECT_EQ(ticket->slot, i);
    EXPECT_EQ(ticket->sequence, 1u);
    EXPECT_EQ(ticket->highest, i);
  }
  EXPECT_FALSE(slots.take().has_value());
  EXPECT_EQ(slots.in_use(), 3u);
}

TEST(CallbackSlots, AtLeastOneAndNotTooMany) {
  EXPECT_EQ(CallbackSlots(0).usable(), 1u);
  EXPECT_EQ(CallbackSlots(1'000'000).usable(), CallbackSlots::kMost);
}

TEST(CallbackSlots, TheLowestFreeSlotComesNext) {
  CallbackSlots slots(3);
  const auto first = slots.take(), second = slots.take();
  slots.succeeded(*first, 2);
  const auto third = slots.take();
  EXPECT_EQ(third->slot, 0u);
  EXPECT_EQ(third->sequence, 2u);
  EXPECT_EQ(third->highest, 1u);  // the second is still in use
  slots.succeeded(*second, 2);
  slots.succeeded(*third, 2);
  EXPECT_EQ(slots.in_use(), 0u);
}

TEST(CallbackSlots, TheClientsTargetIsKept) {
  CallbackSlots slots(4);
  slots.succeeded(*slots.take(), 1);
  EXPECT_EQ(slots.usable(), 2u);
  EXPECT_TRUE(slots.take().has_value());
  const auto second = slots.take();
  EXPECT_TRUE(second.has_value());
  EXPECT_FALSE(slots.take().has_value());
  slots.succeeded(*second, UINT32_MAX);
  EXPECT_EQ(slots.usable(), 4u);
}

TEST(CallbackSlots, DelayKeepsTheTicket) {
  CallbackSlots slots(1);
  auto ticket = slots.take();
  EXPECT_EQ(slots.refused(&*ticket, Refusal::kDelay), Next::kLater);
  EXPECT_EQ(ticket->sequence, 1u);
  EXPECT_FALSE(slots.take().has_value());
}

TEST(CallbackSlots, ASlotThatTheClientHasNotIsLeft) {
  CallbackSlots slots(4);
  const auto first = slots.take();
  auto second = slots.take();
  EXPECT_EQ(slots.refused(&*second, Refusal::kBadSlot), Next::kOtherSlot);
  EXPECT_FALSE(slots.take().has_value());
  slots.succeeded(*first, 0);
  auto again = slots.take();
  EXPECT_EQ(again->slot, 0u);
  EXPECT_EQ(slots.refused(&*again, Refusal::kBadSlot), Next::kLost);
  EXPECT_EQ(slots.in_use(), 0u);
}

TEST(CallbackSlots, OtherRefusalsAreFinal) {
  CallbackSlots slots(1);
  auto ticket = slots.take();
  EXPECT_EQ(slots.refused(&*ticket, Refusal::kOther), Next::kLost);
  EXPECT_EQ(slots.in_use(), 0u);
}

TEST(CallbackSlots, AClientThatBeganAnewIsFollowed) {
  CallbackSlots slots(1);
  for (int i = 0; i < 5; ++i)
    slots.succeeded(*slots.take(), 0);
  auto ticket = slots.take();
  EXPECT_EQ(ticket->sequence, 6u);
  EXPECT_EQ(slots.refused(&*ticket, Refusal::kMisordered), Next::kAgain);
  EXPECT_EQ(ticket->sequence, 1u);
  EXPECT_EQ(slots.refused(&*ticket, Refusal::kMisordered), Next::kLost);
}

/// How a callback goes.
enum class Way { kAnswered, kLostCall, kLostReply, kRetriedCall, kRetriedReply };
constexpr int kWays = 5;

/// One callback after the other, each its own way. False when a rule was broken.
void run(const std::vector<Way>& ways) {
  CallbackSlots slots(1);
  SlotTable client(1);
  std::uint64_t callback = 0;
  for (const Way way : ways) {
    ++callback;  // and its fingerprint
    auto ticket = slots.take();
    ASSERT_TRUE(ticket.has_value());
    // Until the client takes it or it is lost. Every refusal must lead on.
    int runs = 0;
    for (int attempt = 0;; ++attempt) {
      ASSERT_LE(attempt, static_cast<int>(ways.size()) + 2);
      const bool first = attempt == 0;
      if (first && way == Way::kLostCall) {
        slots.gave_up(*ticket);
        break;
      }
      if (first && way == Way::kRetriedCall) continue;  // lost, and sent again as it was
      const SlotTable::Verdict verdict = client.begin(0, ticket->sequence, callback);
      if (verdict == SlotTable::Verdict::kMisordered) {
        ASSERT_EQ(slots.refused(&*ticket, Refusal::kMisordered), Next::kAgain);
        continue;
      }
      if (verdict == SlotTable::Verdict::kNew) {
        ++runs;
        client.finish(0, {});
        if (way == Way::kLostReply) {
          slots.gave_up(*ticket);
          break;
        }
        if (way == Way::kRetriedReply && runs == 1) continue;
      } else {
        // Only our own retry may be taken for one.
        ASSERT_EQ(verdict, SlotTable::Verdict::kReplay);
        ASSERT_EQ(way, Way::kRetriedReply);
      }
      slots.succeeded(*ticket, 0);
      break;
    }
    ASSERT_EQ(runs, way == Way::kLostCall ? 0 : 1);
    ASSERT_EQ(slots.in_use(), 0u);
  }
}

TEST(CallbackSlots, EveryCallbackRunsOnceWhateverIsLost) {
  constexpr int kLength = 6;
  int all = 1;
  for (int i = 0; i < kLength; ++i)
    all *= kWays;
  for (int code = 0; code < all; ++code) {
    std::vector<Way> ways;
    for (int i = 0, rest = code; i < kLength; ++i, rest /= kWays)
      ways.push_back(static_cast<Way>(rest % kWays));
    run(ways);
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "case " << code;
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4
