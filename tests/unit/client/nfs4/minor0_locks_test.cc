// SPDX-License-Identifier: Apache-2.0
// Byte-range locks by NFSv4.0: opens by name, owners whose requests are counted, and what is left
// of it when the server restarts or the lease is over.
#include "tests/unit/client/nfs4/minor0_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;

class Minor0Locks : public Minor0Test {
 protected:
  explicit Minor0Locks(bool soft = false) : Minor0Test(soft) {
    EXPECT_EQ(begin(), 0) << detail_;
    server_->seen.clear();
  }
};

TEST_F(Minor0Locks, TheFirstLockOpensTheFileByItsNameAndTheLastCloseClosesIt) {
  EXPECT_EQ(lock(1, {0, 9}, LockKind::kRead), 0);
  ASSERT_EQ(server_->opens_seen.size(), 1u);
  EXPECT_EQ(server_->opens_seen[0].share_access, xdr::OPEN4_SHARE_ACCESS_READ);
  EXPECT_EQ(lock(1, {20, 29}, LockKind::kRead), 0);
  EXPECT_EQ(lock(2, {40, 49}, LockKind::kWrite), 0);
  EXPECT_EQ(server_->times(Op::OP_OPEN_CONFIRM), 1u);
  EXPECT_EQ(server_->times(Op::OP_OPEN), 2u);  // the other one for writing
  EXPECT_EQ(held(), 3u);
  EXPECT_EQ(server_->lock_owners(), 2u);
  EXPECT_EQ(unlock(1, {0, 4}), 0);
  EXPECT_EQ(unlock(1), 0);
  EXPECT_EQ(server_->lock_owners(), 1u);
  EXPECT_EQ(lock(1, {0, 9}), 0);
  close();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(server_->lock_owners(), 0u);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Minor0Locks, ACloseThatIsOnItsWayTakesNoLaterLockAlong) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(unlock(1), 0);
  nfs_->close(file_);
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->serve_for(seconds(1));
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(server_->opens(), 1u);
  close();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(server_->opens(), 0u);
}

TEST_F(Minor0Locks, WithoutANameThereIsNoLock) {
  has_place_ = false;
  EXPECT_EQ(lock(1, {0, 9}), ENOLCK);
  has_place_ = true;
  place_.name = "elsewhere";
  EXPECT_EQ(lock(1, {0, 9}), ENOLCK);
  EXPECT_FALSE(nfs_->holds(file_) && nfs_->locks_held() != 0);
  place_.name = "f";
  EXPECT_EQ(lock(1, {0, 9}), 0);
}

TEST_F(Minor0Locks, AnotherFileOfThatNameIsNotLocked) {
  server_->names["f"] = "f7";
  EXPECT_EQ(lock(1, {0, 9}), ENOLCK);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_TRUE(server_->locks["f7"].empty());
  server_->names["f"] = "f0";
  EXPECT_EQ(lock(1, {0, 9}), 0);
}

TEST_F(Minor0Locks, WhoIsRefusedMayAskAgain) {
  server_->lock_elsewhere({5, 5});
  EXPECT_EQ(lock(1, {0, 9}), EAGAIN);
  EXPECT_EQ(lock(1, {0, 9}), EAGAIN);
  EXPECT_EQ(lock(1, {0, 4}), 0);
  EXPECT_EQ(lock(1, {0, 9}), EAGAIN);
  EXPECT_EQ(lock(1, {6, 9}), 0);
  server_->lock_errors = {Stat::NFS4ERR_DELAY, Stat::NFS4ERR_RESOURCE};
  EXPECT_EQ(lock(1, {20, 29}), EIO);
  EXPECT_EQ(lock(1, {20, 29}), 0);
  EXPECT_EQ(unlock(1), 0);
}

TEST_F(Minor0Locks, TestLooksAtTheFile) {
  server_->lock_elsewhere({5, 8});
  EXPECT_EQ(lock(1, {20, 29}), 0);
  const auto ask = [&](FileLock wanted) {
    std::optional<Result<std::optional<LockHolder>>> done;
    group_.spawn(keep(nfs_->test_lock(op_, file_, wanted), &done));
    server_->serve_for(seconds(2));
    EXPECT_TRUE(done.has_value() && done->ok());
    return (*done)->has_value();
  };
  EXPECT_TRUE(ask({2, LockKind::kRead, {0, 9}}));
  EXPECT_TRUE(ask({2, LockKind::kRead, {25, 25}}));
  EXPECT_FALSE(ask({1, LockKind::kRead, {0, 4}}));
}

// A server knows the locker's own locks by its name for this file.
TEST_F(Minor0Locks, OwnLocksAreNotInTheWayOfATest) {
  EXPECT_EQ(lock(1, {20, 29}), 0);
  std::optional<Result<std::optional<LockHolder>>> done;
  group_.spawn(keep(nfs_->test_lock(op_, file_, {1, LockKind::kWrite, {20, 25}}), &done));
  server_->serve_for(seconds(2));
  ASSERT_TRUE(done.has_value() && done->ok());
  EXPECT_FALSE((*done)->has_value());
}

TEST_F(Minor0Locks, DataGoesUnderTheNewestStateid) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(lock(1, {20, 29}), 0);
  EXPECT_EQ(unlock(1, {0, 4}), 0);
  EXPECT_EQ(read(), 0);
  ASSERT_EQ(server_->reads.size(), 2u);
  EXPECT_EQ(server_->reads[0].stateid.seqid, 1u);
  EXPECT_EQ(server_->reads[1].stateid.seqid, 3u);
  EXPECT_EQ(server_->reads[0].stateid.other, server_->reads[1].stateid.other);
}

TEST_F(Minor0Locks, AReadThatALockHasOvertakenIsMadeAgain) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->read_errors = {Stat::NFS4ERR_OLD_STATEID};
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->reads.size(), 2u);
  // A server that always says so.
  server_->read_errors.assign(100, Stat::NFS4ERR_OLD_STATEID);
  EXPECT_EQ(read(), EIO);
  EXPECT_LE(server_->reads.size(), 10u);
}

TEST_F(Minor0Locks, ARestartOfTheServerIsSurvived) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(lock(1, {20, 29}, LockKind::kRead), 0);
  EXPECT_EQ(lock(2, {40, 49}), 0);
  restart();  // and nobody asks for anything
  EXPECT_EQ(held(), 3u);
  EXPECT_EQ(server_->lock_reclaims, 3u);
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_PREVIOUS);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(lock(1, {60, 69}), 0);
  EXPECT_EQ(unlock(1), 0);
  EXPECT_EQ(unlock(2), 0);
  EXPECT_EQ(held(), 0u);
  close();
  EXPECT_EQ(server_->opens(), 0u);
}

// Told by the stateid, not by RENEW: the connection has stood all the time.
TEST_F(Minor0Locks, AStaleStateidTellsOfARestart) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->restart();
  server_->in_grace = true;
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->lock_reclaims, 1u);
  EXPECT_EQ(held(), 1u);
  server_->restart();
  EXPECT_EQ(unlock(1), 0);
  EXPECT_EQ(server_->lock_reclaims, 2u);
  EXPECT_EQ(held(), 0u);
}

TEST_F(Minor0Locks, ARestartInTheMiddleOfAReclaimBeginsItAnew) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->restart();
  server_->in_grace = true;
  server_->open_errors = {Stat::NFS4ERR_STALE_CLIENTID, Stat::NFS4ERR_DELAY};
  environment_->transport()->lose();
  server_->serve_for(seconds(20));
  EXPECT_EQ(held(), 1u);
}

TEST_F(Minor0Locks, WhatTheLeaseTookIsLostUntilItIsUnlocked) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->expire();
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(lock(1, {50, 59}), EIO);
  EXPECT_EQ(unlock(1), 0);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(read(), 0);
}

TEST_F(Minor0Locks, ALockThatAloneIsGoneIsLost) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  const std::uint64_t before = session().client_id();
  server_->revoke_locks();
  EXPECT_EQ(read(), EIO);
  server_->read_errors = {Stat::NFS4ERR_EXPIRED};
  EXPECT_EQ(unlock(1), 0);
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->read_errors = {Stat::NFS4ERR_EXPIRED};
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(session().client_id(), before);
}

TEST_F(Minor0Locks, ARenewalTellsThatTheClientIdIsGone) {
  session().set_lease(seconds(20));
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->restart();
  server_->in_grace = true;
  server_->serve_for(seconds(15));  // nobody asks for anything
  EXPECT_EQ(held(), 1u);
  server_->renew_errors = {Stat::NFS4ERR_CB_PATH_DOWN};
  const std::uint64_t before = session().client_id();
  server_->serve_for(seconds(15));
  EXPECT_EQ(session().client_id(), before);
}

TEST_F(Minor0Locks, ALostReplyLeavesOneLock) {
  EXPECT_EQ(lock(1, {100, 109}), 0);
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {0, 9}});
  server_->run_unanswered();
  environment_->transport()->lose();
  server_->serve_for(seconds(5));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(held(), 2u);
  EXPECT_EQ(unlock(1), 0);
  EXPECT_EQ(held(), 0u);
}

// The first run has used its numbers up, whatever the second one says.
TEST_F(Minor0Locks, ASecondRunThatDoesNotComeToTheLockLeavesItsNumberOpen) {
  EXPECT_EQ(lock(1, {100, 109}), 0);
  for (const bool runs : {false, true}) {
    Outcome done;
    start_lock(&done, {1, LockKind::kWrite, {0, 9}});
    if (runs) server_->run_unanswered();
    environment_->transport()->lose();
    server_->putfh_errors = {Stat::NFS4ERR_ACCESS};
    server_->serve_for(seconds(5));
    EXPECT_EQ(number(done), EACCES);
    EXPECT_EQ(lock(1, {20, 29}), 0) << runs;
    EXPECT_EQ(lock(2, {40, 49}), 0) << runs;
    EXPECT_EQ(unlock(2), 0);
  }
  EXPECT_EQ(server_->open_owners(), 1u);
  close();
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(held(), 0u);
}

TEST_F(Minor0Locks, WhoWaitsForALockIsToldOfTheEndAtOnce) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  Outcome done;
  group_.spawn(keep(
      nfs_->lock(locker_, file_, {2, LockKind::kWrite, {0, 9}}, LockWait::kYes, access_bits::kRead),
      &done));
  server_->serve_for(seconds(5));
  EXPECT_EQ(number(done), -1);
  nfs_->abort();
  EXPECT_EQ(number(done), EIO);
}

TEST_F(Minor0Locks, AnOpenOwnerWhoseCountIsLostBeginsAnew) {
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(unlock(1), 0);
  server_->loses_count = true;
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(server_->open_owners(), 2u);
  EXPECT_EQ(unlock(1), 0);
}

TEST_F(Minor0Locks, ADelegationIsReturned) {
  server_->delegates = true;
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(server_->delegations, 0u);
  restart();
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(server_->delegations, 0u);
}

class SoftMinor0Locks : public Minor0Locks {
 protected:
  SoftMinor0Locks() : Minor0Locks(true) {}
  /// A lock that nobody answers; `runs`: the server does it all the same.
  void lock_unanswered(ByteRange range, bool runs) {
    Outcome done;
    start_lock(&done, {1, LockKind::kWrite, range});
    if (runs) server_->run_unanswered();
    environment_->advance(seconds(30));
    EXPECT_EQ(number(done), ETIMEDOUT);
  }
};

TEST_F(SoftMinor0Locks, WhoWasNotAnsweredFindsTheCountAgain) {
  for (const bool first_runs : {false, true}) {
    for (const bool second_runs : {false, true}) {
      EXPECT_EQ(lock(1, {0, 9}), 0);
      lock_unanswered({20, 29}, first_runs);
      lock_unanswered({40, 49}, second_runs && first_runs);
      EXPECT_EQ(lock(1, {60, 69}), 0) << first_runs << second_runs;
      EXPECT_EQ(read(), 0);
      EXPECT_EQ(unlock(1), 0);
      EXPECT_EQ(held(), 0u);
    }
  }
}

TEST_F(SoftMinor0Locks, ALockThatWasNotAnsweredIsNobodys) {
  EXPECT_EQ(lock(2, {100, 109}), 0);  // so that the file is open
  for (const bool runs : {false, true}) {
    lock_unanswered({0, 9}, runs);
    EXPECT_EQ(held(), runs ? 2u : 1u);
    server_->serve_for(seconds(60));
    EXPECT_EQ(held(), 1u);
  }
}

TEST_F(SoftMinor0Locks, AnOpenThatWasNotAnsweredIsClosed) {
  for (const bool runs : {false, true}) {
    lock_unanswered({0, 9}, runs);  // the OPEN in front of it
    EXPECT_EQ(server_->opens(), runs ? 1u : 0u);
    close();
    server_->serve_for(seconds(60));
    EXPECT_EQ(server_->opens(), 0u);
    EXPECT_FALSE(nfs_->holds(file_));
    // Or used.
    lock_unanswered({0, 9}, runs);
    EXPECT_EQ(lock(1, {0, 9}), 0);
    EXPECT_EQ(server_->opens(), 1u);
    close();
    EXPECT_EQ(server_->opens(), 0u);
    EXPECT_EQ(held(), 0u);
  }
}

TEST_F(SoftMinor0Locks, AnOpenThatWasNotAnsweredOfAFileThatIsGoneIsGivenUp) {
  lock_unanswered({0, 9}, true);
  server_->names["f"] = "f7";
  close();
  server_->serve_for(seconds(60));
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(Minor0Locks, WhatTheServerDoesNotLetGoOfIsNotForgotten) {
  for (const Stat error : {Stat::NFS4ERR_LOCKS_HELD, Stat::NFS4ERR_BAD_SEQID}) {
    EXPECT_EQ(lock(1, {0, 9}), 0);
    server_->close_errors.assign(2, error);
    close();
    EXPECT_EQ(server_->opens(), 1u);
    server_->serve_for(seconds(60));
    EXPECT_EQ(server_->opens(), 0u);
    EXPECT_EQ(held(), 0u);
    EXPECT_FALSE(nfs_->holds(file_));
  }
  // Not for ever.
  EXPECT_EQ(lock(1, {0, 9}), 0);
  server_->close_errors.assign(100, Stat::NFS4ERR_LOCKS_HELD);
  close();
  server_->serve_for(seconds(200));
  EXPECT_GT(server_->close_errors.size(), 90u);
  EXPECT_FALSE(nfs_->holds(file_));
}

TEST_F(SoftMinor0Locks, AFirstLockThatWasNotAnsweredIsTheOwners) {
  for (const bool runs : {false, true}) {
    EXPECT_EQ(lock(2, {100, 109}), 0);  // so that the file is open
    lock_unanswered({0, 9}, runs);
    EXPECT_EQ(lock(1, {0, 9}), 0) << runs;
    EXPECT_EQ(read(), 0);
    EXPECT_EQ(unlock(1), 0);
    EXPECT_EQ(unlock(2), 0);
    EXPECT_EQ(held(), 0u);
    EXPECT_EQ(server_->open_owners(), 1u);
  }
}

}  // namespace
}  // namespace nfsrdma
