// SPDX-License-Identifier: Apache-2.0
// BackwardCalls without a connection: credits, who waits, deadlines, and callers that do things
// while they are told.
#include "rpcrdma/backward_calls.h"

#include <gtest/gtest.h>

#include <memory>

#include "rpcrdma/sim/sim_network.h"
#include "tests/support/backward_probe.h"

namespace nfsrdma::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Flow = BackwardCalls::Flow;

class CallsBackward : public ::testing::Test, public BackwardLink {
 protected:
  static constexpr std::uint32_t kFirst = 0x70000;

  CallsBackward() { loop_->set_clock(&network_); }
  ~CallsBackward() override {
    if (calls_ != nullptr) calls_->close();
  }
  void make(Flow flow, std::uint32_t most = 4) {
    calls_ = std::make_unique<BackwardCalls>(*loop_, *this, kFirst, flow, most);
  }
  void submit(BackwardProbe& probe) { ASSERT_TRUE(calls_->submit(probe).ok()); }
  void wait(Duration time) { network_.advance(*loop_, time); }
  bool answer(std::uint32_t xid) { return calls_->on_reply(reply_to(xid)); }

  bool transmit(std::uint32_t xid, ByteSpan) override {
    if (!room_) return false;
    if (during_transmit_) during_transmit_();
    sent_.push_back(xid);
    return true;
  }
  void on_answered() override { ++answered_; }

  SimNetwork network_{1};
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::unique_ptr<BackwardCalls> calls_;
  std::vector<std::uint32_t> sent_;
  std::function<void()> during_transmit_;
  int answered_ = 0;
  bool room_ = true;
};

TEST_F(CallsBackward, TheFirstReplyAllowsMore) {
  make(Flow::kCredits);
  BackwardProbe probes[6];
  for (BackwardProbe& probe : probes)
    submit(probe);
  EXPECT_EQ(sent_.size(), 1u);
  calls_->on_grant(3);
  EXPECT_TRUE(answer(kFirst));
  EXPECT_EQ(probes[0].completions, 1);
  EXPECT_TRUE(probes[0].ok);
  EXPECT_EQ(probes[0].answer, reply_to(kFirst));
  EXPECT_EQ(sent_, (std::vector<std::uint32_t>{kFirst, kFirst + 1, kFirst + 2, kFirst + 3}));
}

TEST_F(CallsBackward, AGrantIsCappedAndNeverNothing) {
  make(Flow::kCredits, 4);
  BackwardProbe probes[8];
  for (BackwardProbe& probe : probes)
    submit(probe);
  calls_->on_grant(1000);
  EXPECT_TRUE(answer(kFirst));
  EXPECT_EQ(sent_.size(), 5u);  // four outstanding
  calls_->on_grant(0);          // counts as one
  for (std::uint32_t i = 1; i <= 3; ++i)
    EXPECT_TRUE(answer(kFirst + i));
  EXPECT_EQ(sent_.size(), 5u);  // one is still out
  EXPECT_TRUE(answer(kFirst + 4));
  EXPECT_EQ(sent_.size(), 6u);
  EXPECT_EQ(answered_, 5);
}

TEST_F(CallsBackward, RepliesComeInAnyOrderAndOnce) {
  make(Flow::kFree);
  BackwardProbe first, second;
  submit(first);
  submit(second);
  EXPECT_TRUE(answer(kFirst + 1));
  EXPECT_TRUE(second.ok);
  EXPECT_EQ(first.completions, 0);
  EXPECT_FALSE(answer(kFirst + 1));
  EXPECT_TRUE(answer(kFirst));
  EXPECT_EQ(first.completions, 1);
  EXPECT_EQ(second.completions, 1);
}

TEST_F(CallsBackward, WhatIsNoReplyOfOursIsLeftAlone) {
  make(Flow::kCredits);
  BackwardProbe probe;
  submit(probe);
  auto call = reply_to(kFirst);
  store_be32(call.data() + 4, 0);
  EXPECT_FALSE(calls_->on_reply(call));
  store_be32(call.data() + 4, 7);
  EXPECT_FALSE(calls_->on_reply(call));
  EXPECT_FALSE(calls_->on_reply(ByteSpan(reply_to(kFirst)).first(7)));
  EXPECT_FALSE(calls_->on_reply({}));
  EXPECT_FALSE(answer(kFirst + 1));
  EXPECT_FALSE(calls_->on_refused(kFirst - 1));
  EXPECT_EQ(probe.completions, 0);
  EXPECT_TRUE(answer(kFirst));
  EXPECT_TRUE(probe.ok);
}

TEST_F(CallsBackward, NoReplyInTime) {
  make(Flow::kFree);
  BackwardProbe early, late;
  early.timeout = seconds(2);
  late.timeout = seconds(5);
  submit(late);
  submit(early);
  wait(milliseconds(1999));
  EXPECT_EQ(early.completions, 0);
  wait(milliseconds(1));
  EXPECT_EQ(early.how(), Errc::kTimedOut);
  EXPECT_EQ(late.completions, 0);
  wait(seconds(3));
  EXPECT_EQ(late.how(), Errc::kTimedOut);
  EXPECT_FALSE(answer(kFirst));  // too late
  EXPECT_EQ(late.completions, 1);
}

TEST_F(CallsBackward, ACallGivenUpKeepsItsCreditUntilItsReply) {
  make(Flow::kCredits);
  BackwardProbe lost, waiting, next;
  lost.timeout = seconds(1);
  waiting.timeout = seconds(2);
  submit(lost);
  submit(waiting);
  wait(seconds(1));
  EXPECT_EQ(lost.how(), Errc::kTimedOut);
  EXPECT_EQ(sent_.size(), 1u);
  wait(seconds(1));
  EXPECT_EQ(waiting.how(), Errc::kExhausted);  // it was never sent
  submit(next);
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(answer(kFirst));  // the client is back
  EXPECT_EQ(lost.completions, 1);
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(answer(kFirst + 1));
  EXPECT_TRUE(next.ok);
}

TEST_F(CallsBackward, WithoutCreditsALostReplyBlocksNothing) {
  make(Flow::kFree, 1);
  BackwardProbe lost, next;
  lost.timeout = seconds(1);
  submit(lost);
  submit(next);
  EXPECT_EQ(sent_.size(), 1u);
  wait(seconds(1));
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(answer(kFirst + 1));
  EXPECT_TRUE(next.ok);
}

TEST_F(CallsBackward, ARefusalIsAnAnswer) {
  make(Flow::kCredits);
  BackwardProbe refused, next;
  submit(refused);
  submit(next);
  EXPECT_TRUE(calls_->on_refused(kFirst));
  EXPECT_EQ(refused.how(), Errc::kRefused);
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(sent_.size(), 2u);
}

TEST_F(CallsBackward, TheEndOfTheConnectionEndsAll) {
  make(Flow::kCredits);
  BackwardProbe sent, waiting;
  submit(sent);
  submit(waiting);
  calls_->close();
  EXPECT_EQ(sent.how(), Errc::kClosed);
  EXPECT_EQ(waiting.how(), Errc::kClosed);
  BackwardProbe after;
  const auto refused = calls_->submit(after);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kClosed);
  wait(seconds(60));
  EXPECT_EQ(sent.completions, 1);
  EXPECT_EQ(after.completions, 0);
}

TEST_F(CallsBackward, NotTooManyWait) {
  make(Flow::kCredits);
  std::vector<std::unique_ptr<BackwardProbe>> probes;
  for (std::size_t i = 0; i < 1 + BackwardCalls::kMaxWaiting; ++i) {
    probes.push_back(std::make_unique<BackwardProbe>());
    submit(*probes.back());
  }
  BackwardProbe refused;
  const auto result = calls_->submit(refused);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::kExhausted);
  probes.back()->cancel();
  submit(refused);  // somebody left
}

TEST_F(CallsBackward, WithoutRoomItIsTriedAgain) {
  make(Flow::kFree);
  room_ = false;
  BackwardProbe probe, doomed;
  doomed.timeout = seconds(1);
  submit(doomed);
  submit(probe);
  wait(milliseconds(500));
  EXPECT_EQ(sent_.size(), 0u);
  for (int i = 0; i < 60; ++i)
    wait(milliseconds(10));
  EXPECT_EQ(doomed.how(), Errc::kExhausted);
  room_ = true;
  wait(milliseconds(10));
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(answer(sent_[0]));
  EXPECT_TRUE(probe.ok);
}

TEST_F(CallsBackward, ACancelledCallIsNotTold) {
  make(Flow::kCredits);
  auto sent = std::make_unique<BackwardProbe>();
  auto waiting = std::make_unique<BackwardProbe>();
  BackwardProbe next;
  submit(*sent);
  submit(*waiting);
  submit(next);
  int told = 0;
  sent->done = waiting->done = [&told] { ++told; };
  sent.reset();
  waiting->cancel();
  EXPECT_EQ(sent_.size(), 1u);  // the credit is with the client
  EXPECT_TRUE(answer(kFirst));
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(answer(kFirst + 1));
  EXPECT_TRUE(next.ok);
  wait(seconds(60));
  EXPECT_EQ(told, 0);
}

TEST_F(CallsBackward, WhoIsToldMayCallAgain) {
  make(Flow::kCredits);
  BackwardProbe first, again;
  first.done = [&] { EXPECT_TRUE(calls_->submit(again).ok()); };
  submit(first);
  EXPECT_TRUE(answer(kFirst));
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(answer(kFirst + 1));
  EXPECT_TRUE(again.ok);
}

TEST_F(CallsBackward, WhoIsToldMayTakeOthersWithIt) {
  make(Flow::kFree);
  BackwardProbe first;
  auto second = std::make_unique<BackwardProbe>();
  first.timeout = second->timeout = seconds(1);  // due in the same moment
  first.done = [&] { second.reset(); };
  submit(first);
  submit(*second);
  wait(seconds(1));
  EXPECT_EQ(first.how(), Errc::kTimedOut);
  EXPECT_EQ(second, nullptr);
}

TEST_F(CallsBackward, AConnectionThatBreaksWhileSendingSendsNothingTwice) {
  make(Flow::kFree);
  BackwardProbe probe;
  during_transmit_ = [this] { calls_->pump(); };
  submit(probe);
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(answer(kFirst));
  EXPECT_EQ(probe.completions, 1);
}

TEST_F(CallsBackward, XidsWrapAround) {
  calls_ = std::make_unique<BackwardCalls>(*loop_, *this, UINT32_MAX, Flow::kFree, 4);
  BackwardProbe last, first;
  submit(last);
  submit(first);
  EXPECT_EQ(sent_, (std::vector<std::uint32_t>{UINT32_MAX, 0}));
  EXPECT_TRUE(answer(0));
  EXPECT_TRUE(first.ok);
}

}  // namespace
}  // namespace nfsrdma::test
