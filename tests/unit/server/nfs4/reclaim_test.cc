// SPDX-License-Identifier: Apache-2.0
// After a restart (RFC 8881 8.4.2): those who had state claim it again, everybody else waits, and
// who had none claims none.
#include <gtest/gtest.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

class Reclaim : public ::testing::Test {
 protected:
  /// A client as it comes back after a restart, before it says that it has reclaimed all.
  Session4 come_back(std::string_view name) {
    Session4 out;
    xdr::EXCHANGE_ID4args who;
    who.eia_clientowner.co_ownerid = as_bytes(name);
    const auto id = nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).get<OP_EXCHANGE_ID>();
    out.client = id.resok4.eir_clientid;
    xdr::CREATE_SESSION4args wanted;
    wanted.csa_clientid = out.client;
    wanted.csa_sequence = id.resok4.eir_sequenceid;
    for (xdr::channel_attrs4* channel :
         {&wanted.csa_fore_chan_attrs, &wanted.csa_back_chan_attrs}) {
      *channel = {0, 65536, 65536, 4096, 16, 4, {}};
    }
    std::array<std::byte, 4> no_security{};  // callback_sec_parms4 of AUTH_NONE
    wanted.csa_flags = xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    wanted.csa_cb_program = 0x40000000;
    wanted.csa_sec_parms = {no_security, 1};
    const auto made =
        nfs_.run_bare(Operations4().add<OP_CREATE_SESSION>(wanted)).get<OP_CREATE_SESSION>();
    EXPECT_EQ(made.status, NFS4_OK);
    out.id = made.resok4.csr_sessionid;
    return out;
  }
  Reply4 claim(Session4& session, const FileHandle& file) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {session.client, as_bytes(std::string_view("owner"))};
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    return nfs_.run(session, Operations4().putfh(file).add<OP_OPEN>(args));
  }
  Reply4 lock(Session4& session, const FileHandle& file, const xdr::stateid4& open, bool reclaim) {
    xdr::LOCK4args args;
    args.locktype = xdr::nfs_lock_type4::WRITE_LT;
    args.reclaim = reclaim;
    args.offset = 10;
    args.length = 5;
    args.locker.new_lock_owner = true;
    args.locker.open_owner.open_stateid = open;
    args.locker.open_owner.lock_owner = {session.client, as_bytes(std::string_view("locker"))};
    return nfs_.run(session, Operations4().putfh(file).add<OP_LOCK>(args));
  }
  Nfs4Harness nfs_{{}, few_files()};

 private:
  static nfs4::Limits few_files() {
    nfs4::Limits limits = nfs4::Limits::of(Config(), 1 << 20);
    limits.opens.files.all = 8;
    return limits;
  }
};

// Who had three quarters, when that was its share, gets them back, whoever comes before it.
TEST_F(Reclaim, WhatWasHeldIsNotSubjectToAShare) {
  std::vector<FileHandle> firsts, seconds;
  for (int i = 0; i < 6; ++i) {
    const Open4 file = nfs_.open(nfs_.root(), "first" + std::to_string(i));
    ASSERT_EQ(file.status, NFS4_OK);
    firsts.push_back(file.handle);
  }
  nfs_.set_peer("192.0.2.8");
  nfs_.session = nfs_.connect("second");
  for (int i = 0; i < 2; ++i) {
    const Open4 file = nfs_.open(nfs_.root(), "second" + std::to_string(i));
    ASSERT_EQ(file.status, NFS4_OK);
    seconds.push_back(file.handle);
  }
  nfs_.restart();
  Session4 second = come_back("second");
  for (const FileHandle& file : seconds)
    EXPECT_EQ(claim(second, file).status, NFS4_OK);
  nfs_.set_peer("192.0.2.7");
  Session4 first = come_back("first");
  for (const FileHandle& file : firsts)
    EXPECT_EQ(claim(first, file).status, NFS4_OK);
}

TEST_F(Reclaim, OpensAndLocksAreClaimedAgain) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  ASSERT_EQ(lock(nfs_.session, file.handle, file.stateid, false).status, NFS4_OK);
  nfs_.restart();

  Session4 first = come_back("first");
  const Reply4 opened = claim(first, file.handle);
  ASSERT_EQ(opened.status, NFS4_OK);
  const xdr::stateid4 stateid = opened.get<OP_OPEN>().resok4.stateid;
  EXPECT_EQ(lock(first, file.handle, stateid, false).status, NFS4ERR_GRACE);
  EXPECT_EQ(lock(first, file.handle, stateid, true).status, NFS4_OK);

  // Somebody new has to wait, for new state as well as for I/O without any.
  Session4 second = come_back("second");
  EXPECT_EQ(claim(second, file.handle).status, NFS4ERR_RECLAIM_BAD);
  EXPECT_EQ(nfs_.run(second, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  const Operations4 read = Operations4().putfh(file.handle).add<OP_READ>({{}, 0, 1});
  EXPECT_EQ(nfs_.run(second, read).status, NFS4ERR_GRACE);
  // Nor may it take away what is to be reclaimed.
  const Operations4 root = Operations4().putfh(nfs_.root());
  EXPECT_EQ(nfs_.run(second, Operations4(root).add<OP_REMOVE>({"file"})).status, NFS4ERR_GRACE);
  EXPECT_EQ(
      nfs_.run(second, Operations4(root).add<OP_SAVEFH>().add<OP_RENAME>({"a", "file"})).status,
      NFS4ERR_GRACE);

  // Nobody is waited for any more.
  EXPECT_EQ(nfs_.run(first, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  EXPECT_EQ(nfs_.run(second, read).status, NFS4_OK);
  EXPECT_EQ(claim(first, file.handle).status, NFS4ERR_NO_GRACE);
  // What was reclaimed holds: the bytes are locked.
  xdr::LOCKT4args test;
  test.locktype = xdr::nfs_lock_type4::READ_LT;
  test.offset = 12;
  test.length = 1;
  test.owner = {second.client, as_bytes(std::string_view("other"))};
  EXPECT_EQ(nfs_.run(second, Operations4().putfh(file.handle).add<OP_LOCKT>(test)).status,
            NFS4ERR_DENIED);
}

TEST_F(Reclaim, NobodyReclaimsWhatHeCouldNotOpen) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(::chmod(nfs_.path("file").c_str(), 0600), 0);
  nfs_.restart();
  Session4 first = come_back("first");
  nfs_.set_caller(user(1234, 1234));
  EXPECT_EQ(claim(first, file.handle).status, NFS4ERR_ACCESS);
  // Its owner can whatever the mode: he made it with that.
  ASSERT_EQ(::chown(nfs_.path("file").c_str(), 1234, 1234), 0);
  ASSERT_EQ(::chmod(nfs_.path("file").c_str(), 0), 0);
  EXPECT_EQ(claim(first, file.handle).status, NFS4_OK);
}

TEST_F(Reclaim, AReclaimedDelegationIsUsedInTheGracePeriod) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  nfs_.connection().max_backward = 2000;
  nfs_.restart();
  Session4 first = come_back("first");
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
  args.owner = {first.client, as_bytes(std::string_view("owner"))};
  args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
  args.claim.delegate_type = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  const Reply4 reclaimed = nfs_.run(first, Operations4().putfh(file.handle).add<OP_OPEN>(args));
  ASSERT_EQ(reclaimed.status, NFS4_OK);
  const auto& delegation = reclaimed.get<OP_OPEN>().resok4.delegation;
  ASSERT_EQ(delegation.delegation_type, xdr::open_delegation_type4::OPEN_DELEGATE_READ);
  args.claim.claim = xdr::open_claim_type4::CLAIM_FH;
  EXPECT_EQ(nfs_.run(first, Operations4().putfh(file.handle).add<OP_OPEN>(args)).status,
            NFS4ERR_GRACE);
  args.claim.claim = xdr::open_claim_type4::CLAIM_DELEG_CUR_FH;
  args.claim.oc_delegate_stateid = delegation.read.stateid;
  EXPECT_EQ(nfs_.run(first, Operations4().putfh(file.handle).add<OP_OPEN>(args)).status, NFS4_OK);
}

TEST_F(Reclaim, WhoDoesNotComeBackIsWaitedForNoLongerThanTheGracePeriod) {
  ASSERT_EQ(nfs_.open(nfs_.root(), "file").status, NFS4_OK);
  nfs_.restart();
  nfs_.session = come_back("second");
  EXPECT_EQ(nfs_.run(Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  EXPECT_EQ(nfs_.open(nfs_.root(), "new").status, NFS4ERR_GRACE);
  nfs_.clock.move(std::chrono::seconds(91));
  nfs_.session = come_back("third");
  EXPECT_EQ(nfs_.run(Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  EXPECT_EQ(nfs_.open(nfs_.root(), "new").status, NFS4_OK);
  // After another restart it has lost the right to reclaim for good.
  nfs_.restart();
  Session4 first = come_back("first");
  const FileHandle file = nfs_.root();
  EXPECT_EQ(claim(first, file).status, NFS4ERR_RECLAIM_BAD);
}

TEST_F(Reclaim, WhoWasEvictedReclaimsNothingInThisGracePeriodEither) {
  nfs_.connect("second");  // who is waited for all the time
  const FileHandle file = nfs_.open(nfs_.root(), "file").handle;
  nfs_.restart();
  Session4 first = come_back("first");
  ASSERT_EQ(claim(first, file).status, NFS4_OK);
  {
    std::lock_guard guard(nfs_.state().mutex);
    ASSERT_TRUE(nfs_.state().evict(first.client));
  }
  EXPECT_TRUE(nfs_.state().settle().ok());
  first = come_back("first");
  EXPECT_EQ(claim(first, file).status, NFS4ERR_RECLAIM_BAD);
  // Nor after another restart, though this grace period never came to its end.
  nfs_.restart();
  first = come_back("first");
  EXPECT_EQ(claim(first, file).status, NFS4ERR_RECLAIM_BAD);
}

/// Because its next life has come, say, while this one was saying that it has reclaimed all.
TEST_F(Reclaim, WhoEndsWhileItIsRecordedMayNotReclaim) {
  const FileHandle file = nfs_.open(nfs_.root(), "file").handle;
  Session4 other = come_back("other");
  nfs_.state().while_recording = [&] {
    nfs4::ServerState& state = nfs_.state();
    std::lock_guard guard(state.mutex);
    std::vector<std::unique_ptr<nfs4::Client>> ended;
    ended.push_back(state.clients.end(*state.clients.find(other.client)));
    state.end_clients(std::move(ended));
  };
  EXPECT_EQ(nfs_.run(other, Operations4().add<OP_RECLAIM_COMPLETE>()).status,
            NFS4ERR_STALE_CLIENTID);
  nfs_.state().while_recording = {};
  EXPECT_TRUE(nfs_.state().any_ended()) << "its record has to go";
  ASSERT_TRUE(nfs_.state().settle().ok());
  nfs_.restart();
  other = come_back("other");
  EXPECT_EQ(claim(other, file).status, NFS4ERR_RECLAIM_BAD);
}

TEST_F(Reclaim, WhoHasEndedIsNotRecordedAnyMore) {
  const FileHandle file = nfs_.open(nfs_.root(), "file").handle;
  Session4 other = come_back("other");
  {
    std::lock_guard guard(nfs_.state().mutex);
    ASSERT_TRUE(nfs_.state().evict(other.client));
  }
  ASSERT_TRUE(nfs_.state().settle().ok());
  EXPECT_TRUE(nfs_.state().record(other.client).ok());
  nfs_.restart();
  other = come_back("other");
  EXPECT_EQ(claim(other, file).status, NFS4ERR_RECLAIM_BAD);
}

/// Others who ask for state in its name wait until it is on stable storage.
TEST_F(Reclaim, WhoIsBeingRecordedIsNotYet) {
  Session4 other = come_back("other");
  const auto is_recorded = [&] {
    std::lock_guard guard(nfs_.state().mutex);
    return nfs_.state().clients.find(other.client)->recorded;
  };
  bool asked = false;
  nfs_.state().while_recording = [&] {
    EXPECT_FALSE(is_recorded());
    asked = true;
  };
  ASSERT_EQ(nfs_.run(other, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  nfs_.state().while_recording = {};
  EXPECT_TRUE(asked);
  EXPECT_TRUE(is_recorded());
}

class ReclaimAfterALoss : public Reclaim, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Knows, ReclaimAfterALoss, ::testing::Bool());

/// Others may have had it when the next life of the server asks who had what.
TEST_P(ReclaimAfterALoss, WhoLostSomethingInTheGracePeriodSaysThatItKnowsBeforeItIsRecorded) {
  nfs_.connect("second");  // who is waited for all the time
  const Open4 before = nfs_.open(nfs_.root(), "file");
  const Open4 other = nfs_.open(nfs_.root(), "other");
  nfs_.restart();
  Session4 first = come_back("first");
  const Reply4 reclaimed = claim(first, before.handle);
  ASSERT_EQ(reclaimed.status, NFS4_OK);
  ASSERT_EQ(claim(first, other.handle).status, NFS4_OK);
  struct stat file {};
  ASSERT_EQ(::stat(nfs_.path("file").c_str(), &file), 0);
  {
    std::lock_guard guard(nfs_.state().mutex);
    std::map<nfs4::ClientId, nfs4::ServerState::Lost> lost;
    ASSERT_TRUE(nfs_.state().revoke_file(nfs4::file_key(file.st_dev, file.st_ino), &lost));
  }
  ASSERT_TRUE(nfs_.state().settle().ok());
  ASSERT_EQ(nfs_.run(first, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  const bool knows = GetParam();
  if (knows) {
    const xdr::stateid4 revoked = reclaimed.get<OP_OPEN>().resok4.stateid;
    ASSERT_EQ(nfs_.run(first, Operations4().add<OP_FREE_STATEID>({revoked})).status, NFS4_OK);
  }
  nfs_.restart();
  first = come_back("first");
  EXPECT_EQ(claim(first, other.handle).status, knows ? NFS4_OK : NFS4ERR_RECLAIM_BAD);
}

TEST_F(Reclaim, AnExpiredClientGivesWayAndMayNotReclaim) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(lock(nfs_.session, file.handle, file.stateid, false).status, NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(100));
  nfs_.session = nfs_.connect("second");
  const Open4 mine = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(mine.status, NFS4_OK);
  // Courteous until now: the lock went only because it is in somebody's way.
  EXPECT_EQ(lock(nfs_.session, mine.handle, mine.stateid, false).status, NFS4_OK);
  nfs_.restart();
  Session4 first = come_back("first");
  EXPECT_EQ(claim(first, file.handle).status, NFS4ERR_RECLAIM_BAD);
}

TEST_F(Reclaim, WhoseOpenGaveWayMayNotReclaimEither) {
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
  args.share_deny = xdr::OPEN4_SHARE_DENY_BOTH;
  args.claim.claim = xdr::open_claim_type4::CLAIM_FH;
  const FileHandle file = nfs_.open(nfs_.root(), "file").handle;
  nfs_.session = nfs_.connect("second");
  nfs_.clock.move(std::chrono::seconds(60));
  args.owner = {nfs_.session.client, as_bytes(std::string_view("owner"))};
  const Operations4 take = Operations4().putfh(file).add<OP_OPEN>(args);
  EXPECT_EQ(nfs_.run(take).status, NFS4ERR_SHARE_DENIED);
  nfs_.clock.move(std::chrono::seconds(40));
  EXPECT_EQ(nfs_.run(take).status, NFS4_OK);
  nfs_.restart();
  Session4 first = come_back("first");
  EXPECT_EQ(claim(first, file).status, NFS4ERR_RECLAIM_BAD);
}

/// New locks too, by way of an open that was reclaimed, end what others could have reclaimed.
TEST_F(Reclaim, ALockAfterTheGracePeriodIsNobodyElsesAfterTheNext) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  const Session4 holder = nfs_.session;
  nfs_.session = nfs_.connect("second");
  ASSERT_EQ(nfs_.open(nfs_.root(), "file").status, NFS4_OK);
  nfs_.session = holder;
  ASSERT_EQ(lock(nfs_.session, file.handle, file.stateid, false).status, NFS4_OK);
  nfs_.restart();
  Session4 second = come_back("second");
  const Reply4 opened = claim(second, file.handle);
  ASSERT_EQ(opened.status, NFS4_OK);
  ASSERT_EQ(nfs_.run(second, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(91));
  const xdr::stateid4 stateid = opened.get<OP_OPEN>().resok4.stateid;
  ASSERT_EQ(lock(second, file.handle, stateid, false).status, NFS4_OK);
  nfs_.restart();
  Session4 first = come_back("first");
  EXPECT_EQ(claim(first, file.handle).status, NFS4ERR_RECLAIM_BAD);
}

}  // namespace
}  // namespace nfsrdma::test
