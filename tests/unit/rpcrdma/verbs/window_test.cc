// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/window.h"

#include <gtest/gtest.h>

namespace nfsrdma::verbs {
namespace {

using State = Window::State;

class WindowListTest : public ::testing::Test {
 protected:
  WindowListTest() {
    std::uint32_t handle = 100;
    for (Window* window : {&a_, &b_, &c_}) {
      window->handle = handle++;
      list_.wait(*window);
    }
  }
  Window a_, b_, c_;
  WindowList list_;
};

TEST_F(WindowListTest, TheyAreBoundInTheirOrder) {
  list_.bound(2);
  EXPECT_EQ(a_.state, State::kBound);
  EXPECT_EQ(b_.state, State::kBound);
  EXPECT_EQ(c_.state, State::kWaiting);
  ASSERT_EQ(list_.waiting().size(), 1U);
  EXPECT_EQ(list_.waiting()[0], &c_);
}

TEST_F(WindowListTest, ThePeerEndsWhatIsBoundAndNothingElse) {
  list_.bound(2);
  EXPECT_FALSE(list_.ended(c_.handle)) << "it waits";
  EXPECT_TRUE(list_.ended(b_.handle));
  EXPECT_FALSE(list_.ended(b_.handle));
  EXPECT_FALSE(list_.ended(7));
  EXPECT_EQ(a_.state, State::kBound);
  EXPECT_EQ(b_.state, State::kEnded);
  EXPECT_EQ(c_.state, State::kWaiting);
}

TEST_F(WindowListTest, WhatIsForgottenIsNeitherBoundNorEnded) {
  list_.bound(1);
  EXPECT_FALSE(list_.forget(a_)) << "the peer can use it still";
  EXPECT_TRUE(list_.forget(b_)) << "it was never bound";
  EXPECT_FALSE(list_.ended(a_.handle));
  ASSERT_EQ(list_.waiting().size(), 1U);
  EXPECT_EQ(list_.waiting()[0], &c_);
}

TEST_F(WindowListTest, WhatThePeerEndedNeedsNoOtherEnd) {
  list_.bound(3);
  EXPECT_TRUE(list_.ended(b_.handle));
  EXPECT_TRUE(list_.forget(b_));
  EXPECT_FALSE(list_.forget(c_));
}

TEST_F(WindowListTest, TakenAllAreGone) {
  list_.bound(1);
  EXPECT_EQ(list_.take(), (std::vector<Window*>{&a_, &b_, &c_}));
  EXPECT_TRUE(list_.waiting().empty());
  EXPECT_TRUE(list_.take().empty());
}

}  // namespace
}  // namespace nfsrdma::verbs
