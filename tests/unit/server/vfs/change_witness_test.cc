// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/change_witness.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(ChangeWitness, AloneIsUndisturbed) {
  ChangeWitness witness;
  EXPECT_TRUE(ChangeWitness::Watch(witness, 1, 2).undisturbed());
  EXPECT_TRUE(ChangeWitness::Watch(witness, 1, 2).undisturbed());
}

TEST(ChangeWitness, BothOfTwoThatOverlapAreDisturbed) {
  ChangeWitness witness;
  ChangeWitness::Watch first(witness, 1, 2);
  ChangeWitness::Watch second(witness, 1, 2);
  EXPECT_FALSE(first.undisturbed());
  EXPECT_FALSE(second.undisturbed());
}

TEST(ChangeWitness, OneThatCameAndWentDisturbs) {
  ChangeWitness witness;
  ChangeWitness::Watch outer(witness, 1, 2);
  { ChangeWitness::Watch inner(witness, 1, 2); }
  EXPECT_FALSE(outer.undisturbed());
}

TEST(ChangeWitness, OtherInodesDoNotDisturb) {
  ChangeWitness witness;
  ChangeWitness::Watch first(witness, 1, 2);
  ChangeWitness::Watch second(witness, 1, 3);
  EXPECT_TRUE(first.undisturbed());
  EXPECT_TRUE(second.undisturbed());
}

TEST(ChangeWitness, KnowsWhetherAttributesReadEarlierStillHold) {
  ChangeWitness witness;
  const ChangeWitness::Seen first = witness.seen(1, 2);
  {
    ChangeWitness::Watch watch(witness, 1, 2);
    EXPECT_TRUE(watch.nothing_between(first));
  }
  // A change came and went since.
  EXPECT_FALSE(ChangeWitness::Watch(witness, 1, 2).nothing_between(first));
  // A change is under way: its attributes may be half old, half new.
  ChangeWitness::Watch running(witness, 1, 2);
  const ChangeWitness::Seen during = witness.seen(1, 2);
  EXPECT_FALSE(ChangeWitness::Watch(witness, 1, 2).nothing_between(during));
}

TEST(ChangeWitness, GoesOnAfterADisturbance) {
  ChangeWitness witness;
  {
    ChangeWitness::Watch first(witness, 1, 2);
    ChangeWitness::Watch second(witness, 1, 2);
  }
  EXPECT_TRUE(ChangeWitness::Watch(witness, 1, 2).undisturbed());
}

}  // namespace
}  // namespace nfsrdma
