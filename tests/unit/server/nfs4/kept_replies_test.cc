// SPDX-License-Identifier: Apache-2.0
// Sessions that have little of a reply kept (ca_maxresponsesize_cached): 1 KiB is what Windows'
// client asks for, and not much more what Linux's does.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

class KeptReplies : public ::testing::Test {
 protected:
  KeptReplies() { nfs_.connection().max_backward = 1000; }
  /// A client that can be called, all of whose replies are to be kept, of `bytes` at most.
  Session4 keeping(std::uint32_t bytes) {
    xdr::EXCHANGE_ID4args who;
    who.eia_clientowner.co_ownerid = as_bytes(std::string_view("somebody"));
    const auto id = nfs_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).get<OP_EXCHANGE_ID>();
    std::array<std::byte, 4> no_security{};
    xdr::CREATE_SESSION4args args;
    args.csa_clientid = id.resok4.eir_clientid;
    args.csa_sequence = id.resok4.eir_sequenceid;
    args.csa_flags = xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    args.csa_cb_program = 0x40000000;
    args.csa_sec_parms = {no_security, 1};
    args.csa_fore_chan_attrs = args.csa_back_chan_attrs = {0, 65536, 65536, bytes, 16, 4, {}};
    const auto made =
        nfs_.run_bare(Operations4().add<OP_CREATE_SESSION>(args)).get<OP_CREATE_SESSION>();
    EXPECT_EQ(made.status, NFS4_OK);
    EXPECT_EQ(made.resok4.csr_fore_chan_attrs.ca_maxresponsesize_cached, bytes);
    Session4 out;
    out.client = args.csa_clientid;
    out.id = made.resok4.csr_sessionid;
    EXPECT_EQ(nfs_.run(out, Operations4().add<OP_RECLAIM_COMPLETE>()).status, NFS4_OK);
    out.cache_this = true;
    return out;
  }
  /// Of a new file, with a write delegation: the longest result.
  Operations4 opening(const Session4& session, std::string_view name) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {session.client, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = name;
    return Operations4().putfh(nfs_.root()).add<OP_OPEN>(args);
  }
  nfsstat4 lock(Session4& session, const Open4& file, std::string_view owner,
                std::uint64_t offset) {
    const xdr::LOCK4args args = first_lock(file.stateid, offset, 10, owner);
    return nfs_.run(session, Operations4().putfh(file.handle).add<OP_LOCK>(args)).status;
  }
  Nfs4Harness nfs_;
};

TEST_F(KeptReplies, OfOneKibibyteHaveRoomForAnOpen) {
  Session4 session = keeping(1024);
  const Reply4 reply = nfs_.run(session, opening(session, "file").add<OP_GETFH>());
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_OPEN>().resok4.delegation.delegation_type,
            xdr::open_delegation_type4::OPEN_DELEGATE_WRITE);
}

/// What is in front of OPEN has 64 bytes. Behind it, it would be too late.
TEST_F(KeptReplies, AnOpenThatDoesNotFitMakesNoFile) {
  Session4 session = keeping(180);
  EXPECT_EQ(nfs_.run(session, opening(session, "file")).status, NFS4ERR_REP_TOO_BIG_TO_CACHE);
  EXPECT_FALSE(std::filesystem::exists(nfs_.path("file")));
}

TEST_F(KeptReplies, OfOneKibibyteHaveRoomForALock) {
  nfs_.session = nfs_.connect("first");
  const Open4 theirs = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(lock(nfs_.session, theirs, std::string(1000, 'n'), 0), NFS4_OK);
  Session4 session = keeping(1024);
  std::swap(session, nfs_.session);
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  EXPECT_EQ(lock(nfs_.session, file, "owner", 100), NFS4_OK);
  // Whose lock it is finds no room.
  EXPECT_EQ(lock(nfs_.session, file, "owner", 0), NFS4ERR_REP_TOO_BIG_TO_CACHE);
}

}  // namespace
}  // namespace nfsrdma::test
