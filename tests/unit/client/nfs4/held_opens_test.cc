// SPDX-License-Identifier: Apache-2.0
// Files that are open on the server from open() to close(): with what they were opened for, through
// restarts, the ends of delegations, lost answers and opens that come in between.
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Ops = std::vector<Op>;
using Opened = std::optional<Result<AccessResult>>;
using namespace access_bits;

constexpr std::array<std::byte, 1> kMadeBytes{std::byte{7}};
const FileHandle kMade(kMadeBytes);  // whatever the fake server makes

class HeldOpens : public OpensTest {
 protected:
  explicit HeldOpens(bool soft = false) : OpensTest(soft) {}
  void start_open(Opened* out, std::uint32_t access, const OpContext& op, bool delegation = false) {
    OpensTest::start_open(out, {access, delegation}, op);
  }
  int open(std::uint32_t access, bool delegation = false) {
    return OpensTest::open({access, delegation});
  }
  void close() {
    nfs_->close(file_);
    server_->serve_for(seconds(2));
  }
  std::uint64_t read_by() {
    EXPECT_EQ(read(op_), 0);
    return server_->data_stateids.back();
  }
  int create(std::uint32_t open_for, CreateMode mode = CreateMode::kGuarded,
             CancelToken* cancel = nullptr) {
    std::optional<Result<CreateResult>> done;
    OpContext op = op_;
    op.cancel = cancel;
    SetAttributes set;
    set.mode = 0600;
    const FileHandle directory = file_;
    group_.spawn(keep(
        nfs_->create_open(op, directory, "new", mode, set, OpenFor{.access = open_for}), &done));
    environment_->settle();
    if (cancel != nullptr) cancel->cancel();
    server_->serve_for(seconds(2));
    if (number(done) == 0) made_ = (*done)->handle;
    return number(done);
  }

  int lock(const FileLock& wanted) {
    std::optional<Result<void>> done;
    group_.spawn(keep(nfs_->lock(op_, file_, wanted, LockWait::kNo, kRead | kModify), &done));
    server_->serve_for(seconds(1));
    return number(done);
  }
  int unlock_all(LockOwnerId owner) {
    const FileLock all{owner, LockKind::kWrite, {0, UINT64_MAX}};
    std::optional<Result<void>> done;
    group_.spawn(keep(nfs_->unlock(op_, file_, all), &done));
    server_->serve_for(seconds(1));
    return number(done);
  }
  void narrow(std::uint32_t access) {
    nfs_->narrow_open(op_, file_, access);
    server_->serve_for(seconds(1));
  }
  /// Of the only OPEN.
  std::uint32_t share() const {
    EXPECT_EQ(server_->shares.size(), 1u);
    return server_->shares.empty() ? 0 : server_->shares.begin()->second.access;
  }

  FileHandle made_;
};

TEST_F(HeldOpens, OneCompoundOpensAndLooks) {
  EXPECT_EQ(open(kRead), 0);
  const Ops expected{Op::OP_SEQUENCE, Op::OP_PUTFH, Op::OP_OPEN, Op::OP_ACCESS, Op::OP_GETATTR};
  EXPECT_EQ(server_->seen.back(), expected);
  EXPECT_EQ(server_->opens_seen.back().share_access,
            xdr::OPEN4_SHARE_ACCESS_READ | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG);
  EXPECT_EQ(nfs_->files_open(), 1u);
  // Whoever has it open is not asked for it again.
  EXPECT_EQ(open(kRead), 0);
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_EQ(times(Op::OP_ACCESS), 2u);
  close();
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(HeldOpens, DataTravelsWithWhatWasOpenedForIt) {
  EXPECT_EQ(read_by(), 0u);
  EXPECT_EQ(open(kModify), 0);
  EXPECT_EQ(read_by(), 0u);  // not open for that
  EXPECT_EQ(open(kRead), 0);
  // It may not be allowed any more to write it.
  EXPECT_EQ(server_->opens_seen.back().share_access & xdr::OPEN4_SHARE_ACCESS_BOTH,
            xdr::OPEN4_SHARE_ACCESS_READ);
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(read_by(), *server_->stateids.begin());
  close();
  EXPECT_EQ(read_by(), 0u);
}

TEST_F(HeldOpens, EveryIdentityHasItsOwn) {
  OpContext other = op_;
  other.identity.uid = 77;
  EXPECT_EQ(open(kRead), 0);
  const std::uint64_t first = *server_->stateids.begin();
  Opened done;
  start_open(&done, kRead, other);
  server_->serve_for(seconds(1));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(server_->stateids.size(), 2u);
  EXPECT_EQ(read_by(), first);
  EXPECT_EQ(read(other), 0);
  EXPECT_NE(server_->data_stateids.back(), first);
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(HeldOpens, WhoIsInterruptedLeavesNothingOpen) {
  CancelToken cancel;
  OpContext op = op_;
  op.cancel = &cancel;
  Opened done;
  start_open(&done, kRead, op);
  cancel.cancel();
  EXPECT_EQ(number(done), EINTR);
  server_->serve_for(seconds(2));
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
  // Somebody else's open stays.
  EXPECT_EQ(open(kRead), 0);
  CancelToken once_more;
  op.cancel = &once_more;
  Opened again;
  start_open(&again, kRead | kModify, op);
  once_more.cancel();
  server_->serve_for(seconds(2));
  EXPECT_EQ(server_->stateids.size(), 1u);
}

TEST_F(HeldOpens, AnOpenInFrontOfTheCloseIsKept) {
  EXPECT_EQ(open(kRead), 0);
  // The close comes behind a lock that waits for the server.
  std::optional<Result<void>> locked;
  group_.spawn(
      keep(nfs_->lock(op_, file_, {1, LockKind::kRead, {0, 9}}, LockWait::kNo, kRead), &locked));
  environment_->settle();
  nfs_->close(file_);
  Opened done;
  start_open(&done, kRead, op_);
  server_->serve_for(seconds(2));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(times(Op::OP_CLOSE), 0u);
  EXPECT_EQ(nfs_->files_open(), 1u);
}

TEST_F(HeldOpens, AnOpenBehindTheCloseIsMadeAnew) {
  EXPECT_EQ(open(kRead), 0);
  const std::uint64_t first = *server_->stateids.begin();
  nfs_->close(file_);
  environment_->settle();
  environment_->advance(milliseconds(6));  // CLOSE is on its way
  Opened done;
  start_open(&done, kRead, op_);
  EXPECT_FALSE(nfs_->open_already(op_, file_, kRead));
  server_->serve_for(seconds(2));
  EXPECT_EQ(number(done), 0);
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_NE(*server_->stateids.begin(), first);
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(HeldOpens, WhatIsOpenedAgainAtOnceStaysOpen) {
  for (int i = 0; i < 5; ++i) {
    Opened done;
    start_open(&done, kRead, op_);
    server_->serve_all();
    EXPECT_EQ(number(done), 0);
    nfs_->close(file_);
  }
  EXPECT_EQ(open(kRead), 0);
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_EQ(times(Op::OP_CLOSE), 0u);
  EXPECT_EQ(nfs_->files_open(), 1u);
  nfs_->close(file_);
  server_->serve_for(seconds(1));
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(HeldOpens, FilesThatAreClosedAtOnceGoTogether) {
  for (int round = 0; round < 3; ++round) {
    std::vector<FileHandle> files;
    for (int i = 0; i < 5; ++i) {
      const std::array<std::byte, 2> bytes{std::byte{7}, static_cast<std::byte>(i)};
      files.push_back(file_ = FileHandle(bytes));
      EXPECT_EQ(open(kRead), 0);
    }
    server_->seen.clear();
    const std::vector<std::uint64_t> there(server_->stateids.begin(), server_->stateids.end());
    ASSERT_EQ(there.size(), 5u);
    if (round == 1) server_->stateids.erase(there[2]);  // the server has lost one
    if (round == 2) {
      server_->close_errors = {Stat::NFS4_OK, Stat::NFS4ERR_DELAY, Stat::NFS4_OK,
                               Stat::NFS4ERR_SERVERFAULT};
    }
    for (const FileHandle& file : files)
      nfs_->close(file);
    server_->serve_for(milliseconds(500));
    EXPECT_EQ(server_->stateids.size(), round == 2 ? 1u : 0u);
    EXPECT_EQ(nfs_->files_open(), round == 2 ? 1u : 0u);
    if (round == 0) {
      EXPECT_EQ(server_->seen.size(), 1u);
      EXPECT_EQ(times(Op::OP_CLOSE), 5u);
    }
    server_->serve_for(seconds(60));
    EXPECT_TRUE(server_->stateids.empty());
    EXPECT_EQ(nfs_->files_open(), 0u);
  }
}

TEST_F(HeldOpens, WhatIsMadeStaysOpen) {
  for (const CreateMode mode : {CreateMode::kGuarded, CreateMode::kExclusive}) {
    server_->settings.clear();
    ASSERT_EQ(create(kRead | kModify, mode), 0);
    EXPECT_EQ(server_->opens_seen.back().share_access & xdr::OPEN4_SHARE_ACCESS_BOTH,
              xdr::OPEN4_SHARE_ACCESS_BOTH);
    EXPECT_EQ(server_->settings.front().by, Op::OP_OPEN);
    EXPECT_TRUE(server_->settings.front().mask.has(xdr::fattr4_number::FATTR4_MODE));
    EXPECT_EQ(server_->stateids.size(), 1u);
    EXPECT_TRUE(nfs_->holds(made_));
    nfs_->close(made_);
    server_->serve_for(seconds(1));
    EXPECT_TRUE(server_->stateids.empty());
  }
  EXPECT_EQ(create(0), 0);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(times(Op::OP_CLOSE), 3u);
}

TEST_F(HeldOpens, WhatIsMadeIsClosedThoughTheServerStopsInFrontOfThat) {
  server_->getattr_errors = {Stat::NFS4ERR_SERVERFAULT};
  EXPECT_EQ(create(0), 0);
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(HeldOpens, WhatAnInterruptedOneMadeIsClosed) {
  CancelToken cancel;
  EXPECT_EQ(create(kModify, CreateMode::kGuarded, &cancel), EINTR);
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(HeldOpens, TheLastWriterIsNoSecret) {
  // Asked for just so before, and not.
  for (const bool apart : {true, false}) {
    if (apart) {
      EXPECT_EQ(open(kRead), 0);
    }
    EXPECT_EQ(open(kRead | kModify), 0);
    if (!apart) {
      EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
    }
    ASSERT_EQ(server_->shares.size(), 1u);
    EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_BOTH);
    narrow(kRead);
    EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_READ);
    EXPECT_EQ(server_->seen.back().back(), Op::OP_OPEN_DOWNGRADE);
    EXPECT_EQ(read_by(), *server_->stateids.begin());
    // Who writes again says so.
    EXPECT_FALSE(nfs_->open_already(op_, file_, kModify));
    EXPECT_EQ(open(kModify), 0);
    EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_BOTH);
    EXPECT_EQ(server_->stateids.size(), 1u);
    close();
    EXPECT_TRUE(server_->stateids.empty());
  }
  EXPECT_EQ(times(Op::OP_OPEN_DOWNGRADE), 2u);
}

TEST_F(HeldOpens, WhoWritesAgainAtOnceTellsNothing) {
  EXPECT_EQ(open(kRead), 0);
  EXPECT_EQ(open(kRead | kModify), 0);
  for (int i = 0; i < 5; ++i) {
    nfs_->narrow_open(op_, file_, kRead);
    environment_->settle();
    EXPECT_TRUE(nfs_->open_already(op_, file_, kModify));
  }
  server_->serve_for(seconds(1));
  EXPECT_EQ(times(Op::OP_OPEN_DOWNGRADE), 0u);
  EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_BOTH);
}

TEST_F(HeldOpens, AnIdentityThatIsGoneHasNothingOpen) {
  OpContext other = op_;
  other.identity.uid = 77;
  EXPECT_EQ(open(kRead), 0);
  Opened done;
  start_open(&done, kModify, other);
  server_->serve_for(seconds(1));
  ASSERT_EQ(server_->stateids.size(), 2u);
  nfs_->narrow_open(other, file_, 0);
  environment_->advance(milliseconds(6));  // CLOSE is on its way
  EXPECT_FALSE(nfs_->open_already(other, file_, kModify));
  server_->serve_for(seconds(1));
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  EXPECT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_READ);
  close();
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(HeldOpens, AWriterThatIsGoneIsNoReadersBusiness) {
  // Closed, and opened again at once to read.
  EXPECT_EQ(open(kModify), 0);
  nfs_->close(file_);
  EXPECT_EQ(open(kRead), 0);
  server_->serve_for(seconds(1));
  EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_READ);
  // Opened to write by somebody who was interrupted.
  CancelToken cancel;
  OpContext op = op_;
  op.cancel = &cancel;
  Opened done;
  start_open(&done, kModify, op);
  cancel.cancel();
  nfs_->narrow_open(op_, file_, kRead);
  server_->serve_for(seconds(1));
  EXPECT_EQ(number(done), EINTR);
  EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_READ);
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(HeldOpens, WhatLocksReliedOnGoesWithThem) {
  EXPECT_EQ(open(kRead), 0);
  EXPECT_EQ(open(kRead | kModify), 0);
  for (const bool denied : {false, true}) {
    if (denied) server_->lock_elsewhere(LockKind::kWrite, {0, 9});
    EXPECT_EQ(open(kRead | kModify), 0);
    EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), denied ? EAGAIN : 0);
    narrow(kRead);
    EXPECT_EQ(unlock_all(1), 0);
    EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_READ) << denied;
  }
}

TEST_F(HeldOpens, WhatLocksRelyOnStaysOpen) {
  EXPECT_EQ(open(kRead), 0);
  EXPECT_EQ(open(kRead | kModify), 0);
  EXPECT_EQ(lock({1, LockKind::kWrite, {0, 9}}), 0);
  narrow(kRead);
  EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_BOTH);
  EXPECT_EQ(times(Op::OP_OPEN_DOWNGRADE), 0u);
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(HeldOpens, AServerThatRefusesToNarrowIsNotAskedAgain) {
  for (const Stat error : {Stat::NFS4ERR_INVAL, Stat::NFS4ERR_BAD_STATEID}) {
    EXPECT_EQ(open(kRead), 0);
    EXPECT_EQ(open(kRead | kModify), 0);
    server_->downgrade_errors = {error};
    if (error == Stat::NFS4ERR_BAD_STATEID) server_->stateids.clear();
    server_->seen.clear();
    narrow(kRead);
    EXPECT_EQ(times(Op::OP_OPEN_DOWNGRADE), 1u);
    ASSERT_EQ(server_->stateids.size(), 1u);
    EXPECT_EQ(read_by(), *server_->stateids.begin());
    close();
    EXPECT_TRUE(server_->stateids.empty());
  }
}

TEST_F(HeldOpens, ARestartWhileItIsNarrowed) {
  EXPECT_EQ(open(kRead | kModify), 0);
  EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
  nfs_->narrow_open(op_, file_, kRead);
  environment_->advance(milliseconds(6));
  ASSERT_FALSE(server_->connected()->out().empty());
  server_->run_unanswered();
  restart();
  server_->serve_for(seconds(2));
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(share(), xdr::OPEN4_SHARE_ACCESS_READ);
  close();
  EXPECT_TRUE(server_->stateids.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
}

TEST_F(HeldOpens, ARestartOfTheServerIsSurvived) {
  EXPECT_EQ(open(kRead), 0);
  restart();
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_PREVIOUS);
  EXPECT_EQ(read_by(), *server_->stateids.begin());
  // One that wants nothing reclaimed: opened anew.
  server_->open_errors = {Stat::NFS4ERR_NO_GRACE};
  restart();
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_FH);
  EXPECT_EQ(read_by(), *server_->stateids.begin());
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_F(HeldOpens, WhatIsRevokedIsOpenedAgain) {
  EXPECT_EQ(open(kRead), 0);
  server_->revoke_everything();
  server_->status_flags = 0;  // and says nothing
  EXPECT_EQ(read(op_), 0);
  server_->serve_for(seconds(2));
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(read_by(), *server_->stateids.begin());
  // One that honours nothing that it gives is not believed for ever.
  for (int i = 0; i < 5; ++i) {
    server_->revoked.merge(server_->stateids);
    server_->stateids.clear();
    EXPECT_EQ(read(op_), 0);
    server_->serve_for(seconds(2));
  }
  EXPECT_EQ(read_by(), 0u);
}

/// Recalled, or given way.
using Ending = Task<void> (Nfs4Operations::*)(const FileHandle&);
class DelegationEnds : public HeldOpens, public testing::WithParamInterface<Ending> {
 protected:
  void end() { group_.spawn((nfs_.get()->*GetParam())(file_)); }
};
INSTANTIATE_TEST_SUITE_P(HeldOpens, DelegationEnds,
                         testing::Values(&Nfs4Operations::give_back, &Nfs4Operations::give_way),
                         [](const auto& one) { return one.index == 0 ? "GivenBack" : "GivesWay"; });

TEST_P(DelegationEnds, WhatItCoversIsOpened) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(kRead, true), 0);
  ASSERT_EQ(nfs_->delegation(file_), DelegationKind::kRead);
  close();
  ASSERT_EQ(server_->stateids.size(), 1u);  // the delegation
  server_->seen.clear();
  EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
  EXPECT_EQ(read_by(), *server_->stateids.begin());
  EXPECT_EQ(times(Op::OP_OPEN), 0u);
  end();
  server_->serve_for(seconds(1));
  EXPECT_EQ(times(Op::OP_DELEGRETURN), 1u);
  EXPECT_EQ(times(Op::OP_OPEN), 1u);
  // In front of the return, so that nobody comes in between.
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_DELEG_CUR_FH);
  EXPECT_EQ(server_->seen[server_->seen.size() - 2][2], Op::OP_OPEN);
  EXPECT_EQ(server_->seen.back()[2], Op::OP_DELEGRETURN);
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(read_by(), *server_->stateids.begin());
  close();
  EXPECT_TRUE(server_->stateids.empty());
}

TEST_P(DelegationEnds, ItDoesNotWaitForItsOpens) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(kRead, true), 0);
  close();
  EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
  server_->open_errors = {Stat::NFS4ERR_DELAY};
  const TimePoint before = environment_->now();
  end();
  server_->serve_all();
  EXPECT_EQ(environment_->now(), before);
  EXPECT_EQ(times(Op::OP_DELEGRETURN), 1u);
  server_->serve_for(seconds(1));
  EXPECT_EQ(server_->opens_seen.back().claim.claim, xdr::open_claim_type4::CLAIM_FH);
  EXPECT_EQ(server_->stateids.size(), 1u);
}

TEST_F(HeldOpens, AWriteDelegationThatIsNotInTheWayClaimsNothing) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_WRITE;
  EXPECT_EQ(open(kRead | kModify, true), 0);
  close();
  server_->seen.clear();
  EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
  group_.spawn(nfs_->give_way(file_));
  server_->serve_for(seconds(1));
  EXPECT_TRUE(server_->seen.empty());
  EXPECT_EQ(nfs_->delegation(file_), DelegationKind::kWrite);
}

TEST_F(HeldOpens, AReadDelegationIsNoneForWriters) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(kRead, true), 0);
  EXPECT_FALSE(nfs_->open_already(op_, file_, kModify));
  EXPECT_EQ(open(kModify), 0);
  EXPECT_TRUE(nfs_->open_already(op_, file_, kModify));
}

TEST_F(HeldOpens, WhatIsOpenedWhileItIsClosedIsClaimed) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(kRead, true), 0);
  nfs_->close(file_);
  environment_->settle();
  environment_->advance(milliseconds(6));  // CLOSE is on its way
  EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
  server_->serve_for(seconds(1));
  EXPECT_EQ(times(Op::OP_CLOSE), 1u);
  group_.spawn(nfs_->give_back(file_));
  server_->serve_for(seconds(1));
  ASSERT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(read_by(), *server_->stateids.begin());
}

TEST_F(HeldOpens, AnOpenThatIsGivenUpClosesNobodyElses) {
  CancelToken cancel;
  OpContext op = op_;
  op.cancel = &cancel;
  Opened given_up;
  Opened other;
  start_open(&given_up, kRead, op);
  start_open(&other, kRead, op_);
  cancel.cancel();
  server_->serve_for(seconds(60));
  EXPECT_EQ(number(other), 0);
  EXPECT_EQ(server_->stateids.size(), 1u);
  EXPECT_EQ(nfs_->files_open(), 1u);
}

TEST_F(HeldOpens, WhatIsNotQuiteMadeIsClosedByNobodyElse) {
  for (const bool fails : {false, true}) {
    std::optional<Result<CreateResult>> done;
    const FileHandle directory = file_;
    group_.spawn(keep(nfs_->create_open(op_, directory, "new", CreateMode::kExclusive,
                                        SetAttributes{}, OpenFor{.access = kModify}),
                      &done));
    environment_->settle();
    EXPECT_TRUE(server_->serve_one());  // OPEN. SETATTR is to come
    environment_->settle();
    ASSERT_EQ(server_->stateids.size(), 1u);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(nfs_->files_open(), 1u);
    nfs_->close(kMade);
    environment_->settle();
    environment_->advance(milliseconds(10));
    if (fails) server_->setattr_errors = {Stat::NFS4ERR_IO};
    server_->serve_for(seconds(1));
    EXPECT_EQ(number(done), fails ? EIO : 0);
    EXPECT_EQ(server_->stateids.size(), fails ? 0u : 1u);
    nfs_->close(kMade);
    server_->serve_for(seconds(1));
    EXPECT_TRUE(server_->stateids.empty());
    EXPECT_EQ(nfs_->files_open(), 0u);
  }
}

TEST_F(HeldOpens, WhatIsClosedUnderADelegationIsNoBusinessOfTheServers) {
  server_->delegations.give = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  EXPECT_EQ(open(kRead, true), 0);
  close();
  server_->seen.clear();
  EXPECT_TRUE(nfs_->open_already(op_, file_, kRead));
  close();
  EXPECT_TRUE(server_->seen.empty());
  EXPECT_EQ(nfs_->files_open(), 0u);
  group_.spawn(nfs_->give_back(file_));
  server_->serve_for(seconds(1));
  EXPECT_EQ(times(Op::OP_OPEN), 0u);
}

TEST_F(HeldOpens, ErrorsOfOpenAreTheApplications) {
  for (const auto& [status, error] :
       {std::pair{Stat::NFS4ERR_SHARE_DENIED, EACCES}, std::pair{Stat::NFS4ERR_ACCESS, EACCES},
        std::pair{Stat::NFS4ERR_STALE, ESTALE}}) {
    server_->open_errors = {status};
    EXPECT_EQ(open(kRead), error) << xdr::enum_name(status);
    EXPECT_EQ(nfs_->files_open(), 0u);
  }
  // The end of grace, or of somebody's delegation, is waited for.
  server_->open_errors = {Stat::NFS4ERR_GRACE, Stat::NFS4ERR_DELAY};
  EXPECT_EQ(open(kRead), 0);
  close();
  // A server that cannot keep it open may be able to have it read.
  server_->open_errors = {Stat::NFS4ERR_SERVERFAULT};
  EXPECT_EQ(open(kRead), 0);
  EXPECT_EQ(read_by(), 0u);
}

class SoftHeldOpens : public HeldOpens {
 protected:
  SoftHeldOpens() : HeldOpens(true) {}
};

TEST_F(SoftHeldOpens, WhatMayBeOpenIsClosed) {
  for (const bool runs : {true, false}) {
    Opened done;
    start_open(&done, kRead, op_);
    if (runs) server_->run_unanswered();
    environment_->advance(seconds(30));
    EXPECT_EQ(number(done), ETIMEDOUT);
    EXPECT_EQ(server_->stateids.size(), runs ? 1u : 0u);
    server_->serve_for(seconds(60));
    EXPECT_TRUE(server_->stateids.empty());
    EXPECT_EQ(nfs_->files_open(), 0u);
  }
}

}  // namespace
}  // namespace nfsrdma
