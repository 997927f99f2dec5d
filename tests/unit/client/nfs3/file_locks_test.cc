// SPDX-License-Identifier: Apache-2.0
// Byte-range locks of NFSv3 by NLM, against a lock manager that refuses, restarts, forgets, and is
// not where it was: who believes to have a lock has it, and nobody keeps one that nobody wants.
#include "client/nfs3/file_locks.h"

#include <gmock/gmock.h>

#include "tests/support/leaving_lockers.h"
#include "tests/support/small_stack.h"
#include "tests/unit/client/nfs3/file_locks_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;

constexpr ByteRange kAll{0, UINT64_MAX};

TEST_F(Nfs3LocksTest, ALockIsAskedForAsWhoWantsItByTheNameOfTheMount) {
  EXPECT_EQ(lock({7, LockKind::kWrite, {100, 149}}), 0);
  ASSERT_EQ(manager_.seen.size(), 2u);  // NULL and
  const FakeLockManager::Seen seen = manager_.seen.back();
  EXPECT_EQ(seen.procedure, Proc::NLMPROC4_LOCK);
  EXPECT_EQ(seen.uid, 4711u);
  EXPECT_EQ(seen.caller, "host.test");
  EXPECT_EQ(seen.file, "\x01\x02\xfe");
  EXPECT_EQ(seen.svid, svid(7));
  EXPECT_EQ(seen.owner.size(), 12u);
  EXPECT_EQ(seen.offset, 100u);
  EXPECT_EQ(seen.length, 50u);
  EXPECT_TRUE(seen.exclusive);
  EXPECT_FALSE(seen.block);
  EXPECT_FALSE(seen.reclaim);
  EXPECT_EQ(lock({8, LockKind::kRead, {200, UINT64_MAX}}), 0);
  EXPECT_EQ(manager_.seen.back().length, 0u);  // to the end, wherever that is
  EXPECT_FALSE(manager_.seen.back().exclusive);
  EXPECT_NE(manager_.seen.back().owner, seen.owner);
  EXPECT_EQ(nfs_->locks_held(), 2u);
  EXPECT_TRUE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, WhatIsUnlockedIsUnlockedThereAndTheOwnerForgotten) {
  EXPECT_EQ(lock({7, LockKind::kWrite, {0, 99}}), 0);
  EXPECT_EQ(unlock(7, {10, 19}), 0);
  EXPECT_EQ(nfs_->locks_held(), 2u);
  EXPECT_EQ(manager_.locks.held().size(), 2u);
  EXPECT_EQ(unlock(7, kAll), 0);
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_FALSE(nfs_->holds(file_));
  // As a process's last close does, which may have had none.
  const std::size_t asked = manager_.seen.size();
  EXPECT_EQ(unlock(7, kAll), 0);
  EXPECT_EQ(manager_.seen.size(), asked);
}

TEST_F(Nfs3LocksTest, SomebodyElsesLockIsInTheWay) {
  manager_.lock_elsewhere(LockKind::kWrite, {5, 5});
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), EAGAIN);
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 4}}), 0);
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(Nfs3LocksTest, WhoWasRefusedHoldsNothing) {
  manager_.lock_elsewhere(LockKind::kWrite, {5, 5});
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), EAGAIN);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, AnotherOwnersLockOfThisMountIsKnownWithoutAsking) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  const std::size_t asked = manager_.seen.size();
  EXPECT_EQ(lock({2, LockKind::kRead, {9, 9}}), EAGAIN);
  EXPECT_EQ(manager_.seen.size(), asked);
}

TEST_F(Nfs3LocksTest, WhoWaitsAsksAgain) {
  manager_.lock_elsewhere(LockKind::kWrite, {0, 9});
  Outcome done;
  start_lock(&done, {1, LockKind::kRead, {0, 9}}, LockWait::kYes);
  serve_for(seconds(30));
  EXPECT_EQ(number(done), -1);
  EXPECT_GE(manager_.times(Proc::NLMPROC4_LOCK), 25u);
  EXPECT_LE(manager_.times(Proc::NLMPROC4_LOCK), 40u);
  manager_.unlock_elsewhere();
  serve_for(milliseconds(1100));
  EXPECT_EQ(number(done), 0);
}

TEST_F(Nfs3LocksTest, WhoWaitsForAnOwnerOfThisMountHearsOfItAtOnce) {
  EXPECT_EQ(lock({1, LockKind::kWrite, kAll}), 0);
  Outcome done;
  start_lock(&done, {2, LockKind::kWrite, kAll}, LockWait::kYes);
  serve_for(seconds(20));
  EXPECT_EQ(number(done), -1);
  Outcome unlocked;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kWrite, kAll}), &unlocked));
  serve_all();
  EXPECT_EQ(number(done), 0);
}

TEST_F(Nfs3LocksTest, WaitingEndsWhenItIsCancelled) {
  manager_.lock_elsewhere(LockKind::kWrite, {0, 9});
  CancelToken cancel;
  Outcome done;
  start_lock(&done, {1, LockKind::kRead, {0, 9}}, LockWait::kYes, &cancel);
  serve_for(seconds(2));
  cancel.cancel();
  EXPECT_EQ(number(done), EINTR);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, AnyNumberOfThoseWhoHaveLeftMayBeInTheFilesTurn) {
  constexpr std::size_t kMany = 10'000;
  manager_.silent = true;
  Outcome first;
  start_lock(&first, {1, LockKind::kWrite, {0, 0}});
  EXPECT_EQ(test::ask_for_locks_and_leave(group_, *nfs_, op_, file_, kMany), kMany);
  manager_.silent = false;
  test::on_small_stack([&] { serve_for(seconds(30)); });
  EXPECT_EQ(number(first), 0);
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(Nfs3LocksTest, WaitingEndsWithTheMountAndWhatIsHeldIsStillLetGoOf) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  Outcome done, later;
  start_lock(&done, {2, LockKind::kWrite, {0, 9}}, LockWait::kYes);
  serve_for(seconds(2));
  nfs_->stop_waiting();
  serve_all();
  EXPECT_EQ(number(done), EINTR);
  start_lock(&later, {2, LockKind::kWrite, {0, 9}}, LockWait::kYes);
  serve_all();
  EXPECT_EQ(number(later), EINTR);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_TRUE(manager_.locks.empty());
}

TEST_F(Nfs3LocksTest, WhatIsGrantedToSomebodyWhoIsGoneIsGivenBack) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.silent = true;
  CancelToken cancel;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {5, 19}}, LockWait::kNo, &cancel);
  cancel.cancel();
  EXPECT_EQ(number(done), EINTR);
  manager_.silent = false;
  serve_for(seconds(1));
  // But for what it had.
  ASSERT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(manager_.locks.held()[0].range, (ByteRange{0, 9}));
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(Nfs3LocksTest, AskingWhatIsInTheWayTellsWhoseItIs) {
  int error = 0;
  EXPECT_EQ(test_lock({0, LockKind::kWrite, kAll}, &error), std::nullopt);
  EXPECT_EQ(error, 0);
  manager_.lock_elsewhere(LockKind::kRead, {5, UINT64_MAX});
  std::optional<LockHolder> holder = test_lock({0, LockKind::kWrite, kAll}, &error);
  ASSERT_TRUE(holder.has_value());
  EXPECT_FALSE(holder->ours);
  EXPECT_EQ(holder->lock.kind, LockKind::kRead);
  EXPECT_EQ(holder->lock.range, (ByteRange{5, UINT64_MAX}));
  EXPECT_EQ(lock({3, LockKind::kWrite, {0, 4}}), 0);
  holder = test_lock({0, LockKind::kWrite, kAll}, &error);
  ASSERT_TRUE(holder.has_value());
  EXPECT_TRUE(holder->ours);
  EXPECT_EQ(holder->lock.owner, 3u);
  // Its own is in nobody's way.
  manager_.unlock_elsewhere();
  EXPECT_EQ(test_lock({3, LockKind::kWrite, kAll}, &error), std::nullopt);
  EXPECT_EQ(error, 0);
}

TEST_F(Nfs3LocksTest, WhileTheServerWaitsForItsOldClientsWhoLocksWaits) {
  manager_.in_grace = true;
  Outcome done, waited;
  start_lock(&done, {1, LockKind::kRead, {0, 9}});
  start_lock(&waited, {2, LockKind::kRead, {0, 9}}, LockWait::kYes);
  std::optional<Result<std::optional<LockHolder>>> tested;
  group_.spawn(keep(nfs_->test_lock(op_, file_, {9, LockKind::kRead, kAll}), &tested));
  serve_for(seconds(60));
  EXPECT_EQ(number(done), -1);
  EXPECT_EQ(number(waited), -1);
  EXPECT_FALSE(tested.has_value());
  EXPECT_LE(manager_.seen.size(), 65u);
  manager_.in_grace = false;
  serve_for(seconds(6));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(number(waited), 0);
  EXPECT_TRUE(tested.has_value() && tested->ok());
}

TEST_F(Nfs3LocksTest, WaitingForTheEndOfThatCanBeCancelled) {
  manager_.in_grace = true;
  CancelToken cancel;
  Outcome done;
  start_lock(&done, {1, LockKind::kRead, {0, 9}}, LockWait::kNo, &cancel);
  serve_for(seconds(7));
  cancel.cancel();
  EXPECT_EQ(number(done), EINTR);
  const std::size_t asked = manager_.times(Proc::NLMPROC4_LOCK);
  serve_for(seconds(20));
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_LOCK), asked);
}

// Servers of NFSv4 say so, too, while they recall a delegation.
TEST_F(Nfs3LocksTest, WhoIsToldToWaitIsNotKeptWaitingForLong) {
  manager_.lock_statuses = {Stat::NLM4_DENIED_GRACE_PERIOD, Stat::NLM4_DENIED_GRACE_PERIOD};
  Outcome done;
  start_lock(&done, {1, LockKind::kRead, {0, 9}});
  serve_for(milliseconds(250));
  EXPECT_EQ(number(done), 0);
}

TEST_F(Nfs3LocksTest, WhatIsUnlockedMeanwhileIsUnlockedThereBehindIt) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.in_grace = true;
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(nfs_->locks_held(), 0u);
  EXPECT_FALSE(manager_.locks.empty());
  EXPECT_TRUE(nfs_->holds(file_));
  serve_for(seconds(40));
  EXPECT_FALSE(manager_.locks.empty());
  manager_.in_grace = false;
  serve_for(seconds(20));
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, WhatIsLockedAgainByThenStaysLocked) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.unlock_statuses = {Stat::NLM4_DENIED_GRACE_PERIOD};
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(lock({1, LockKind::kWrite, {5, 14}}), 0);
  serve_for(seconds(20));
  ASSERT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(manager_.locks.held()[0].range, (ByteRange{5, 14}));
}

TEST_F(Nfs3LocksTest, RefusalsHaveNumbersThatApplicationsKnow) {
  struct Row {
    Stat status;
    int number;
  };
  manager_.has_nm_lock = false;
  for (const Row& row : {Row{Stat::NLM4_DENIED_NOLOCKS, ENOLCK}, Row{Stat::NLM4_STALE_FH, ESTALE},
                         Row{Stat::NLM4_FBIG, EOVERFLOW}, Row{Stat::NLM4_ROFS, EROFS},
                         Row{Stat::NLM4_DEADLCK, EDEADLK}, Row{Stat::NLM4_FAILED, ENOLCK},
                         Row{Stat{4711}, ENOLCK}}) {
    manager_.lock_statuses = {row.status};
    EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), row.number);
    EXPECT_FALSE(nfs_->holds(file_));
    int error = 0;
    manager_.test_statuses = {row.status};
    test_lock({1, LockKind::kRead, {0, 9}}, &error);
    EXPECT_EQ(error, row.number);
  }
}

TEST_F(Nfs3LocksTest, AServerThatCannotMonitorUsGivesLocksThatAreNotMonitored) {
  manager_.monitors = false;
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_LOCK), 1u);
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_NM_LOCK), 1u);
  // Which it is asked for at once from then on.
  EXPECT_EQ(lock({2, LockKind::kRead, {0, 9}}), 0);
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_LOCK), 1u);
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_NM_LOCK), 2u);
}

TEST_F(Nfs3LocksTest, WhatTheServerRefusesToUnlockIsTriedAFewTimes) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.unlock_statuses = {Stat::NLM4_DENIED_NOLOCKS, Stat::NLM4_FAILED, Stat::NLM4_FAILED,
                              Stat::NLM4_FAILED, Stat::NLM4_FAILED};
  EXPECT_EQ(unlock(1, kAll), ENOLCK);
  serve_for(seconds(120));
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_UNLOCK), 5u);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, AFileThatIsNoMoreIsUnlocked) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.unlock_statuses = {Stat::NLM4_STALE_FH};
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, TheLastCloseLetsGoOfWhatIsLeft) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {10, 19}}), 0);
  nfs_->close(file_);
  serve_for(seconds(1));
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, TheEndOfTheMountLetsGoOfAll) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  bool over = false;
  group_.spawn(note_end(nfs_->end(op_), &over));
  serve_for(seconds(1));
  EXPECT_TRUE(over);
  EXPECT_TRUE(manager_.locks.empty());
}

TEST_F(Nfs3LocksTest, TheEndOfTheMountIsOverWhenItsTimeIsUp) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.silent = true;
  CancelToken time_is_up;
  OpContext op;
  op.cancel = &time_is_up;
  bool over = false;
  group_.spawn(note_end(nfs_->end(op), &over));
  environment_->advance(seconds(1));
  EXPECT_FALSE(over);
  time_is_up.cancel();
  EXPECT_TRUE(over);
}

TEST_F(Nfs3LocksTest, AfterAnAbortEverythingFails) {
  manager_.silent = true;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 9}}, LockWait::kYes);
  nfs_->abort();
  EXPECT_EQ(number(done), EIO);
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), EIO);
  int error = 0;
  test_lock({1, LockKind::kWrite, {0, 9}}, &error);
  EXPECT_EQ(error, EIO);
}

// --- the server restarts ---

TEST_F(Nfs3LocksTest, ARestartedServerIsToldWhatIsHeldBeforeAnybodyAsks) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kRead, {20, 29}}), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {40, UINT64_MAX}}), 0);
  const std::vector<ByteRangeLocks::Held> before = manager_.locks.held();
  manager_.in_grace = true;
  restart();
  manager_.seen.clear();
  serve_for(seconds(5));
  EXPECT_EQ(manager_.locks.held(), before);
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_LOCK), 3u);
  for (const FakeLockManager::Seen& one : manager_.seen) {
    EXPECT_TRUE(one.procedure == Proc::NLMPROC4_NULL || one.reclaim);
  }
  manager_.in_grace = false;
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(nfs_->locks_held(), 3u);
}

TEST_F(Nfs3LocksTest, WhoseConnectionBrokeAloneStillHasItsLocks) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  environment_->transport()->lose();
  serve_for(seconds(5));
  EXPECT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(nfs_->locks_held(), 1u);
  EXPECT_EQ(read(), 0);
}

TEST_F(Nfs3LocksTest, WithNothingHeldABrokenConnectionIsNobodysBusiness) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(unlock(1, kAll), 0);
  manager_.seen.clear();
  environment_->transport()->lose();
  serve_for(seconds(120));
  EXPECT_THAT(manager_.seen, IsEmpty());
}

TEST_F(Nfs3LocksTest, WhatSomebodyElseHasByThenIsLostAndToldUntilItIsUnlocked) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {20, 29}}), 0);
  manager_.locks = {};
  manager_.lock_elsewhere(LockKind::kWrite, {5, 5});
  environment_->transport()->lose();
  serve_for(seconds(5));
  EXPECT_EQ(nfs_->locks_held(), 1u);
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(write(), EIO);
  SetAttributes cut;
  cut.size = 0;
  std::optional<Result<Wcc>> done;
  group_.spawn(keep(nfs_->setattr(op_, file_, cut, nullptr), &done));
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->error().sys, EIO);
  EXPECT_FALSE(nfs_->right_for(op_, file_, access_bits::kRead).ok());
  EXPECT_EQ(lock({1, LockKind::kWrite, {30, 39}}), EIO);
  EXPECT_EQ(lock({2, LockKind::kWrite, {40, 49}}), 0);
  EXPECT_EQ(manager_.reads + manager_.writes, 0u);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_TRUE(nfs_->right_for(op_, file_, access_bits::kRead).ok());
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 4}}), 0);
}

// Who waits lets go of the file, which nothing else keeps.
TEST_F(Nfs3LocksTest, WhoWaitsForAnotherHostIsToldOfTheEnd) {
  manager_.lock_elsewhere(LockKind::kWrite, {0, 9});
  Outcome done;
  start_lock(&done, {1, LockKind::kRead, {0, 9}}, LockWait::kYes);
  serve_for(seconds(2));
  nfs_->stop_waiting();
  EXPECT_EQ(number(done), EINTR);
}

TEST_F(Nfs3LocksTest, ARefusalThatSaysNothingOfTheLockDoesNotLoseIt) {
  for (const Stat refusal : {Stat::NLM4_DENIED_NOLOCKS, Stat::NLM4_FAILED}) {
    EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
    manager_.monitors = refusal != Stat::NLM4_DENIED_NOLOCKS;
    manager_.has_nm_lock = manager_.monitors;
    if (refusal == Stat::NLM4_FAILED) manager_.lock_statuses = {refusal, refusal};
    environment_->transport()->lose();
    serve_for(seconds(3));
    EXPECT_EQ(nfs_->locks_held(), 1u);
    EXPECT_EQ(read(), 0);
    manager_.monitors = manager_.has_nm_lock = true;
    serve_for(seconds(60));
    EXPECT_EQ(nfs_->locks_held(), 1u);
    EXPECT_EQ(unlock(1, kAll), 0);
  }
}

TEST_F(Nfs3LocksTest, ClosingTheFileForgetsWhatIsLost) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.locks = {};
  manager_.lock_elsewhere(LockKind::kWrite, {5, 5});
  environment_->transport()->lose();
  serve_for(seconds(5));
  EXPECT_EQ(write(), EIO);
  nfs_->close(file_);
  serve_for(seconds(1));
  EXPECT_EQ(write(), 0);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, AServerThatIsLostAgainWhileItIsToldIsToldAllOverAgain) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {20, 29}}), 0);
  manager_.in_grace = true;
  restart();
  for (int i = 0; i < 3; ++i) {
    environment_->advance(milliseconds(100));
    manager_.serve_one(*environment_, true);
  }
  restart();
  serve_for(seconds(10));
  EXPECT_EQ(manager_.locks.held().size(), 2u);
  EXPECT_EQ(nfs_->locks_held(), 2u);
}

TEST_F(Nfs3LocksTest, WhatIsUnlockedWhileTheServerIsAwayIsNotAskedForAgain) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.in_grace = true;
  restart();
  EXPECT_EQ(unlock(1, kAll), 0);
  serve_for(seconds(30));
  manager_.in_grace = false;
  serve_for(seconds(30));
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Nfs3LocksTest, ALockThatWasAskedForWhenTheServerWentIsAskedForAgain) {
  manager_.silent = true;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 9}});
  manager_.silent = false;
  restart();
  serve_for(seconds(5));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(manager_.locks.held().size(), 1u);
}

TEST_F(Nfs3LocksTest, WhileSomethingIsHeldTheServerIsAskedNowAndThenWhetherItIsThere) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.seen.clear();
  serve_for(seconds(300));
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_NULL), 10u);
  EXPECT_EQ(unlock(1, kAll), 0);
  manager_.seen.clear();
  serve_for(seconds(300));
  EXPECT_THAT(manager_.seen, IsEmpty());
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.seen.clear();
  serve_for(seconds(61));
  EXPECT_EQ(manager_.times(Proc::NLMPROC4_NULL), 2u);
}

// --- a soft mount ---

class SoftNfs3LocksTest : public Nfs3LocksTest {
 protected:
  SoftNfs3LocksTest() : Nfs3LocksTest(true) {}
};

TEST_F(SoftNfs3LocksTest, ALockThatWasGivenUpIsLetGoOfWhenTheServerAnswersAgain) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.silent_behind = 0;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 19}});
  serve_for(seconds(15));
  EXPECT_EQ(number(done), ETIMEDOUT);
  EXPECT_EQ(manager_.locks.held()[0].range, (ByteRange{0, 19}));
  manager_.silent = false;
  serve_for(seconds(40));
  ASSERT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(manager_.locks.held()[0].range, (ByteRange{0, 9}));
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(SoftNfs3LocksTest, SoIsOneWhoseUnlockingWasGivenUp) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.silent = true;
  Outcome done;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kWrite, kAll}), &done));
  serve_for(seconds(15));
  EXPECT_EQ(number(done), ETIMEDOUT);
  EXPECT_FALSE(manager_.locks.empty());
  manager_.silent = false;
  serve_for(seconds(40));
  EXPECT_TRUE(manager_.locks.empty());
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(SoftNfs3LocksTest, WhatIsHeldIsAssertedWhenTheServerComesBackAfterLong) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  manager_.silent = true;
  manager_.in_grace = true;
  restart();
  serve_for(seconds(120));
  manager_.silent = false;
  serve_for(seconds(30));
  EXPECT_EQ(manager_.locks.held().size(), 1u);
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

}  // namespace
}  // namespace nfsrdma
