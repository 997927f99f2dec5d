// SPDX-License-Identifier: Apache-2.0
// Byte-range locks of the NFSv4 client, against a server that refuses, restarts, forgets and
// revokes: who believes to have a lock has it, and nobody keeps one that nobody wants.
#include "client/nfs4/file_locks.h"

#include "tests/support/leaving_lockers.h"
#include "tests/support/small_stack.h"
#include "tests/unit/client/nfs4/file_locks_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ByteRange kAll{0, UINT64_MAX};

TEST_F(FileLocksTest, TheFirstLockOpensTheFileAndTheLastCloseClosesIt) {
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  ASSERT_EQ(server_->opens_seen.size(), 1u);
  EXPECT_EQ(server_->opens_seen[0].share_access,
            xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG);
  EXPECT_EQ(lock({1, LockKind::kRead, {20, 29}}), 0);
  EXPECT_EQ(server_->opens_seen.size(), 1u);
  EXPECT_EQ(server_->locks.held().size(), 2u);
  EXPECT_EQ(nfs_->locks_held(), 2u);
  close();
  EXPECT_TRUE(server_->locks.empty());
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(FileLocksTest, AWriteLockWantsAnOpenForWriting) {
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 4}}), 0);
  ASSERT_EQ(server_->opens_seen.size(), 2u);
  EXPECT_EQ(server_->opens_seen[1].share_access & 3, xdr::OPEN4_SHARE_ACCESS_BOTH);
  EXPECT_EQ(server_->stateids.size(), 2u);  // of one open and one lock
}

TEST_F(FileLocksTest, SomebodyElsesLockIsInTheWay) {
  server_->lock_elsewhere(LockKind::kWrite, {5, 5});
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), EAGAIN);
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 4}}), 0);
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

// What the data shards of a mount read and write with.
TEST_F(FileLocksTest, AnotherThreadMayUseTheLocksStateid) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  Result<DataRight> right = nfs_->right_for(op_, file_, access_bits::kModify);
  ASSERT_TRUE(right.ok());
  OpContext op = op_;
  op.right = &*right;
  std::optional<Result<ReadResult>> done;
  group_.spawn(keep(nfs_->read_once(op, file_, 0, room_), &done));
  server_->serve_for(seconds(2));
  ASSERT_TRUE(done && done->ok());
  EXPECT_EQ(server_->data_stateids.back(), load_be64(right->other.data()));
  // It is not for that thread to know what has become of it.
  server_->revoke_everything();
  server_->status_flags = 0;
  done.reset();
  group_.spawn(keep(nfs_->read_once(op, file_, 0, room_), &done));
  server_->serve_for(seconds(2));
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(is_right_gone(done->error()));
  EXPECT_TRUE(nfs_->right_for(op_, file_, access_bits::kModify).ok());
  EXPECT_EQ(read(), EIO);
  EXPECT_FALSE(nfs_->right_for(op_, file_, access_bits::kModify).ok());
}

TEST_F(FileLocksTest, WhoWaitsAsksAgainWhenToldTo) {
  server_->notifies_locks = true;
  server_->lock_elsewhere(LockKind::kWrite, {0, 9});
  Outcome done;
  start_lock(&done, {1, LockKind::kRead, {0, 9}}, LockWait::kYes);
  server_->serve_for(seconds(30));
  EXPECT_FALSE(done.has_value());
  server_->unlock_elsewhere();
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
  server_->serve_all();  // in no time
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(nfs_->callbacks_done(), 1u);
}

TEST_F(FileLocksTest, WhoIsToldToAsksSeldomByHimself) {
  server_->lock_elsewhere(LockKind::kWrite, {0, 9});
  Outcome untold;
  start_lock(&untold, {1, LockKind::kRead, {0, 9}}, LockWait::kYes);
  server_->serve_for(seconds(60));
  const std::size_t often = times(Op::OP_LOCK);
  EXPECT_GE(often, 55u);
  server_->unlock_elsewhere();
  server_->serve_for(seconds(2));
  EXPECT_EQ(number(untold), 0);
  close();

  server_->notifies_locks = true;
  server_->lock_elsewhere(LockKind::kWrite, {0, 9});
  Outcome told;
  const std::size_t before = times(Op::OP_LOCK);
  start_lock(&told, {1, LockKind::kRead, {0, 9}}, LockWait::kYes);
  server_->serve_for(seconds(60));
  EXPECT_LE(times(Op::OP_LOCK) - before, 16u);
  // The message may be lost.
  server_->unlock_elsewhere();
  server_->serve_for(seconds(11));
  EXPECT_EQ(number(told), 0);
}

TEST_F(FileLocksTest, WordOfALockThatNobodyWantsDoesNoHarm) {
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
  EXPECT_EQ(server_->notify_lock({}), Stat::NFS4_OK);
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  EXPECT_EQ(server_->notify_lock(file_.bytes()), Stat::NFS4_OK);
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(FileLocksTest, ConflictsOfThisClientAreAnsweredHere) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  const std::size_t asked = times(Op::OP_LOCK);
  EXPECT_EQ(lock({2, LockKind::kWrite, {9, 9}}), EAGAIN);
  EXPECT_EQ(times(Op::OP_LOCK), asked);
}

TEST_F(FileLocksTest, WhoWaitsGetsItWhenItIsLetGoOfHere) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  Outcome waited;
  start_lock(&waited, {2, LockKind::kWrite, {0, 9}}, LockWait::kYes);
  server_->serve_for(seconds(10));
  EXPECT_FALSE(waited.has_value());
  Outcome unlocked;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kRead, kAll}), &unlocked));
  server_->serve_all();  // no time passes
  EXPECT_EQ(number(unlocked), 0);
  EXPECT_EQ(number(waited), 0);
}

TEST_F(FileLocksTest, WhoWaitsGetsItWhenItIsLetGoOfElsewhere) {
  server_->lock_elsewhere(LockKind::kWrite, kAll);
  Outcome waited;
  start_lock(&waited, {2, LockKind::kRead, {0, 9}}, LockWait::kYes);
  server_->serve_for(seconds(20));
  EXPECT_FALSE(waited.has_value());
  EXPECT_LE(times(Op::OP_LOCK), 30u);
  server_->unlock_elsewhere();
  server_->serve_for(seconds(2));
  EXPECT_EQ(number(waited), 0);
}

TEST_F(FileLocksTest, AWaitCanBeInterrupted) {
  server_->lock_elsewhere(LockKind::kWrite, kAll);
  CancelToken cancel;
  Outcome waited;
  start_lock(&waited, {2, LockKind::kRead, {0, 9}}, LockWait::kYes, &cancel);
  server_->serve_for(seconds(3));
  cancel.cancel();
  EXPECT_EQ(number(waited), EINTR);
  server_->unlock_elsewhere();
  server_->serve_for(seconds(3));
  EXPECT_TRUE(server_->locks.empty());
}

TEST_F(FileLocksTest, AnyNumberOfThoseWhoHaveLeftMayBeInTheFilesTurn) {
  constexpr std::size_t kMany = 10'000;
  Outcome first;
  start_lock(&first, {1, LockKind::kWrite, {0, 0}});  // and is not answered yet
  EXPECT_EQ(test::ask_for_locks_and_leave(group_, *nfs_, op_, file_, kMany), kMany);
  test::on_small_stack([&] { server_->serve_for(seconds(2)); });
  EXPECT_EQ(number(first), 0);
  EXPECT_EQ(nfs_->locks_held(), 1u);
  EXPECT_EQ(lock({1, LockKind::kWrite, {5, 9}}), 0);
}

TEST_F(FileLocksTest, WhatWasGrantedToSomebodyWhoIsGoneIsGivenBack) {
  EXPECT_EQ(lock({1, LockKind::kRead, {4, 5}}), 0);
  CancelToken cancel;
  Outcome asked;
  start_lock(&asked, {1, LockKind::kRead, {0, 9}}, LockWait::kNo, &cancel);
  cancel.cancel();
  EXPECT_EQ(number(asked), EINTR);
  server_->serve_for(seconds(2));
  ASSERT_EQ(server_->locks.held().size(), 1u);
  EXPECT_EQ(server_->locks.held()[0].range, (ByteRange{4, 5}));  // what it had before
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(FileLocksTest, UnlockingTheMiddleLeavesTwo) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(unlock(1, {3, 6}), 0);
  EXPECT_EQ(server_->locks.held().size(), 2u);
  EXPECT_EQ(nfs_->locks_held(), 2u);
  EXPECT_EQ(lock({2, LockKind::kWrite, {3, 6}}), 0);
}

TEST_F(FileLocksTest, UnlockingEverythingLetsTheServerForgetTheOwner) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(times(Op::OP_FREE_STATEID), 1u);
  EXPECT_EQ(server_->stateids.size(), 1u);  // the open
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
}

TEST_F(FileLocksTest, TestNamesWhatIsInTheWay) {
  server_->lock_elsewhere(LockKind::kWrite, {5, 8});
  EXPECT_EQ(lock({1, LockKind::kWrite, {20, 29}}), 0);
  const auto ask = [&](FileLock wanted) {
    std::optional<Result<std::optional<LockHolder>>> done;
    group_.spawn(keep(nfs_->test_lock(op_, file_, wanted), &done));
    server_->serve_for(seconds(2));
    return done.has_value() && done->ok() ? **done : std::optional<LockHolder>();
  };
  const auto elsewhere = ask({2, LockKind::kRead, {0, 9}});
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_FALSE(elsewhere->ours);
  EXPECT_EQ(elsewhere->lock.range, (ByteRange{5, 8}));
  EXPECT_EQ(elsewhere->lock.kind, LockKind::kWrite);
  const auto here = ask({2, LockKind::kRead, {25, 25}});
  ASSERT_TRUE(here.has_value());
  EXPECT_TRUE(here->ours);
  EXPECT_EQ(here->lock.owner, 1u);
  EXPECT_FALSE(ask({1, LockKind::kRead, {25, 25}}).has_value());
}

TEST_F(FileLocksTest, DataGoesUnderTheLockOfASingleOwner) {
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->data_stateids.back(), 0u);
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  ASSERT_EQ(server_->stateids.size(), 2u);
  const std::uint64_t open = *server_->stateids.begin();
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->data_stateids.back(), *server_->stateids.rbegin());
  EXPECT_EQ(lock({2, LockKind::kRead, {0, 9}}), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->data_stateids.back(), open);
  EXPECT_EQ(unlock(2, kAll), 0);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->data_stateids.back(), open);
}

TEST_F(FileLocksTest, ARestartOfTheServerIsSurvived) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({1, LockKind::kRead, {20, 29}}), 0);
  EXPECT_EQ(lock({2, LockKind::kRead, {40, 49}}), 0);
  const std::vector<ByteRangeLocks::Held> before = server_->locks.held();
  const unsigned completes = server_->reclaims_complete;
  restart();  // and nobody asks for anything
  EXPECT_EQ(server_->locks.held(), before);
  EXPECT_EQ(server_->lock_reclaims, 3u);
  EXPECT_EQ(server_->reclaims_complete, completes + 1);
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_PREVIOUS);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(unlock(2, kAll), 0);
  EXPECT_TRUE(server_->locks.empty());
}

TEST_F(FileLocksTest, ALockThatIsNotToBeHadBackIsLostUntilItIsUnlocked) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->restart();  // whose time of grace is over
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(lock({1, LockKind::kRead, {50, 59}}), EIO);
  EXPECT_EQ(unlock(1, {0, 4}), 0);
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(unlock(1, {5, 9}), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(read(), 0);
}

TEST_F(FileLocksTest, RevokedLocksAreLostAndTheServerIsToldSo) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->revoke_everything();
  expect_getattr_works();
  server_->serve_for(seconds(2));
  EXPECT_TRUE(server_->revoked.empty());
  EXPECT_EQ(server_->status_flags, 0u);
  EXPECT_EQ(read(), EIO);
  close();
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(lock({2, LockKind::kWrite, {0, 9}}), 0);
}

/// RFC 8881, 8.2.4: whatever meets it first, and without the server's having said so.
TEST_F(FileLocksTest, WhatIsFoundRevokedIsFreed) {
  const FileLock wanted{1, LockKind::kWrite, {0, 9}};
  const std::vector<std::function<void()>> meet{
      [&] { EXPECT_EQ(read(), EIO); }, [&] { EXPECT_EQ(lock(wanted), EIO); },
      [&] { EXPECT_EQ(unlock(1, kAll), 0); }, [&] { close(); }};
  for (std::size_t i = 0; i < meet.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(lock(wanted), 0);
    server_->revoke(*server_->stateids.rbegin(), 0);  // the lock is the last that was given
    server_->locks = {};
    meet[i]();
    EXPECT_TRUE(server_->revoked.empty());
    EXPECT_EQ(server_->stateids.size(), i + 1 < meet.size() ? 1u : 0u);  // the open
    EXPECT_EQ(unlock(1, kAll), 0);
  }
}

TEST_F(FileLocksTest, LocksOfAnOpenThatIsFoundRevokedAreFreedWithIt) {
  EXPECT_EQ(lock({1, LockKind::kRead, {0, 9}}), 0);
  EXPECT_EQ(lock({2, LockKind::kRead, {0, 9}}), 0);  // so data goes by the open
  server_->revoke_everything();
  server_->status_flags = 0;
  EXPECT_EQ(read(), EIO);
  EXPECT_TRUE(server_->revoked.empty());
}

TEST_F(FileLocksTest, DataIsRefusedWhenItsLockHasGone) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->stateids.clear();
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(server_->data_stateids.size(), 1u);
}

TEST_F(FileLocksTest, WhatIsLostWhileItIsUnlockedIsNotMissed) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  Outcome unlocked;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kRead, kAll}), &unlocked));
  environment_->settle();
  server_->restart();  // no grace
  environment_->transport()->lose();
  server_->serve_for(seconds(10));
  EXPECT_EQ(number(unlocked), 0);
  EXPECT_EQ(read(), 0);
}

TEST_F(FileLocksTest, WhatIsHadBackInPartIsGivenBack) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(lock({1, LockKind::kWrite, {20, 29}}), 0);
  server_->restart();
  server_->in_grace = true;
  server_->lock_errors = {Stat::NFS4_OK, Stat::NFS4ERR_RECLAIM_CONFLICT};
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  server_->in_grace = false;
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_TRUE(server_->locks.empty());
  EXPECT_EQ(read(), 0);
}

TEST_F(FileLocksTest, ALockOnAFileThatIsNoMoreIsGone) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->unlock_errors = {Stat::NFS4ERR_STALE};
  EXPECT_EQ(unlock(1, kAll), 0);
  EXPECT_EQ(nfs_->locks_held(), 0u);
}

TEST_F(FileLocksTest, AnErrorThatTheServerGivesIsNotAskedForAgainAndAgain) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->unlock_errors.assign(100, Stat::NFS4ERR_SERVERFAULT);
  EXPECT_EQ(unlock(1, kAll), EIO);
  close();
  EXPECT_FALSE(nfs_->holds(file_));
  const std::size_t asked = times(Op::OP_LOCKU);
  server_->serve_for(seconds(40));
  EXPECT_EQ(times(Op::OP_LOCKU), asked);
}

TEST_F(FileLocksTest, AServerThatAlwaysWantsAReclaimGetsFewOfThem) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->status_flags = xdr::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
  server_->in_grace = true;
  for (int i = 0; i < 20; ++i)
    expect_getattr_works_soon();
  EXPECT_GE(server_->sessions, 2u);
  EXPECT_LE(server_->sessions, 3u);
}

class SoftFileLocksTest : public FileLocksTest {
 protected:
  SoftFileLocksTest() : FileLocksTest(true) {}
};

TEST_F(SoftFileLocksTest, WhatNobodyWaitsForAnyMoreIsUnlockedAllTheSame) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  Outcome unlocked;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kRead, kAll}), &unlocked));
  environment_->settle();
  environment_->advance(seconds(30));  // and no answer
  EXPECT_EQ(number(unlocked), ETIMEDOUT);
  EXPECT_FALSE(server_->locks.empty());
  server_->serve_for(seconds(60));
  EXPECT_TRUE(server_->locks.empty());
  EXPECT_EQ(nfs_->locks_held(), 0u);
}

TEST_F(SoftFileLocksTest, AReclaimThatIsAlwaysPutOffEnds) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->restart();
  server_->open_errors.assign(1000, Stat::NFS4ERR_DELAY);
  environment_->transport()->lose();
  std::optional<Result<Attributes>> got;
  ask(&got, op_);
  server_->serve_for(seconds(300));
  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE(got->ok());
}

TEST_F(SoftFileLocksTest, ACloseThatWasNotAnsweredIsMadeAgain) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  nfs_->close(file_);
  environment_->settle();
  environment_->advance(seconds(30));
  server_->serve_for(seconds(90));
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(SoftFileLocksTest, ALockThatWasNotAnsweredIsNobodys) {
  for (const bool first : {true, false}) {
    if (!first) {
      EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
    }
    Outcome locked;
    start_lock(&locked, {1, LockKind::kWrite, {5, 29}});
    for (int i = 0; first && i < 2; ++i) {  // RECLAIM_COMPLETE, OPEN
      EXPECT_TRUE(server_->serve_one());
      environment_->settle();
    }
    server_->run_unanswered();
    environment_->advance(seconds(30));
    EXPECT_EQ(number(locked), ETIMEDOUT);
    EXPECT_EQ(server_->locks.held().size(), 1u);
    server_->serve_for(seconds(60));
    // What its owner had before stays.
    ASSERT_EQ(server_->locks.held().size(), first ? 0u : 1u);
    if (!first) {
      EXPECT_EQ(server_->locks.held()[0].range, (ByteRange{0, 9}));
    }
    EXPECT_EQ(nfs_->locks_held(), first ? 0u : 1u);
  }
}

TEST_F(SoftFileLocksTest, WhoHasTheNameOfAnOwnerThatIsGoneKeepsItsLocks) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  Outcome unlocked;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kRead, kAll}), &unlocked));
  environment_->settle();
  environment_->advance(seconds(9));
  EXPECT_EQ(number(unlocked), ETIMEDOUT);
  EXPECT_EQ(lock({1, LockKind::kWrite, {20, 29}}), 0);
  server_->serve_for(seconds(60));
  ASSERT_EQ(server_->locks.held().size(), 1u);
  EXPECT_EQ(server_->locks.held()[0].range, (ByteRange{20, 29}));
  EXPECT_EQ(nfs_->locks_held(), 1u);
}

TEST_F(FileLocksTest, AnOpenThatTheServerHasForgottenIsMadeAnew) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(unlock(1, kAll), 0);
  server_->stateids.clear();
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  EXPECT_EQ(server_->opens_seen.size(), 2u);
}

TEST_F(FileLocksTest, ALockWaitsForTheEndOfGrace) {
  server_->in_grace = true;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 9}});
  server_->serve_for(seconds(20));
  EXPECT_FALSE(done.has_value());
  server_->in_grace = false;
  server_->serve_for(seconds(10));
  EXPECT_EQ(number(done), 0);
}

TEST_F(FileLocksTest, ErrorsOfOpenAndLockAreTheApplications) {
  server_->open_errors = {Stat::NFS4ERR_ACCESS};
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), EACCES);
  server_->lock_errors = {Stat::NFS4ERR_DEADLOCK};
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), EDEADLK);
  EXPECT_EQ(nfs_->locks_held(), 0u);
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(FileLocksTest, ALostReplyLeavesOneLock) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {100, 109}}), 0);
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 9}});
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(server_->locks.held().size(), 2u);
  EXPECT_EQ(nfs_->locks_held(), 2u);
}

TEST_F(FileLocksTest, AnIdleClientIsHeardOfWithinTheLease) {
  session().set_lease(seconds(20));
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  server_->seen.clear();
  server_->serve_for(seconds(60));
  EXPECT_GE(server_->seen.size(), 5u);
  EXPECT_LE(server_->seen.size(), 8u);
  for (const auto& compound : server_->seen)
    EXPECT_EQ(compound, std::vector<Op>{Op::OP_SEQUENCE});
}

TEST_F(FileLocksTest, TheEndOfASessionClosesEverything) {
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  struct End {
    static Task<void> run(Nfs4Operations& nfs, const OpContext& op, bool* done) {
      co_await nfs.end(op);
      *done = true;
    }
  };
  bool done = false;
  group_.spawn(End::run(*nfs_, op_, &done));
  server_->serve_for(seconds(5));
  EXPECT_TRUE(done);
  EXPECT_TRUE(server_->stateids.empty());
  ASSERT_FALSE(server_->seen.empty());
  EXPECT_EQ(server_->seen.back(), std::vector<Op>{Op::OP_DESTROY_CLIENTID});
}

}  // namespace
}  // namespace nfsrdma
