// SPDX-License-Identifier: Apache-2.0
// What is open and locked when its file system moves to another server: opened there by itself,
// locks lost, and nothing left with the server before; whoever asks that one for a change of it is
// told to ask the other.
#include "client/referral.h"
#include "tests/unit/client/nfs4/minor0_fixture.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;
using Outcome = std::optional<Result<void>>;
using namespace access_bits;

constexpr std::uint32_t kBoth = kRead | kModify;

/// Another server, and a client of it.
template <typename Server>
struct Other {
  explicit Other(std::uint32_t minor) {
    auto its = std::make_unique<FakeEnvironment>();
    environment = its.get();
    rpc = std::make_unique<RpcClient>(std::move(its), impatient_options(false));
    server = std::make_unique<Server>(*environment);
    nfs4::SessionOptions options;
    options.minor = minor;
    options.any_minor = minor > 0;
    options.slots = 4;
    options.owner = "other";
    nfs = std::make_unique<Nfs4Operations>(*rpc, std::move(options));
  }
  ~Other() {
    nfs->abort();
    rpc->abort_all();
  }

  FakeEnvironment* environment = nullptr;
  std::unique_ptr<RpcClient> rpc;
  std::unique_ptr<Server> server;
  std::unique_ptr<Nfs4Operations> nfs;
};

bool every(const FileHandle&) {
  return true;
}

class MovedFilesTest : public OpensTest {
 protected:
  MovedFilesTest() : OpensTest(false) {
    std::optional<Result<void>> done;
    group_.spawn(keep(there_.nfs->begin(op_, &detail_), &done));
    there_.server->serve_for(seconds(10));
    EXPECT_TRUE(done && done->ok());
  }
  ~MovedFilesTest() override {
    there_.nfs->abort();
    there_.rpc->abort_all();
  }
  void move(const WhichFiles& which = every) {
    there_.nfs->take_over(nfs_->hand_over(which));
    there_.server->serve_for(seconds(2));
  }
  int lock(LockOwnerId owner, LockKind kind) {
    Outcome done;
    const FileLock wanted{owner, kind, {0, 9}};
    group_.spawn(keep(nfs_->lock(op_, file_, wanted, LockWait::kNo, kBoth), &done));
    server_->serve_for(seconds(2));
    return number(done);
  }
  int read_there() {
    std::optional<Result<ReadResult>> done;
    group_.spawn(keep(there_.nfs->read_once(op_, file_, 0, room_), &done));
    there_.server->serve_for(seconds(2));
    return number(done);
  }
  int unlock_there(LockOwnerId owner) {
    Outcome done;
    const FileLock all{owner, LockKind::kWrite, kAllBytes};
    group_.spawn(keep(there_.nfs->unlock(op_, file_, all), &done));
    there_.server->serve_for(seconds(2));
    return number(done);
  }
  void expect_nothing_is_left() {
    EXPECT_EQ(nfs_->files_open(), 0u);
    EXPECT_EQ(nfs_->locks_held(), 0u);
    there_.nfs->close(file_);
    there_.server->serve_for(seconds(2));
    EXPECT_TRUE(there_.server->stateids.empty());
    EXPECT_EQ(there_.nfs->files_open(), 0u);
  }

  Other<FakeNfs4Server> there_{2};
};

TEST_F(MovedFilesTest, OpensAreMadeThereAndTheFirstServerHearsNothing) {
  ASSERT_EQ(open({.access = kBoth}), 0);
  server_->seen.clear();
  move();
  EXPECT_TRUE(server_->seen.empty());
  ASSERT_EQ(there_.server->opens_seen.size(), 1u);
  EXPECT_EQ(there_.server->opens_seen[0].share_access & 3, xdr::OPEN4_SHARE_ACCESS_BOTH);
  EXPECT_EQ(there_.server->opens_seen[0].claim.claim, xdr::open_claim_type4::CLAIM_FH);
  EXPECT_EQ(read_there(), 0);
  EXPECT_EQ(there_.server->data_stateids.back(), *there_.server->stateids.begin());
  EXPECT_TRUE(there_.nfs->open_already(op_, file_, kRead));
  expect_nothing_is_left();
}

TEST_F(MovedFilesTest, OthersStay) {
  ASSERT_EQ(open({.access = kRead}), 0);
  move([](const FileHandle&) { return false; });
  EXPECT_EQ(nfs_->files_open(), 1u);
  EXPECT_EQ(there_.nfs->files_open(), 0u);
}

/// Others may have had it in between.
TEST_F(MovedFilesTest, LocksAreLostUntilTheyAreUnlocked) {
  ASSERT_EQ(open({.access = kBoth}), 0);
  ASSERT_EQ(lock(1, LockKind::kWrite), 0);
  move();
  EXPECT_TRUE(there_.server->locks.empty());
  EXPECT_EQ(read_there(), EIO);
  EXPECT_EQ(unlock_there(1), 0);
  EXPECT_EQ(read_there(), 0);
  expect_nothing_is_left();
}

TEST_F(MovedFilesTest, DenialsAreLost) {
  ASSERT_EQ(open({.access = kBoth, .deny = {kModify, 7}}), 0);
  move();
  EXPECT_EQ(read_there(), EIO);
  bool done = false;
  const auto over = [](Task<void> task, bool* its) -> Task<void> {
    co_await std::move(task);
    *its = true;
  };
  group_.spawn(over(there_.nfs->end_denial(op_, file_, 7), &done));
  there_.server->serve_for(seconds(2));
  EXPECT_TRUE(done);
  EXPECT_EQ(read_there(), 0);
  expect_nothing_is_left();
}

TEST_F(MovedFilesTest, WhoWaitsForALockIsToldToWaitThere) {
  ASSERT_EQ(open({.access = kBoth}), 0);
  server_->lock_elsewhere(LockKind::kWrite, {0, 9});
  Outcome waiting;
  const FileLock wanted{1, LockKind::kWrite, {0, 9}};
  group_.spawn(keep(nfs_->lock(op_, file_, wanted, LockWait::kYes, kBoth), &waiting));
  server_->serve_for(seconds(1));
  ASSERT_FALSE(waiting.has_value());
  move();
  environment_->settle();
  server_->serve_for(seconds(1));
  ASSERT_TRUE(waiting.has_value());
  EXPECT_TRUE(is_moved_away(waiting->error()));
  expect_nothing_is_left();
}

/// The other server knows nothing of what this one grants now.
TEST_F(MovedFilesTest, WhatIsUnderWayIsToBeAskedThere) {
  ASSERT_EQ(open({.access = kBoth}), 0);
  ASSERT_EQ(lock(1, LockKind::kRead), 0);
  Outcome locking, unlocking;
  const FileLock second{2, LockKind::kRead, {0, 9}}, first{1, LockKind::kWrite, kAllBytes};
  group_.spawn(keep(nfs_->lock(op_, file_, second, LockWait::kNo, kBoth), &locking));
  group_.spawn(keep(nfs_->unlock(op_, file_, first), &unlocking));  // behind it
  environment_->settle();
  move();
  server_->serve_for(seconds(2));
  ASSERT_TRUE(locking && unlocking);
  EXPECT_TRUE(is_moved_away(locking->error()));
  EXPECT_TRUE(is_moved_away(unlocking->error()));
  EXPECT_EQ(read_there(), EIO) << "1 had it";
  EXPECT_EQ(unlock_there(1), 0);
  EXPECT_EQ(read_there(), 0);
  expect_nothing_is_left();
}

TEST_F(MovedFilesTest, WhatIsBeingClosedIsNotOpenedThere) {
  ASSERT_EQ(open({.access = kBoth}), 0);
  nfs_->close(file_);
  move();
  EXPECT_TRUE(there_.server->opens_seen.empty());
  EXPECT_EQ(there_.nfs->files_open(), 0u);
  // And what is opened again behind that is.
  server_->serve_for(seconds(2));
  ASSERT_EQ(open({.access = kRead}), 0);
  nfs_->close(file_);
  ASSERT_TRUE(nfs_->open_already(op_, file_, kRead));
  move();
  EXPECT_EQ(there_.server->opens_seen.size(), 1u);
  expect_nothing_is_left();
}

/// Nobody would unlock them any more.
TEST_F(MovedFilesTest, LocksOfWhatIsBeingClosedAreNotLost) {
  ASSERT_EQ(open({.access = kBoth}), 0);
  ASSERT_EQ(lock(1, LockKind::kWrite), 0);
  nfs_->close(file_);
  move();
  EXPECT_EQ(there_.nfs->files_open(), 0u);
  EXPECT_EQ(read_there(), 0);
}

TEST_F(MovedFilesTest, WhatADelegationHidIsOpenedThere) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  ASSERT_EQ(open({.access = kRead, .delegation = true}), 0);
  ASSERT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
  ASSERT_TRUE(nfs_->open_already(op_, file_, kRead));
  move();
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kNone);
  EXPECT_EQ(nfs_->delegations_held(), 0u);
  EXPECT_EQ(there_.server->stateids.size(), 1u);
  EXPECT_EQ(read_there(), 0);
  expect_nothing_is_left();
}

/// The server that was left refuses to close it, and is not asked again for ever.
TEST_F(MovedFilesTest, AnOpenThatWasClosedTooLateIsForgotten) {
  ASSERT_EQ(open({.access = kRead}), 0);
  server_->close_errors.assign(2, xdr::nfsstat4::NFS4ERR_MOVED);
  nfs_->close(file_);
  server_->serve_for(std::chrono::milliseconds(500));
  ASSERT_GE(times(xdr::nfs_opnum4::OP_CLOSE), 1u);
  move();
  const std::size_t closes = times(xdr::nfs_opnum4::OP_CLOSE);
  server_->serve_for(seconds(120));
  EXPECT_EQ(times(xdr::nfs_opnum4::OP_CLOSE), closes);
  EXPECT_EQ(nfs_->files_open(), 0u);
  EXPECT_TRUE(there_.server->opens_seen.empty());
}

}  // namespace
}  // namespace nfsrdma
