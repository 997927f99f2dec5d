// SPDX-License-Identifier: Apache-2.0
// What RFC 8881 demands of opens, locks and rights and no other test shows
// (tests/conformance/ledger).
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using xdr::nfs_lock_type4;

class OpenRules : public ::testing::Test {
 protected:
  OpenRules() {
    newer_ = std::exchange(nfs_.session, nfs_.connect("older", 1));
    file_ = nfs_.open(nfs_.root(), "file");
    EXPECT_EQ(file_.status, NFS4_OK);
  }
  xdr::OPEN4args by_handle() {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {nfs_.session.client, as_bytes(std::string_view("another"))};
    args.claim.claim = xdr::open_claim_type4::CLAIM_FH;
    return args;
  }
  Reply4 open(const xdr::OPEN4args& args) { return nfs_.on<OP_OPEN>(file_.handle, args); }
  xdr::LOCK4args lock_args() {
    xdr::LOCK4args args;
    args.locktype = nfs_lock_type4::WRITE_LT;
    args.length = 4;
    args.locker.new_lock_owner = true;
    args.locker.open_owner.open_stateid = file_.stateid;
    args.locker.open_owner.lock_owner.owner = as_bytes(std::string_view("locker"));
    return args;
  }
  xdr::ACCESS4resok access(std::uint32_t asked) {
    return nfs_.on<OP_ACCESS>(file_.handle, {asked}).get<OP_ACCESS>().resok4;
  }
  void set_mode(mode_t mode) { ASSERT_EQ(::chmod(nfs_.path("file").c_str(), mode), 0); }

  Nfs4Harness nfs_;
  Open4 file_;
  Session4 newer_;  // of minor version 2, where the client's own is of 1
};

TEST_F(OpenRules, SharesOutOfRangeAreInvalid) {
  for (const auto& [access, deny] : {std::pair{0u, 0u}, {4u, 0u}, {7u, 0u}, {1u, 4u}, {1u, ~0u}}) {
    xdr::OPEN4args args = by_handle();
    args.share_access = access;
    args.share_deny = deny;
    EXPECT_EQ(open(args).status, NFS4ERR_INVAL) << access << ' ' << deny;
  }
}

TEST_F(OpenRules, WhoseItIsTheSessionSays) {
  xdr::OPEN4args args = by_handle();
  args.owner.clientid = 0x1234567890;
  args.seqid = 77;
  const Reply4 opened = open(args);
  ASSERT_EQ(opened.status, NFS4_OK);
  const auto rflags = opened.get<OP_OPEN>().resok4.rflags;
  EXPECT_EQ(rflags & (xdr::OPEN4_RESULT_CONFIRM | xdr::OPEN4_RESULT_PRESERVE_UNLINKED), 0u);
  xdr::LOCK4args wanted = lock_args();
  wanted.locker.open_owner.open_seqid = 5;
  wanted.locker.open_owner.lock_seqid = 9;
  wanted.locker.open_owner.lock_owner.clientid = 0x1234567890;
  const Reply4 locked = nfs_.on<OP_LOCK>(file_.handle, wanted);
  ASSERT_EQ(locked.status, NFS4_OK);
  xdr::LOCKT4args test{nfs_lock_type4::WRITE_LT, 0, 4, {}};
  test.owner = {0x1234567890, as_bytes(std::string_view("locker"))};
  EXPECT_EQ(nfs_.on<OP_LOCKT>(file_.handle, test).status, NFS4_OK) << "one's own";
  xdr::LOCKU4args unlock;
  unlock.locktype = nfs_lock_type4::READW_LT;
  unlock.seqid = 33;
  unlock.lock_stateid = locked.get<OP_LOCK>().resok4.lock_stateid;
  unlock.length = 4;
  EXPECT_EQ(nfs_.on<OP_LOCKU>(file_.handle, unlock).status, NFS4_OK);
}

TEST_F(OpenRules, WhatARestartedClientHadIsNotClaimed) {
  xdr::OPEN4args args = by_handle();
  args.claim.claim = xdr::open_claim_type4::CLAIM_DELEG_PREV_FH;
  EXPECT_EQ(open(args).status, NFS4ERR_INVAL);
  EXPECT_EQ(nfs_.run(Operations4().add<OP_DELEGPURGE>()).status, NFS4ERR_NOTSUPP);
}

TEST_F(OpenRules, RightsCountForEachReadAndWrite) {
  set_mode(0600);
  EXPECT_EQ(nfs_.write(file_, 0, "some bytes"), NFS4_OK);
  nfs_.set_caller(user(1234, 1234));
  EXPECT_EQ(nfs_.on<OP_READ>(file_.handle, {file_.stateid, 0, 4}).status, NFS4ERR_ACCESS);
  EXPECT_EQ(nfs_.write(file_, 0, "others"), NFS4ERR_ACCESS);
}

TEST_F(OpenRules, AccessAnswersWhatWasAskedAndNoMore) {
  set_mode(0644);
  constexpr std::uint32_t kAll = 0x3f;
  for (std::uint32_t asked = 0; asked <= kAll; ++asked) {
    const auto answer = access(asked);
    EXPECT_EQ(answer.supported & ~asked, 0u);
    EXPECT_EQ(answer.access & ~answer.supported, 0u);
  }
  // The bits for extended attributes came with 4.2.
  EXPECT_EQ(nfs_.on<OP_ACCESS>(file_.handle, {xdr::ACCESS4_XAREAD}).status, NFS4ERR_INVAL);
  nfs_.session = newer_;
  EXPECT_EQ(access(xdr::ACCESS4_XAREAD).access, xdr::ACCESS4_XAREAD);
}

TEST_F(OpenRules, ExecutingAndReadingAreRightsOfTheirOwn) {
  constexpr std::uint32_t kBoth = xdr::ACCESS4_READ | xdr::ACCESS4_EXECUTE;
  set_mode(0644);
  EXPECT_EQ(access(kBoth).access, xdr::ACCESS4_READ) << "root needs one execute bit as well";
  ASSERT_EQ(::chown(nfs_.path("file").c_str(), 1234, 1234), 0);
  nfs_.set_caller(user(1234, 1234));
  set_mode(0100);
  EXPECT_EQ(access(kBoth).access, xdr::ACCESS4_EXECUTE);
  set_mode(0400);
  EXPECT_EQ(access(kBoth).access, xdr::ACCESS4_READ);
}

TEST_F(OpenRules, ASlotAboveTheHighestIsNone) {
  const xdr::SEQUENCE4args args{nfs_.session.id, 1, 2, 1, false};
  EXPECT_EQ(nfs_.run_bare(Operations4().add<OP_SEQUENCE>(args), 1).status, NFS4ERR_BAD_HIGH_SLOT);
}

TEST_F(OpenRules, NothingFollowsTheEndOfItsOwnSession) {
  Session4 another = nfs_.connect("another");
  const auto end = Operations4().add<OP_DESTROY_SESSION>({another.id});
  EXPECT_EQ(nfs_.run(another, Operations4(end).add<OP_PUTROOTFH>()).status, NFS4ERR_NOT_ONLY_OP);
  EXPECT_EQ(nfs_.run(another, end).status, NFS4_OK);
}

TEST_F(OpenRules, TheServerIsTheSameAfterARestart) {
  const auto who = [this] {
    xdr::EXCHANGE_ID4args args;
    args.eia_clientowner.co_ownerid = as_bytes(std::string_view("anybody"));
    const Reply4 reply = nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(args));
    const auto id = reply.get<OP_EXCHANGE_ID>().resok4;
    return std::pair(std::string(as_text(id.eir_server_owner.so_major_id)),
                     std::string(as_text(id.eir_server_scope)));
  };
  const auto before = who();
  EXPECT_FALSE(before.first.empty());
  nfs_.restart();
  EXPECT_EQ(who(), before);
}

TEST_F(OpenRules, ContentsThatAreNoneAreNotLookedFor) {
  nfs_.session = newer_;
  const xdr::SEEK4args args{{}, 0, static_cast<xdr::data_content4>(7)};
  EXPECT_EQ(nfs_.on<OP_SEEK>(file_.handle, args).status, NFS4ERR_UNION_NOTSUPP);
}

}  // namespace
}  // namespace nfsrdma::test
