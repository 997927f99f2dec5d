// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/adaptive_spin.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

using namespace std::chrono_literals;

TEST(AdaptiveSpin, NeverPollsUnlessAsked) {
  AdaptiveSpin spin;
  spin.event_after(0us);
  spin.event_after(1us);
  EXPECT_EQ(spin.length(), 0us);
}

TEST(AdaptiveSpin, StartsWithoutPolling) {
  AdaptiveSpin spin;
  spin.set_limit(50us);
  EXPECT_EQ(spin.length(), 0us);
}

TEST(AdaptiveSpin, PollsLongerThanEventsAreApart) {
  AdaptiveSpin spin;
  spin.set_limit(50us);
  spin.event_after(10us);
  EXPECT_EQ(spin.length(), 20us);
  spin.event_after(15us);
  EXPECT_EQ(spin.length(), 20us) << "that was long enough";
  spin.event_after(22us);
  EXPECT_EQ(spin.length(), 44us);
}

TEST(AdaptiveSpin, NeverPollsLongerThanTheLimit) {
  AdaptiveSpin spin;
  spin.set_limit(50us);
  spin.event_after(50us);
  EXPECT_EQ(spin.length(), 50us);
}

TEST(AdaptiveSpin, StopsWhenEventsStayAway) {
  AdaptiveSpin spin;
  spin.set_limit(50us);
  spin.event_after(10us);
  spin.event_after(51us);
  EXPECT_EQ(spin.length(), 0us);
  spin.event_after(1h);
  EXPECT_EQ(spin.length(), 0us);
  spin.event_after(10us);
  EXPECT_EQ(spin.length(), 20us) << "and begins again when they come fast";
}

}  // namespace
}  // namespace nfsrdma
