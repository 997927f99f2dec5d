// SPDX-License-Identifier: Apache-2.0
// Delegations after a restart of the server (RFC 8881 10.2.1, 8.4.3): their holders get them back,
// but not those that they had lost before without knowing.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/callback_client.h"

namespace nfsrdma::test {
namespace {

using xdr::open_delegation_type4;

class ReclaimedDelegations : public ::testing::Test {
 protected:
  void SetUp() override {
    other_ = harness_.connect("other");
    harness_.connection().max_backward = 1000;
    holder_ = harness_.connect("holder");
    harness_.session = other_;
    const Open4 made = harness_.open(harness_.root(), "file");
    ASSERT_EQ(made.status, NFS4_OK);
    ASSERT_EQ(harness_.close(made), NFS4_OK);
    other_ = harness_.session;
    file_ = made.handle;
    const Reply4 opened = open(holder_, "holder", xdr::OPEN4_SHARE_ACCESS_READ);
    const auto given = opened.get<OP_OPEN>().resok4.delegation;
    ASSERT_EQ(given.delegation_type, open_delegation_type4::OPEN_DELEGATE_READ);
    delegation_ = given.read.stateid;
  }
  Reply4 open(Session4& session, std::string_view owner, std::uint32_t access) {
    xdr::OPEN4args args;
    args.share_access = access;
    args.owner = {session.client, as_bytes(owner)};
    args.claim.file = "file";
    return harness_.run(session, Operations4().putfh(harness_.root()).add<OP_OPEN>(args));
  }
  nfsstat4 open_for_writing() {
    return open(other_, "other", xdr::OPEN4_SHARE_ACCESS_WRITE).status;
  }
  Reply4 claim() {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_READ;
    args.owner = {holder_.client, as_bytes(std::string_view("holder"))};
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    args.claim.delegate_type = open_delegation_type4::OPEN_DELEGATE_READ;
    return harness_.run(holder_, Operations4().putfh(file_).add<OP_OPEN>(args));
  }
  /// The server goes and comes again, and the holder too; it has not said yet that it has
  /// reclaimed.
  void restart() {
    harness_.restart();
    xdr::EXCHANGE_ID4args who;
    who.eia_clientowner.co_ownerid = as_bytes(std::string_view("holder"));
    const auto id = harness_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).get<OP_EXCHANGE_ID>();
    holder_ = Session4();
    holder_.client = id.resok4.eir_clientid;
    xdr::CREATE_SESSION4args wanted;
    wanted.csa_clientid = holder_.client;
    wanted.csa_sequence = id.resok4.eir_sequenceid;
    for (xdr::channel_attrs4* channel : {&wanted.csa_fore_chan_attrs, &wanted.csa_back_chan_attrs})
      *channel = {0, 65536, 65536, 4096, 16, 4, {}};
    std::array<std::byte, 4> no_security{};
    wanted.csa_flags = xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    wanted.csa_cb_program = 0x40000000;
    wanted.csa_sec_parms = {no_security, 1};
    const auto made =
        harness_.run_bare(Operations4().add<OP_CREATE_SESSION>(wanted)).get<OP_CREATE_SESSION>();
    ASSERT_EQ(made.status, NFS4_OK);
    holder_.id = made.resok4.csr_sessionid;
  }
  /// The holder does not answer, until its time is over; its lease is not.
  void revoke() {
    ASSERT_EQ(open_for_writing(), NFS4ERR_DELAY);
    ASSERT_EQ(client_side_.calls().size(), 1u);
    client_side_.fail(Errc::kTimedOut);
    harness_.clock.move(std::chrono::seconds(40));
    ASSERT_EQ(harness_.run(holder_, Operations4()).status, NFS4_OK);
    harness_.clock.move(std::chrono::seconds(25));
    std::lock_guard lock(harness_.state().mutex);
    harness_.state().delegations.tick();
  }
  /// Of the holder, not of the other.
  void outlive_the_lease() {
    harness_.clock.move(std::chrono::seconds(80));
    ASSERT_EQ(harness_.run(other_, Operations4()).status, NFS4_OK);
    harness_.clock.move(std::chrono::seconds(80));
  }
  nfsstat4 change_mode() {
    xdr::SETATTR4args mode;
    std::array<std::byte, 4> value{};
    store_be32(value.data(), 0600);
    mode.obj_attributes.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
    mode.obj_attributes.attr_vals = value;
    return harness_.run(other_, Operations4().putfh(file_).add<OP_SETATTR>(mode)).status;
  }

  Nfs4Harness harness_;
  CallbackClient client_side_{harness_};
  Session4 holder_, other_;
  FileHandle file_;
  xdr::stateid4 delegation_{};
};

TEST_F(ReclaimedDelegations, TheyComeBackAndHold) {
  restart();
  const Reply4 reply = claim();
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_OPEN>().resok4.delegation.delegation_type,
            open_delegation_type4::OPEN_DELEGATE_READ);
  EXPECT_EQ(harness_.run(holder_, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  other_ = harness_.connect("other");
  // The harness's own client does not come back, and is waited for.
  harness_.clock.move(std::chrono::seconds(50));
  EXPECT_EQ(harness_.run(holder_, Operations4()).status, NFS4_OK);
  EXPECT_EQ(harness_.run(other_, Operations4()).status, NFS4_OK);
  harness_.clock.move(std::chrono::seconds(50));
  EXPECT_EQ(open_for_writing(), NFS4ERR_DELAY);
}

// Or else what the holder has not written yet would go over what others have written since.
TEST_F(ReclaimedDelegations, NotByWhoDoesNotKnowThatOneWasRevoked) {
  revoke();
  ASSERT_EQ(open_for_writing(), NFS4_OK);
  restart();
  EXPECT_EQ(claim().status, NFS4ERR_RECLAIM_BAD);
}

TEST_F(ReclaimedDelegations, WhoKnowsWhatWasRevokedReclaimsTheRest) {
  revoke();
  ASSERT_EQ(harness_.run(holder_, Operations4().add<OP_FREE_STATEID>({delegation_})).status,
            NFS4_OK);
  restart();
  EXPECT_EQ(claim().status, NFS4_OK);
}

TEST_F(ReclaimedDelegations, NotByWhoLostThemWithTheLease) {
  outlive_the_lease();
  ASSERT_EQ(open_for_writing(), NFS4_OK);
  restart();
  EXPECT_EQ(claim().status, NFS4ERR_RECLAIM_BAD);
}

TEST_F(ReclaimedDelegations, NotByWhoLostThemToAChangeOfAttributes) {
  outlive_the_lease();
  // Not before it is written down that the holder has lost it.
  ASSERT_EQ(change_mode(), NFS4ERR_DELAY);
  ASSERT_EQ(change_mode(), NFS4_OK);
  {
    std::lock_guard lock(harness_.state().mutex);
    EXPECT_EQ(harness_.state().clients.find(holder_.client), nullptr);
  }
  while (harness_.state().any_ended())
    std::this_thread::yield();
  restart();
  EXPECT_EQ(claim().status, NFS4ERR_RECLAIM_BAD);
}

TEST_F(ReclaimedDelegations, AChangeWaitsThoughSomebodyElseIsNotWrittenDownEither) {
  const Session4 third = harness_.connect("third");
  outlive_the_lease();
  {
    std::lock_guard lock(harness_.state().mutex);
    ASSERT_TRUE(harness_.state().end_expired({third.client}));
    ASSERT_TRUE(harness_.state().any_ended());
  }
  EXPECT_EQ(change_mode(), NFS4ERR_DELAY);
  EXPECT_EQ(change_mode(), NFS4_OK);
}

}  // namespace
}  // namespace nfsrdma::test
