// SPDX-License-Identifier: Apache-2.0
// What NFSv4.0 reclaims while requests with the former stateids are on their way, and reclaims that
// come to nothing. (No slot tells requests of before a recovery from those behind it.)
#include "tests/unit/client/nfs4/minor0_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;

class Minor0Reclaims : public Minor0Test {
 protected:
  explicit Minor0Reclaims(bool soft = false) : Minor0Test(soft) {
    session().set_lease(seconds(20));
    EXPECT_EQ(begin(), 0) << detail_;
    EXPECT_EQ(lock(1, {0, 9}, LockKind::kRead), 0);
  }
  /// The client is told that its client id is gone, which is not so.
  void doubt() {
    server_->renew_errors = {Stat::NFS4ERR_STALE_CLIENTID};
    server_->serve_for(seconds(25));
  }
  /// The lease is over, and a READ tells of it; what was asked first is answered when all is
  /// reclaimed.
  void recover_around_the_first() {
    const ClientCall* first = environment_->transport()->out().front();
    server_->expire();
    server_->in_grace = true;
    server_->instead_of_answering = [this, first] {
      auto& out = environment_->transport()->out();
      if (out.front() != first || out.size() == 1) return false;
      std::rotate(out.begin(), out.begin() + 1, out.end());
      return true;
    };
    EXPECT_EQ(read(), 0);
    server_->instead_of_answering = nullptr;
    server_->in_grace = false;
    server_->serve_for(seconds(15));
  }
  void expect_nothing_left() {
    EXPECT_EQ(unlock(1), 0);
    EXPECT_EQ(unlock(2), 0);
    close();
    server_->serve_for(seconds(20));
    EXPECT_EQ(held(), 0u);
    EXPECT_EQ(server_->opens(), 0u);
  }
};

TEST_F(Minor0Reclaims, OneThatDoesNotComeToTheOpenOrTheLockIsTriedAgain) {
  server_->putfh_errors = {Stat::NFS4ERR_IO, Stat::NFS4_OK, Stat::NFS4ERR_IO};
  restart();
  EXPECT_TRUE(server_->putfh_errors.empty());
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(read(), 0);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, OneThatNeverComesToTheOpenIsGivenUp) {
  server_->putfh_errors.assign(20, Stat::NFS4ERR_IO);
  restart();
  server_->putfh_errors.clear();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(read(), EIO);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, OneThatIsBrokenOffBeforeTheLocksGoesOnWithThem) {
  EXPECT_EQ(lock(2, {20, 29}), 0);
  server_->lock_errors = {Stat::NFS4_OK, Stat::NFS4ERR_STALE_CLIENTID};
  restart();
  EXPECT_TRUE(server_->lock_errors.empty());
  EXPECT_EQ(held(), 2u);
  EXPECT_EQ(read(), 0);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, OneThatIsPutOffGoesOnWhereItWas) {
  EXPECT_EQ(lock(2, {20, 29}), 0);
  const std::size_t opens = server_->opens_seen.size();
  server_->open_errors = {Stat::NFS4ERR_DELAY};
  server_->lock_errors = {Stat::NFS4_OK, Stat::NFS4ERR_DELAY};
  restart();
  EXPECT_EQ(server_->opens_seen.size(), opens + 2);
  EXPECT_EQ(server_->lock_reclaims, 3u);
  EXPECT_EQ(held(), 2u);
  EXPECT_EQ(read(), 0);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, WhatAnOpenBroughtBeforeTheRestartIsGone) {
  server_->grants = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {20, 29}});  // opens for more
  EXPECT_TRUE(server_->serve_one());
  environment_->settle();
  server_->grants.reset();
  server_->errors[Op::OP_DELEGRETURN].assign(3, Stat::NFS4ERR_DELAY);
  restart();
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(held(), 2u);
  EXPECT_EQ(read(), 0);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, WhatIsNotReclaimedAndStandsIsClosed) {
  doubt();
  EXPECT_EQ(read(), EIO);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, ALockThatWasOnItsWayIsAskedForAgain) {
  Outcome done;
  start_lock(&done, {2, LockKind::kRead, {20, 29}});
  recover_around_the_first();
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(held(), 2u);
  EXPECT_EQ(read(), 0);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, AnUnlockThatWasOnItsWayIsMadeAgain) {
  Outcome done;
  group_.spawn(keep(nfs_->unlock(op_, file_, {1, LockKind::kRead, {0, 9}}), &done));
  environment_->settle();
  recover_around_the_first();
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(held(), 0u);
  expect_nothing_left();
}

TEST_F(Minor0Reclaims, ACloseThatWasOnItsWayIsMadeAgain) {
  EXPECT_EQ(unlock(1), 0);
  nfs_->close(file_);
  environment_->advance(seconds(1));  // it is gathered with others
  ASSERT_FALSE(environment_->transport()->out().empty());
  recover_around_the_first();
  EXPECT_EQ(server_->opens(), 0u);
}

class SoftMinor0Reclaims : public Minor0Reclaims {
 protected:
  SoftMinor0Reclaims() : Minor0Reclaims(true) {}
};

TEST_F(SoftMinor0Reclaims, AReclaimFindsTheCountAgain) {
  Outcome done;
  start_lock(&done, {1, LockKind::kWrite, {20, 29}});  // opens for more
  environment_->advance(seconds(30));
  EXPECT_EQ(number(done), ETIMEDOUT);
  server_->in_grace = true;
  doubt();
  server_->in_grace = false;
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(read(), 0);
  expect_nothing_left();
}

}  // namespace
}  // namespace nfsrdma
