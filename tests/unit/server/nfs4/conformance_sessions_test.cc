// SPDX-License-Identifier: Apache-2.0
// What RFC 8881 demands of sessions and leases and no other test shows (tests/conformance/ledger).
#include <gtest/gtest.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using std::chrono::seconds;

class SessionRules : public ::testing::Test {
 protected:
  xdr::CREATE_SESSION4args wanted() {
    xdr::EXCHANGE_ID4args who;
    who.eia_clientowner.co_ownerid = as_bytes(std::string_view("somebody"));
    const auto id = nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).get<OP_EXCHANGE_ID>();
    xdr::CREATE_SESSION4args args;
    args.csa_clientid = id.resok4.eir_clientid;
    args.csa_sequence = id.resok4.eir_sequenceid;
    args.csa_fore_chan_attrs = args.csa_back_chan_attrs = {0, 65536, 65536, 4096, 16, 4, {}};
    return args;
  }
  xdr::CREATE_SESSION4resok create(const xdr::CREATE_SESSION4args& args) {
    const auto made = nfs_.run_bare(Operations4().add<OP_CREATE_SESSION>(args));
    EXPECT_EQ(made.status, NFS4_OK);
    return made.get<OP_CREATE_SESSION>().resok4;
  }
  /// Whether somebody else may have the only lock on the file, which an expired client loses.
  bool is_expired() {
    std::lock_guard lock(nfs_.state().mutex);
    nfs4::Client* client = nfs_.state().clients.find(nfs_.session.client);
    return client == nullptr || nfs_.state().clients.expired(*client, nfs_.clock.now());
  }
  Nfs4Harness nfs_;
};

TEST_F(SessionRules, HowMuchAClientTakesBackwardsIsItsOwnToSay) {
  xdr::CREATE_SESSION4args args = wanted();
  args.csa_back_chan_attrs.ca_maxoperations = 77;
  args.csa_back_chan_attrs.ca_maxrequests = 1000;
  args.csa_back_chan_attrs.ca_maxresponsesize = 65536;
  const auto made = create(args);
  EXPECT_EQ(made.csr_back_chan_attrs.ca_maxoperations, 77u);
  EXPECT_EQ(made.csr_back_chan_attrs.ca_maxrequests, 1000u);
  EXPECT_EQ(made.csr_back_chan_attrs.ca_maxresponsesize, 65536u);
}

TEST_F(SessionRules, NothingIsNegotiatedUpwards) {
  const xdr::CREATE_SESSION4args args = wanted();
  const auto made = create(args);
  const auto no_more = [](const xdr::channel_attrs4& got, const xdr::channel_attrs4& offered) {
    EXPECT_LE(got.ca_headerpadsize, offered.ca_headerpadsize);
    EXPECT_LE(got.ca_maxrequestsize, offered.ca_maxrequestsize);
    EXPECT_LE(got.ca_maxresponsesize, offered.ca_maxresponsesize);
    EXPECT_LE(got.ca_maxresponsesize_cached, offered.ca_maxresponsesize_cached);
  };
  no_more(made.csr_fore_chan_attrs, args.csa_fore_chan_attrs);
  no_more(made.csr_back_chan_attrs, args.csa_back_chan_attrs);
  EXPECT_EQ(made.csr_sequence, args.csa_sequence);
}

TEST_F(SessionRules, FlagsThatAreNotTrueAreNotSet) {
  xdr::CREATE_SESSION4args args = wanted();
  args.csa_flags = xdr::CREATE_SESSION4_FLAG_PERSIST | xdr::CREATE_SESSION4_FLAG_CONN_RDMA;
  EXPECT_EQ(create(args).csr_flags, 0u);
}

TEST_F(SessionRules, ARetryRenewsTheLeaseToo) {
  nfs_.session.cache_this = true;
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4_OK);
  nfs_.clock.move(seconds(60));
  --nfs_.session.sequence;
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4_OK);
  nfs_.clock.move(seconds(60));
  EXPECT_FALSE(is_expired());
  nfs_.clock.move(seconds(60));
  EXPECT_TRUE(is_expired());
}

TEST_F(SessionRules, ARefusedSequenceDoesNotRenewTheLease) {
  nfs_.clock.move(seconds(60));
  nfs_.session.sequence += 7;
  EXPECT_EQ(nfs_.run(Operations4()).status, NFS4ERR_SEQ_MISORDERED);
  nfs_.clock.move(seconds(60));
  EXPECT_TRUE(is_expired());
}

TEST_F(SessionRules, TheLeaseCountsFromTheEndOfTheRequest) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  nfs_.during_commit = [this] {
    nfs_.clock.move(seconds(60));
    return 0;
  };
  EXPECT_EQ(nfs_.write(file, 0, "x", xdr::stable_how4::FILE_SYNC4), NFS4_OK);
  nfs_.clock.move(seconds(60));
  EXPECT_FALSE(is_expired());
}

TEST_F(SessionRules, ARefusedSequenceLeavesTheSlotAsItWas) {
  nfs_.session.cache_this = true;
  const Reply4 first = nfs_.run(Operations4().add<OP_PUTROOTFH>());
  const std::uint32_t last = nfs_.session.sequence;
  nfs_.session.sequence = last + 2;
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4ERR_SEQ_MISORDERED);
  nfs_.session.sequence = last - 1;
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).bytes, first.bytes);
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4_OK);
}

TEST_F(SessionRules, ARetryWithAnOperationThatIsNoneSaysSoAndNotThatItWasNotKept) {
  const auto renew = Operations4().add<OP_RENEW>();
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>().add(renew)).status, NFS4ERR_NOTSUPP);
  EXPECT_EQ(nfs_.run(renew).status, NFS4ERR_NOTSUPP);
  --nfs_.session.sequence;
  EXPECT_EQ(nfs_.run(renew).status, NFS4ERR_NOTSUPP);
}

TEST_F(SessionRules, ARetryOfSequenceAloneIsAnswered) {
  EXPECT_EQ(nfs_.run(Operations4()).status, NFS4_OK);
  --nfs_.session.sequence;
  EXPECT_EQ(nfs_.run(Operations4()).status, NFS4_OK);
}

TEST_F(SessionRules, ARetryBySomebodyElseIsAFalseRetry) {
  nfs_.session.cache_this = true;
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4_OK);
  --nfs_.session.sequence;
  nfs_.set_caller(user(1234, 1234));
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4ERR_SEQ_FALSE_RETRY);
}

/// RFC 8178 8.1: a client ID belongs to one minor version.
TEST_F(SessionRules, ARequestOfAnotherMinorVersionThanTheClientsIsRefused) {
  const auto is_refused = [](const Reply4& reply) {
    return reply.status == NFS4ERR_MINOR_VERS_MISMATCH && reply.results.empty();
  };
  Session4 another = nfs_.session;
  another.minor_version = 1;
  EXPECT_TRUE(is_refused(nfs_.run(another, Operations4().add<OP_PUTROOTFH>())));
  EXPECT_EQ(nfs_.run(Operations4().add<OP_PUTROOTFH>()).status, NFS4_OK) << "the slot is as it was";
  xdr::EXCHANGE_ID4args who;
  who.eia_clientowner.co_ownerid = as_bytes(std::string_view("first"));
  EXPECT_TRUE(is_refused(nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who), 1)));
  EXPECT_EQ(nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who), 2).status, NFS4_OK);
  const auto make = Operations4().add<OP_CREATE_SESSION>(wanted());
  EXPECT_TRUE(is_refused(nfs_.run_bare(make, 1))) << "of a client that is not confirmed yet";
  EXPECT_EQ(nfs_.run_bare(make, 2).status, NFS4_OK);
  // The client in another life may have chosen otherwise.
  who.eia_clientowner.co_verifier.fill(std::byte{7});
  EXPECT_EQ(nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who), 1).status, NFS4_OK);
}

TEST_F(SessionRules, AValueThatDoesNotFitIntoTheReplyIsTooBig) {
  xdr::CREATE_SESSION4args args = wanted();
  args.csa_fore_chan_attrs.ca_maxresponsesize = 2048;
  Session4 session;
  session.id = create(args).csr_sessionid;
  ASSERT_EQ(nfs_.run(session, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
  const Open4 file = nfs_.open(nfs_.root(), "file");
  const std::string value(3000, 'v');
  const xdr::SETXATTR4args set{xdr::setxattr_option4::SETXATTR4_EITHER, "a", as_bytes(value)};
  ASSERT_EQ(nfs_.on<OP_SETXATTR>(file.handle, set).status, NFS4_OK);
  const Reply4 reply = nfs_.run(session, Operations4().putfh(file.handle).add<OP_GETXATTR>({"a"}));
  EXPECT_EQ(reply.status, NFS4ERR_REP_TOO_BIG);
  EXPECT_EQ(reply.get<OP_GETXATTR>().status, NFS4ERR_REP_TOO_BIG);
  EXPECT_EQ(reply.results.size(), 3u);
}

TEST_F(SessionRules, ASequenceWhoseReplyCannotBeKeptTakesNoSlot) {
  xdr::CREATE_SESSION4args args = wanted();
  args.csa_fore_chan_attrs.ca_maxresponsesize_cached = 64;
  Session4 session;
  session.client = args.csa_clientid;
  session.id = create(args).csr_sessionid;
  const auto renewed = [&] {
    std::lock_guard lock(nfs_.state().mutex);
    return nfs_.state().clients.find(session.client)->renewed;
  };
  const TimePoint before = renewed();
  nfs_.clock.move(seconds(10));
  session.cache_this = true;
  for (int i = 0; i < 2; ++i) {
    const Reply4 reply = nfs_.run(session, Operations4().add<OP_PUTROOTFH>());
    EXPECT_EQ(reply.status, NFS4ERR_REP_TOO_BIG_TO_CACHE);
    EXPECT_EQ(reply.results.size(), 1u);
    --session.sequence;
  }
  EXPECT_EQ(renewed(), before);
  session.cache_this = false;
  EXPECT_EQ(nfs_.run(session, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK)
      << "the slot is as it was";
  EXPECT_GT(renewed(), before);
}

TEST_F(SessionRules, AMinorVersionThatIsNoneHasNoResults) {
  const Reply4 reply = nfs_.run_bare(Operations4().add<OP_PUTROOTFH>(), 3);
  EXPECT_EQ(reply.status, NFS4ERR_MINOR_VERS_MISMATCH);
  EXPECT_TRUE(reply.results.empty());
}

}  // namespace
}  // namespace nfsrdma::test
