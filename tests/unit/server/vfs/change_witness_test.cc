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
