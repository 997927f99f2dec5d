// SPDX-License-Identifier: Apache-2.0
// Requests run once: by slots from minor version 1 on (RFC 8881 2.10.6), by the sequences of owners
// before (RFC 7530 9.1.7).
#include <gtest/gtest.h>

#include <set>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

class ExactlyOnce : public ::testing::Test {
 protected:
  /// The request that was sent last, once more.
  Reply4 again(const Operations4& operations) {
    --harness_.session.sequence;
    return harness_.run(operations);
  }
  Operations4 removal(std::string_view name) {
    return Operations4().putfh(harness_.root()).add<OP_REMOVE>({name});
  }
  Nfs4Harness harness_;
};

TEST_F(ExactlyOnce, ARetryIsAnsweredFromTheSlotAndRunsNothing) {
  harness_.session.cache_this = true;
  ASSERT_EQ(harness_.close(harness_.open(harness_.root(), "file")), NFS4_OK);
  const Reply4 first = harness_.run(removal("file"));
  EXPECT_EQ(first.status, NFS4_OK);
  const Reply4 second = again(removal("file"));
  EXPECT_EQ(second.bytes, first.bytes);
  // A new request finds nothing to remove.
  EXPECT_EQ(harness_.run(removal("file")).status, NFS4ERR_NOENT);
}

TEST_F(ExactlyOnce, ARetryOfWhatWasNotKeptHearsSo) {
  ASSERT_EQ(harness_.close(harness_.open(harness_.root(), "file")), NFS4_OK);
  EXPECT_EQ(harness_.run(removal("file")).status, NFS4_OK);
  const Reply4 retry = again(removal("file"));
  EXPECT_EQ(retry.get<OP_SEQUENCE>().status, NFS4_OK);
  EXPECT_EQ(retry.status, NFS4ERR_RETRY_UNCACHED_REP);
  ASSERT_EQ(retry.results.size(), 2u);
}

TEST_F(ExactlyOnce, SequenceIdsOutOfOrderAndForeignSlotsAreRefused) {
  harness_.session.sequence += 5;
  EXPECT_EQ(harness_.run(Operations4()).status, NFS4ERR_SEQ_MISORDERED);
  harness_.session.sequence -= 6;
  xdr::SEQUENCE4args args{harness_.session.id, harness_.session.sequence + 1, 1000, 1000, false};
  EXPECT_EQ(harness_.run_bare(Operations4().add<OP_SEQUENCE>(args)).status, NFS4ERR_BADSLOT);
  args.sa_sessionid[3] = ~args.sa_sessionid[3];
  EXPECT_EQ(harness_.run_bare(Operations4().add<OP_SEQUENCE>(args)).status, NFS4ERR_BADSESSION);
}

TEST_F(ExactlyOnce, AnotherRequestUnderTheLastSequenceIdIsAFalseRetry) {
  harness_.session.cache_this = true;
  EXPECT_EQ(harness_.run(removal("one")).status, NFS4ERR_NOENT);
  EXPECT_EQ(again(removal("another")).status, NFS4ERR_SEQ_FALSE_RETRY);
}

TEST_F(ExactlyOnce, AReplyTooLongToBeKeptIsFoundOutBeforeAnythingChanges) {
  harness_.session.cache_this = true;
  Operations4 operations;
  operations.putfh(harness_.root());
  // Handles fill the reply up to what the session keeps.
  for (int i = 0; i < 60; ++i)
    operations.add<OP_GETFH>();
  const Open4 file = harness_.open(harness_.root(), "file");
  ASSERT_EQ(harness_.close(file), NFS4_OK);
  xdr::GETATTR4args attributes;
  attributes.attr_request.set(xdr::fattr4_number::FATTR4_SUPPORTED_ATTRS);
  Operations4 longer;
  longer.putfh(file.handle);
  const Open4 large = harness_.open(harness_.root(), "large");
  ASSERT_EQ(harness_.write(large, 0, std::string(9000, 'x')), NFS4_OK);
  longer.add<OP_READ>({xdr::stateid4{}, 0, 9000}).putfh(harness_.root()).add<OP_REMOVE>({"file"});
  Operations4 reads;
  reads.putfh(large.handle).add<OP_READ>({large.stateid, 0, 9000});
  EXPECT_EQ(harness_.run(reads).status, NFS4ERR_REP_TOO_BIG_TO_CACHE);
  EXPECT_EQ(harness_.run(operations).status, NFS4_OK);
}

// --- minor version 0
// ------------------------------------------------------------------------------

class OwnerSequences4 : public ::testing::Test {
 protected:
  void SetUp() override {
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(std::string_view("old client"));
    const auto known =
        harness_.run_bare(Operations4().add<OP_SETCLIENTID>(who), 0).get<OP_SETCLIENTID>();
    ASSERT_EQ(known.status, NFS4_OK);
    client_ = known.resok4.clientid;
    ASSERT_EQ(harness_
                  .run_bare(Operations4().add<OP_SETCLIENTID_CONFIRM>(
                                {client_, known.resok4.setclientid_confirm}),
                            0)
                  .status,
              NFS4_OK);
  }
  Operations4 opening(std::string_view name, std::uint32_t seqid) {
    xdr::OPEN4args args;
    args.seqid = seqid;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {client_, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = name;
    return Operations4().putfh(harness_.root()).add<OP_OPEN>(args).add<OP_GETFH>();
  }
  Reply4 run(const Operations4& operations) { return harness_.run_bare(operations, 0); }
  /// The owner's first OPEN and its OPEN_CONFIRM, with the sequence ids 1 and 2.
  void open_confirmed() {
    const Reply4 opened = run(opening("file", 1));
    ASSERT_EQ(opened.status, NFS4_OK);
    file_ = to_handle(opened.get<OP_GETFH>().resok4.object.data);
    const Reply4 confirmed = run(
        Operations4().putfh(file_).add<OP_OPEN_CONFIRM>({opened.get<OP_OPEN>().resok4.stateid, 2}));
    ASSERT_EQ(confirmed.status, NFS4_OK);
    open_ = confirmed.get<OP_OPEN_CONFIRM>().resok4.open_stateid;
  }

  Nfs4Harness harness_;
  std::uint64_t client_ = 0;
  FileHandle file_;
  xdr::stateid4 open_;
};

TEST_F(OwnerSequences4, ANewOwnerConfirmsAndGoesOnInSequence) {
  const Reply4 opened = run(opening("file", 7));
  ASSERT_EQ(opened.status, NFS4_OK);
  const auto open = opened.get<OP_OPEN>().resok4;
  EXPECT_NE(open.rflags & xdr::OPEN4_RESULT_CONFIRM, 0u);
  const FileHandle file = to_handle(opened.get<OP_GETFH>().resok4.object.data);
  // Not before it is confirmed.
  EXPECT_EQ(run(Operations4().putfh(file).add<OP_READ>({open.stateid, 0, 1})).status,
            NFS4ERR_BAD_STATEID);
  const Reply4 confirmed = run(Operations4().putfh(file).add<OP_OPEN_CONFIRM>({open.stateid, 8}));
  ASSERT_EQ(confirmed.status, NFS4_OK);
  const xdr::stateid4 stateid = confirmed.get<OP_OPEN_CONFIRM>().resok4.open_stateid;
  EXPECT_EQ(run(Operations4().putfh(file).add<OP_READ>({stateid, 0, 1})).status, NFS4_OK);
  // A second file of the same owner needs no confirmation.
  const Reply4 second = run(opening("second", 9));
  ASSERT_EQ(second.status, NFS4_OK);
  EXPECT_EQ(second.get<OP_OPEN>().resok4.rflags & xdr::OPEN4_RESULT_CONFIRM, 0u);
  // Out of order.
  EXPECT_EQ(run(opening("third", 12)).status, NFS4ERR_BAD_SEQID);
  // A retry, with the handle behind it.
  EXPECT_EQ(run(opening("second", 9)).bytes, second.bytes);
}

TEST_F(OwnerSequences4, WhatComesBehindARetriedOpenFindsItsFile) {
  open_confirmed();
  const Reply4 opened = run(opening("other", 3));
  ASSERT_EQ(opened.status, NFS4_OK);
  const xdr::stateid4 open = opened.get<OP_OPEN>().resok4.stateid;
  const Reply4 again = run(opening("other", 3).add<OP_CLOSE>({4, open}));
  EXPECT_EQ(again.status, NFS4_OK);
  EXPECT_EQ(again.get<OP_OPEN>().resok4.stateid.other, open.other);
}

TEST_F(OwnerSequences4, ARetryHearsThatTheDiskFailedTheOpen) {
  open_confirmed();
  harness_.during_commit = [] { return EIO; };
  const Reply4 failed = run(opening("new", 3));
  harness_.during_commit = {};
  ASSERT_EQ(failed.status, NFS4ERR_IO);
  EXPECT_EQ(run(opening("new", 3)).bytes, failed.bytes);
  EXPECT_EQ(harness_.state().opens.held(client_).opens, 1u) << "the one of before";
  EXPECT_EQ(run(opening("new", 4)).status, NFS4_OK);
  EXPECT_EQ(harness_.state().opens.held(client_).opens, 2u);
}

TEST_F(OwnerSequences4, AnOpenBehindWhatTheDiskFailedHasNotCome) {
  open_confirmed();
  put_file(harness_.path("old"), "");
  harness_.during_commit = [] { return EIO; };
  const xdr::WRITE4args write{open_, 0, xdr::stable_how4::FILE_SYNC4, {as_bytes("x")}};
  const Reply4 failed = run(Operations4().putfh(file_).add<OP_WRITE>(write).add(opening("old", 3)));
  harness_.during_commit = {};
  ASSERT_EQ(failed.status, NFS4ERR_IO);
  ASSERT_EQ(failed.results.back().number, OP_WRITE);
  EXPECT_EQ(harness_.state().opens.held(client_).opens, 1u);
  EXPECT_EQ(run(opening("old", 4)).status, NFS4ERR_BAD_SEQID);
  EXPECT_EQ(run(opening("old", 3)).status, NFS4_OK);
}

TEST_F(OwnerSequences4, ARetriedCloseIsAnsweredAlthoughTheStateIsGone) {
  open_confirmed();
  const Operations4 closing = Operations4().putfh(file_).add<OP_CLOSE>({3, open_});
  const Reply4 closed = run(closing);
  ASSERT_EQ(closed.status, NFS4_OK);
  EXPECT_EQ(run(closing).bytes, closed.bytes);
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_CLOSE>({4, open_})).status, NFS4ERR_BAD_STATEID);
}

TEST_F(OwnerSequences4, StateidsOfAClientThatIsGoneAreExpired) {
  open_confirmed();
  harness_.clock.move(std::chrono::seconds(91));
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_READ>({open_, 0, 1})).status, NFS4_OK)
      << "nobody wanted what it holds";
  harness_.clock.move(std::chrono::seconds(91));
  {
    std::lock_guard lock(harness_.state().mutex);
    ASSERT_TRUE(harness_.state().end_expired({client_}));
  }
  const auto write = Operations4().putfh(file_).add<OP_WRITE>(
      {open_, 0, xdr::stable_how4::UNSTABLE4, {as_bytes(std::string_view("x"))}});
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_READ>({open_, 0, 1})).status, NFS4ERR_EXPIRED);
  EXPECT_EQ(run(write).status, NFS4ERR_EXPIRED);
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_CLOSE>({3, open_})).status, NFS4ERR_EXPIRED);
  // Its client ID as well: there is nothing to reclaim, as there would be after a restart.
  const auto asks = [&](std::uint64_t id) {
    xdr::LOCKT4args locks;
    locks.length = 1;
    locks.owner.clientid = id;
    xdr::OPEN4args opens;
    opens.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
    opens.owner = {id, as_bytes(std::string_view("owner"))};
    opens.claim.file = "file";
    const Operations4 operations[] = {
        Operations4().add<OP_RENEW>({id}),
        Operations4().add<OP_RELEASE_LOCKOWNER>({{id, as_bytes(std::string_view("locker"))}}),
        Operations4().putfh(file_).add<OP_LOCKT>(locks),
        Operations4().putfh(harness_.root()).add<OP_OPEN>(opens),
    };
    std::set<nfsstat4> answers;
    for (const Operations4& one : operations)
      answers.insert(run(one).status);
    return answers;
  };
  EXPECT_EQ(asks(client_), std::set<nfsstat4>{NFS4ERR_EXPIRED});
  EXPECT_EQ(asks(client_ + 12345), std::set<nfsstat4>{NFS4ERR_STALE_CLIENTID}) << "never given";
  EXPECT_EQ(asks(client_ ^ std::uint64_t{1} << 32), std::set<nfsstat4>{NFS4ERR_STALE_CLIENTID})
      << "given before a restart";
  // Of nobody that there ever was, and of another boot.
  xdr::stateid4 other = open_;
  other.other[0] ^= std::byte{1};
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_READ>({other, 0, 1})).status,
            NFS4ERR_STALE_STATEID);
}

/// A file that is open and confirmed, and locks of it.
class LockOwners4 : public OwnerSequences4 {
 protected:
  void SetUp() override {
    OwnerSequences4::SetUp();
    open_confirmed();
  }
  Operations4 first_lock(std::uint32_t open_seqid, std::uint32_t lock_seqid,
                         std::uint64_t lock_client) {
    xdr::LOCK4args args;
    args.locktype = xdr::nfs_lock_type4::WRITE_LT;
    args.length = 10;
    args.locker.new_lock_owner = true;
    args.locker.open_owner = {
        open_seqid, open_, lock_seqid, {lock_client, as_bytes(std::string_view("locker"))}};
    return Operations4().putfh(file_).add<OP_LOCK>(args);
  }
  Operations4 further_lock(const xdr::stateid4& lock, std::uint32_t seqid) {
    xdr::LOCK4args args;
    args.locktype = xdr::nfs_lock_type4::WRITE_LT;
    args.offset = 100;
    args.length = 10;
    args.locker.lock_owner = {lock, seqid};
    return Operations4().putfh(file_).add<OP_LOCK>(args);
  }
  Operations4 unlock(const xdr::stateid4& lock, std::uint32_t seqid) {
    xdr::LOCKU4args args;
    args.seqid = seqid;
    args.lock_stateid = lock;
    args.length = 10;
    return Operations4().putfh(file_).add<OP_LOCKU>(args);
  }
};

TEST_F(LockOwners4, ALockOwnersSequenceBeginsWhereItsFirstLockSays) {
  const Reply4 first = run(first_lock(3, 40, client_));
  ASSERT_EQ(first.status, NFS4_OK);
  const xdr::stateid4 lock = first.get<OP_LOCK>().resok4.lock_stateid;
  EXPECT_EQ(run(first_lock(3, 40, client_)).bytes, first.bytes) << "the open-owner's last request";
  for (const std::uint32_t wrong : {39u, 40u, 42u}) {
    EXPECT_EQ(run(unlock(lock, wrong)).status, NFS4ERR_BAD_SEQID) << wrong;
    EXPECT_EQ(run(further_lock(lock, wrong)).status, NFS4ERR_BAD_SEQID) << wrong;
  }
  const Reply4 further = run(further_lock(lock, 41));
  ASSERT_EQ(further.status, NFS4_OK);
  EXPECT_EQ(run(further_lock(lock, 41)).bytes, further.bytes);
  const xdr::stateid4 both = further.get<OP_LOCK>().resok4.lock_stateid;
  const Reply4 unlocked = run(unlock(both, 42));
  ASSERT_EQ(unlocked.status, NFS4_OK);
  EXPECT_EQ(run(unlock(both, 42)).bytes, unlocked.bytes);
}

TEST_F(LockOwners4, WhoIsForgottenWhileARequestRunsIsSomebodyElseAfter) {
  nfs4::OwnerSequences all(100);
  const nfs4::OwnerKey key{1, nfs4::OwnerKind::kLock, "owner"};
  const std::uint64_t first = all.get(key)->generation;
  EXPECT_EQ(all.get(key)->generation, first);
  all.forget(key);
  EXPECT_GT(all.get(key)->generation, first);
  const std::uint64_t second = all.get(key)->generation;
  all.start_over(*all.get(key));
  EXPECT_GT(all.get(key)->generation, second);
}

TEST_F(LockOwners4, IdleOwnersMakeRoom) {
  nfs4::OwnerSequences all(100);
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_NE(all.get({1, nfs4::OwnerKind::kOpen, std::to_string(i)}), nullptr);
  EXPECT_TRUE(all.is_full(1));
  EXPECT_EQ(all.get({1, nfs4::OwnerKind::kOpen, "more"}), nullptr);
  EXPECT_NE(all.get({2, nfs4::OwnerKind::kOpen, "another client's"}), nullptr);
  all.get({1, nfs4::OwnerKind::kOpen, "7"})->running = true;
  all.forget_idle(1, [](const nfs4::OwnerKey& owner) { return owner.name == "8"; });
  for (const char* kept : {"7", "8"})
    EXPECT_NE(all.find({1, nfs4::OwnerKind::kOpen, kept}), nullptr);
  EXPECT_EQ(all.find({1, nfs4::OwnerKind::kOpen, "9"}), nullptr);
  EXPECT_FALSE(all.is_full(1));
}

TEST_F(LockOwners4, OwnersOfAllClientsTogetherAreBounded) {
  nfs4::OwnerSequences all(100, 150);
  const auto key = [](nfs4::ClientId client, std::size_t i) {
    return nfs4::OwnerKey{client, nfs4::OwnerKind::kOpen, std::to_string(i)};
  };
  for (nfs4::ClientId client = 1; client <= 3; ++client) {
    for (std::size_t i = 0; i < 50; ++i)
      ASSERT_NE(all.get(key(client, i)), nullptr);
  }
  EXPECT_TRUE(all.is_full());
  EXPECT_FALSE(all.is_full(1));
  EXPECT_EQ(all.get(key(1, 50)), nullptr);
  EXPECT_EQ(all.get(key(4, 0)), nullptr);
  EXPECT_NE(all.get(key(1, 7)), nullptr) << "it is there";
  all.get(key(2, 7))->running = true;
  all.forget_idle_of_any([](const nfs4::OwnerKey& owner) { return owner.client == 1; });
  EXPECT_FALSE(all.is_full());
  EXPECT_NE(all.find(key(2, 7)), nullptr);
  EXPECT_EQ(all.find(key(2, 8)), nullptr);
  EXPECT_EQ(all.find(key(3, 0)), nullptr);
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_NE(all.find(key(1, i)), nullptr);
}

TEST_F(LockOwners4, NoMoreAreLookedAtAtOnceThanOthersCanWaitFor) {
  constexpr std::size_t kMany = 3 * nfs4::OwnerSequences::kLookedAt + 1;
  nfs4::OwnerSequences all(kMany, kMany);
  for (std::size_t i = 0; i < kMany; ++i)
    ASSERT_NE(all.get({1, nfs4::OwnerKind::kOpen, std::to_string(i)}), nullptr);
  std::set<std::string> seen;
  for (int turn = 0; turn < 4; ++turn) {
    std::size_t looked_at = 0;
    all.forget_idle_of_any([&](const nfs4::OwnerKey& owner) {
      ++looked_at;
      seen.insert(owner.name);
      return true;
    });
    EXPECT_EQ(looked_at, nfs4::OwnerSequences::kLookedAt);
  }
  EXPECT_EQ(seen.size(), kMany) << "everybody's turn comes";
}

/// Many clients of one host, each with a few owners.
TEST(AllOwners4, OwnersThatAreIdleMakeRoomForThoseOfOtherClients) {
  nfs4::Limits limits = nfs4::ServerState::Options().limits;
  limits.all_owners = 4;
  Nfs4Harness nfs({}, limits);
  std::vector<std::uint64_t> clients;
  for (const std::string name : {"a", "b"}) {
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(name);
    const auto known =
        nfs.run_bare(Operations4().add<OP_SETCLIENTID>(who), 0).get<OP_SETCLIENTID>().resok4;
    const Operations4 confirm =
        Operations4().add<OP_SETCLIENTID_CONFIRM>({known.clientid, known.setclientid_confirm});
    ASSERT_EQ(nfs.run_bare(confirm, 0).status, NFS4_OK);
    clients.push_back(known.clientid);
  }
  const auto open = [&](std::uint64_t client, const std::string& owner, std::string_view name) {
    xdr::OPEN4args args;
    args.seqid = 1;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
    args.owner = {client, as_bytes(owner)};
    args.claim.file = name;
    return nfs.run_bare(Operations4().putfh(nfs.root()).add<OP_OPEN>(args), 0).status;
  };
  put_file(nfs.path("file"), "");
  // What fails leaves owners that have nothing.
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(open(clients[i % 2], "idle" + std::to_string(i), "none"), NFS4ERR_NOENT);
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(open(clients[0], "owner" + std::to_string(i), "file"), NFS4_OK);
  EXPECT_EQ(open(clients[0], "another", "file"), NFS4ERR_RESOURCE);
  EXPECT_EQ(open(clients[1], "another", "file"), NFS4ERR_RESOURCE);
  std::lock_guard lock(nfs.state().mutex);
  EXPECT_EQ(nfs.state().refusals.count(nfs4::Limit::kOwners), 2u);
}

TEST_F(LockOwners4, ALockOwnerIsOfTheClientWhoseOpenItIs) {
  EXPECT_EQ(run(first_lock(3, 1, client_ + 12345)).status, NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(run(first_lock(3, 1, client_)).status, NFS4_OK) << "the error used no number up";
}

}  // namespace
}  // namespace nfsrdma::test
