// SPDX-License-Identifier: Apache-2.0
// Client IDs and stateids can be guessed, and minor version 0 asks for nothing else: those of
// clients with sessions, and of hosts of NFSv3, mean nobody there.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

class IdsOfOthers : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = nfs_.open(nfs_.root(), "file");
    ASSERT_EQ(file_.status, NFS4_OK);
  }
  /// By anybody, from anywhere.
  Reply4 run(const Operations4& operations) {
    nfs_.set_caller(user(1234, 1234));
    nfs_.set_peer("192.0.2.99");
    return nfs_.run_bare(operations, 0);
  }
  Operations4 opening(std::uint64_t client, std::string_view owner, std::uint32_t seqid,
                      std::uint32_t access) {
    xdr::OPEN4args args;
    args.seqid = seqid;
    args.share_access = access;
    args.share_deny = xdr::OPEN4_SHARE_DENY_BOTH;
    args.owner = {client, as_bytes(owner)};
    args.claim.file = "other file";
    return Operations4().putfh(nfs_.root()).add<OP_OPEN>(args);
  }
  /// An owner is made known by a request that fails, and begins anew by the next.
  void start_over(std::uint64_t client, std::string_view owner) {
    EXPECT_EQ(run(opening(client, owner, 1, 0)).status, NFS4ERR_INVAL);
    EXPECT_EQ(run(opening(client, owner, 2, 0)).status, NFS4ERR_INVAL);
  }
  /// A host that has locked the file by NLM.
  std::uint64_t add_host() {
    std::lock_guard lock(nfs_.state().mutex);
    nfs4::Client& host = *nfs_.state().clients.add_host("192.0.2.7 host", nfs_.clock.now()).client;
    std::optional<nfs4::OpenStates::Holder> holder;
    const auto locked =
        nfs_.state().opens.lock_file(host.id, key(), "locker", LockKind::kWrite, {0, 10}, &holder);
    EXPECT_EQ(locked.status, nfs4::OpenStates::Status::kOk);
    nfs_.state().count_holds(host);
    lock_ = {locked.stateid.seqid, locked.stateid.other};
    return host.id;
  }
  nfs4::FileKey key() const {
    struct stat attributes {};
    EXPECT_EQ(::stat(nfs_.path("file").c_str(), &attributes), 0);
    return nfs4::file_key(attributes.st_dev, attributes.st_ino);
  }
  nfs4::OpenStates::Held held(std::uint64_t client) {
    std::lock_guard lock(nfs_.state().mutex);
    return nfs_.state().opens.held(client);
  }
  bool has_sequence(std::uint64_t client, const std::string& owner) {
    std::lock_guard lock(nfs_.state().mutex);
    return nfs_.state().owner_sequences.find({client, nfs4::OwnerKind::kOpen, owner}) != nullptr;
  }

  Nfs4Harness nfs_;
  Open4 file_;
  xdr::stateid4 lock_{};  // add_host()'s
};

TEST_F(IdsOfOthers, NobodyEndsTheOpensOfAClientWithSessions) {
  const std::uint64_t client = nfs_.session.client;
  start_over(client, "owner");
  EXPECT_EQ(held(client).opens, 1u);
  EXPECT_EQ(run(Operations4().putfh(file_.handle).add<OP_CLOSE>({1, file_.stateid})).status,
            NFS4ERR_BAD_STATEID);
  EXPECT_FALSE(has_sequence(client, "owner"));
  nfs_.set_caller(user(0, 0));
  EXPECT_EQ(nfs_.write(file_, 0, "still open"), NFS4_OK);
}

TEST_F(IdsOfOthers, NobodyEndsTheLocksOfAHostByItsOwner) {
  const std::uint64_t host = add_host();
  start_over(host, "locks");
  EXPECT_EQ(held(host).locks, 1u);
  EXPECT_FALSE(has_sequence(host, "locks"));
}

TEST_F(IdsOfOthers, NobodyUnlocksWhatAHostHasLocked) {
  const std::uint64_t host = add_host();
  xdr::LOCKU4args args;
  args.locktype = xdr::nfs_lock_type4::WRITE_LT;
  args.seqid = 1;
  args.lock_stateid = lock_;
  args.length = UINT64_MAX;
  EXPECT_EQ(run(Operations4().putfh(file_.handle).add<OP_LOCKU>(args)).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(held(host).locks, 1u);
}

TEST_F(IdsOfOthers, TheyMeanNobody) {
  for (const std::uint64_t id : {nfs_.session.client, add_host()}) {
    SCOPED_TRACE(id);
    const nfs4::OpenStates::Held before = held(id);
    const xdr::state_owner4 owner{id, as_bytes(std::string_view("somebody"))};
    xdr::LOCKT4args lock;
    lock.length = 1;
    lock.owner = owner;
    const Operations4 operations[] = {
        Operations4().add<OP_RENEW>({id}),
        Operations4().add<OP_RELEASE_LOCKOWNER>({owner}),
        Operations4().putfh(file_.handle).add<OP_LOCKT>(lock),
        opening(id, "somebody", 1, xdr::OPEN4_SHARE_ACCESS_READ),
    };
    for (const Operations4& one : operations)
      EXPECT_EQ(run(one).status, NFS4ERR_STALE_CLIENTID);
    EXPECT_TRUE(held(id) == before);
  }
}

}  // namespace
}  // namespace nfsrdma::test
