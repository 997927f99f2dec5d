// SPDX-License-Identifier: Apache-2.0
// Opens that deny something to others: told to the server with the open, each by an owner of its
// own, and gone when their owner says so. What is lost of them is not believed any more.
#include "tests/unit/client/nfs4/minor0_fixture.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::seconds;
using Opened = std::optional<Result<AccessResult>>;
using namespace access_bits;

constexpr std::uint32_t kBoth = kRead | kModify;

class ShareDenials : public OpensTest {
 protected:
  explicit ShareDenials(bool soft = false) : OpensTest(soft) {}
  int deny(LockOwnerId owner, std::uint32_t access, std::uint32_t denied) {
    return open({.access = access, .deny = {denied, owner}});
  }
  static Task<void> over(Task<void> task, bool* done) {
    co_await std::move(task);
    *done = true;
  }
  void end(LockOwnerId owner) {
    bool done = false;
    group_.spawn(over(nfs_->end_denial(op_, file_, owner), &done));
    environment_->settle();
    server_->serve_all();
    EXPECT_TRUE(done);
  }
  int read() { return OpensTest::read(op_); }
  int lock(LockOwnerId owner, LockKind kind) {
    std::optional<Result<void>> done;
    const FileLock wanted{owner, kind, {0, 9}};
    group_.spawn(keep(nfs_->lock(op_, file_, wanted, LockWait::kNo, kRead), &done));
    server_->serve_for(seconds(2));
    return number(done);
  }
  FakeNfs4Server::Share newest_share() const {
    EXPECT_FALSE(server_->shares.empty());
    return server_->shares.empty() ? FakeNfs4Server::Share{} : server_->shares.rbegin()->second;
  }
};

TEST_F(ShareDenials, TheServerIsToldWithTheOpenAndAmongOurOwn) {
  ASSERT_EQ(deny(1, kBoth, kModify), 0);
  EXPECT_EQ(server_->opens_seen.back().share_deny, xdr::OPEN4_SHARE_DENY_WRITE);
  EXPECT_EQ(newest_share().access, xdr::OPEN4_SHARE_ACCESS_BOTH);
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->data_stateids.back(), *server_->stateids.begin());
  // Asked for anew, by another owner, and refused.
  EXPECT_FALSE(nfs_->open_already(op_, file_, kRead));
  EXPECT_EQ(open({.access = kModify}), EACCES);
  EXPECT_EQ(deny(2, kRead, kRead), EACCES);
  EXPECT_EQ(open({.access = kRead}), 0);
  EXPECT_EQ(server_->shares.size(), 2u);
  EXPECT_EQ(deny(3, kRead, kModify), EACCES);  // the first one writes
  end(1);
  EXPECT_EQ(server_->shares.size(), 1u);
  EXPECT_EQ(open({.access = kModify}), 0);
  EXPECT_EQ(nfs_->files_open(), 1u);
  nfs_->close(file_);
  server_->serve_for(seconds(1));
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(ShareDenials, TheLastToEndLeavesNothing) {
  ASSERT_EQ(deny(1, kRead, kBoth), 0);
  end(1);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
  end(1);
  ASSERT_EQ(deny(2, kRead, kBoth), 0);
  nfs_->drop_denial(op_, file_, 2);
  server_->serve_for(seconds(1));
  EXPECT_TRUE(server_->stateids.empty());
  // The close of the file does it, too.
  ASSERT_EQ(deny(3, kRead, kBoth), 0);
  nfs_->close(file_);
  server_->serve_for(seconds(1));
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(ShareDenials, WhatWasLetGoOfIsNotInTheWay) {
  EXPECT_EQ(open({.access = kBoth}), 0);
  nfs_->narrow_open(op_, file_, kRead);  // the server hears of it later
  EXPECT_EQ(deny(1, kRead, kModify), 0);
  EXPECT_EQ(times(Op::OP_OPEN_DOWNGRADE), 1u);
  end(1);
  nfs_->close(file_);
  EXPECT_EQ(deny(2, kRead, kBoth), 0);
  EXPECT_EQ(server_->shares.size(), 1u);
  EXPECT_EQ(deny(3, kRead, kModify), EACCES);  // that one reads, and lets nobody
  EXPECT_EQ(server_->shares.size(), 1u);
}

TEST_F(ShareDenials, LocksOfItsOwnerAreOfItsOpen) {
  ASSERT_EQ(deny(1, kBoth, kBoth), 0);
  EXPECT_EQ(lock(1, LockKind::kWrite), 0);
  EXPECT_EQ(server_->shares.size(), 1u);
  end(1);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->locks_held(), 0u);
  EXPECT_EQ(lock(2, LockKind::kWrite), 0);
}

TEST_F(ShareDenials, ARestartOfTheServerEndsNothing) {
  ASSERT_EQ(deny(1, kBoth, kModify), 0);
  EXPECT_EQ(lock(1, LockKind::kWrite), 0);
  restart();
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_PREVIOUS);
  EXPECT_EQ(newest_share().deny, xdr::OPEN4_SHARE_DENY_WRITE);
  EXPECT_EQ(nfs_->locks_held(), 1u);
  end(1);
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(ShareDenials, OneThatIsLostIsNotBelievedAndNotMadeAnew) {
  EXPECT_EQ(open({.access = kRead}), 0);
  ASSERT_EQ(deny(1, kRead, kModify), 0);
  server_->revoke_everything();
  server_->shares.clear();
  EXPECT_EQ(read(), EIO);
  server_->serve_for(seconds(20));
  EXPECT_EQ(read(), EIO);
  EXPECT_EQ(lock(1, LockKind::kRead), EIO);
  EXPECT_EQ(truncate(), EIO);
  for (const auto& [stateid, share] : server_->shares)
    EXPECT_EQ(share.deny, 0u);
  end(1);
  EXPECT_EQ(read(), 0);
  ASSERT_EQ(deny(1, kRead, kModify), 0);
  EXPECT_EQ(newest_share().deny, xdr::OPEN4_SHARE_DENY_WRITE);
}

TEST_F(ShareDenials, WhatIsUnderWayWhenItIsLostIsRefused) {
  ASSERT_EQ(deny(1, kBoth, kModify), 0);
  std::optional<Result<ReadResult>> done;
  group_.spawn(keep(nfs_->read_once(op_, file_, 0, room_), &done));
  environment_->settle();
  server_->data_stateids.clear();
  server_->open_errors = {Stat::NFS4ERR_NO_GRACE};
  restart();
  EXPECT_EQ(number(done), EIO);
  for (const std::uint64_t by : server_->data_stateids)
    EXPECT_NE(by, 0u) << "it could have been a WRITE";
  EXPECT_TRUE(server_->stateids.empty());
  end(1);
  EXPECT_EQ(read(), 0);
}

TEST_F(ShareDenials, WhatIsMadeIsDeniedFromTheFirstMomentOn) {
  std::optional<Result<CreateResult>> done;
  const FileHandle directory = file_;
  const OpenFor how{.access = kModify, .deny = {kBoth, 5}};
  group_.spawn(
      keep(nfs_->create_open(op_, directory, "new", CreateMode::kExclusive, SetAttributes{}, how),
           &done));
  server_->serve_for(seconds(2));
  ASSERT_EQ(number(done), 0);
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_EQ(newest_share().deny, xdr::OPEN4_SHARE_DENY_BOTH);
  file_ = (*done)->handle;
  end(5);
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(ShareDenials, WhoIsInterruptedDeniesNothing) {
  CancelToken cancel;
  OpContext op = op_;
  op.cancel = &cancel;
  Opened done;
  start_open(&done, {.access = kRead, .deny = {kBoth, 1}}, op);
  cancel.cancel();
  EXPECT_EQ(number(done), EINTR);
  server_->serve_for(seconds(2));
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(ShareDenials, AnEndThatTheServerRefusesIsTriedAgain) {
  EXPECT_EQ(open({.access = kRead}), 0);
  ASSERT_EQ(deny(1, kRead, kModify), 0);
  server_->close_errors = {Stat::NFS4ERR_SERVERFAULT, Stat::NFS4ERR_SERVERFAULT};
  end(1);
  EXPECT_EQ(server_->shares.size(), 2u);
  server_->serve_for(seconds(60));
  EXPECT_EQ(server_->shares.size(), 1u);
  EXPECT_EQ(newest_share().deny, 0u);
}

class SoftShareDenials : public ShareDenials {
 protected:
  SoftShareDenials() : ShareDenials(true) {}
};

TEST_F(SoftShareDenials, OneWithoutAnAnswerDoesNotStay) {
  Opened done;
  start_open(&done, {.access = kRead, .deny = {kBoth, 1}}, op_);
  server_->run_unanswered();
  environment_->advance(seconds(30));
  EXPECT_EQ(number(done), ETIMEDOUT);
  server_->serve_for(seconds(60));
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(SoftShareDenials, NorDoesOneBesideAnOpenThatStays) {
  EXPECT_EQ(open({.access = kRead}), 0);
  Opened done;
  start_open(&done, {.access = kRead, .deny = {kModify, 1}}, op_);
  server_->run_unanswered();
  environment_->advance(seconds(70));
  EXPECT_EQ(number(done), ETIMEDOUT);
  EXPECT_EQ(server_->shares.size(), 2u);
  server_->serve_for(seconds(60));
  ASSERT_EQ(server_->shares.size(), 1u);
  EXPECT_EQ(newest_share().deny, 0u);
}

class Minor0ShareDenials : public Minor0Test {
 protected:
  Minor0ShareDenials() {
    EXPECT_EQ(begin(), 0) << detail_;
    op_.place = &place_;
  }
  int deny(LockOwnerId owner, std::uint32_t access, std::uint32_t denied) {
    Opened done;
    const OpenFor how{.access = access, .deny = {denied, owner}};
    group_.spawn(keep(nfs_->open(op_, file_, 0x3f, how), &done));
    server_->serve_for(seconds(2));
    if (!done) return -1;
    return done->ok() ? 0 : done->error().sys;
  }
  void end(LockOwnerId owner) {
    nfs_->drop_denial(op_, file_, owner);
    server_->serve_for(seconds(2));
  }
};

TEST_F(Minor0ShareDenials, OpensByNameAndDataShowsTheOpen) {
  ASSERT_EQ(deny(1, kBoth, kModify), 0);
  ASSERT_EQ(server_->opens_seen.size(), 1u);
  EXPECT_EQ(server_->opens_seen[0].share_deny, xdr::OPEN4_SHARE_DENY_WRITE);
  EXPECT_EQ(server_->opens(), 1u);
  // The anonymous stateid would be refused.
  EXPECT_EQ(read(), 0);
  EXPECT_NE(server_->reads.back().stateid.other, xdr::stateid4{}.other);
  EXPECT_EQ(lock(1, {0, 9}), 0);
  EXPECT_EQ(server_->opens(), 1u);
  end(1);
  EXPECT_EQ(server_->opens(), 0u);
  EXPECT_EQ(server_->lock_owners(), 0u);
  EXPECT_FALSE(nfs_->holds(file_));
  EXPECT_EQ(read(), 0);
  EXPECT_EQ(server_->reads.back().stateid.other, xdr::stateid4{}.other);
}

TEST_F(Minor0ShareDenials, ANewFileIsClosedBeforeItIsDenied) {
  Made made;
  start_create(&made, "new");
  while (!made && server_->serve_one())
    environment_->settle();
  ASSERT_TRUE(made && made->ok());
  file_ = (*made)->handle;
  EXPECT_EQ(server_->opens(), 1u);  // CLOSE is to come
  place_.name = "new";
  EXPECT_EQ(deny(5, kModify, kBoth), 0);
  EXPECT_EQ(server_->opens_seen.back().share_deny, xdr::OPEN4_SHARE_DENY_BOTH);
  const auto& seen = server_->seen;
  const auto closed = std::find_if(seen.begin(), seen.end(), [](const auto& ops) {
    return std::find(ops.begin(), ops.end(), Op::OP_CLOSE) != ops.end();
  });
  const auto opened = std::find_if(seen.rbegin(), seen.rend(), [](const auto& ops) {
    return std::find(ops.begin(), ops.end(), Op::OP_OPEN) != ops.end();
  });
  ASSERT_NE(closed, seen.end());
  EXPECT_LT(closed - seen.begin(), seen.rend() - opened - 1);
  EXPECT_EQ(server_->opens(), 1u);
  end(5);
  EXPECT_EQ(server_->opens(), 0u);
}

}  // namespace
}  // namespace nfsrdma
