// SPDX-License-Identifier: Apache-2.0
// What clients hold on the server ends when it should: descriptors of files, opens, clients.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/nfs4_harness.h"
#include "tests/support/refused_calls.h"

namespace nfsrdma::test {
namespace {

std::size_t descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class HeldFiles : public ::testing::Test {
 protected:
  std::size_t opens_of(std::uint64_t client) {
    std::lock_guard lock(harness_.state().mutex);
    return harness_.state().opens.holds(client);
  }
  Nfs4Harness harness_;
};

TEST_F(HeldFiles, CloseNeedsTheFileThatIsOpen) {
  const Open4 file = harness_.open(harness_.root(), "file");
  const Open4 other = harness_.open(harness_.root(), "other");
  ASSERT_EQ(other.status, NFS4_OK);
  EXPECT_EQ(harness_.on<OP_CLOSE>(harness_.root(), {0, file.stateid}).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(harness_.on<OP_CLOSE>(other.handle, {0, file.stateid}).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(harness_.on<OP_OPEN_DOWNGRADE>(other.handle, {file.stateid, 0, 1, 0}).status,
            NFS4ERR_BAD_STATEID);
  const xdr::LOCK4args lock = first_lock(file.stateid, 0, 10);
  EXPECT_EQ(harness_.on<OP_LOCK>(other.handle, lock).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(harness_.close(file), NFS4_OK);
  EXPECT_EQ(opens_of(harness_.session.client), 1u);
}

TEST_F(HeldFiles, AnOwnerThatStartsOverKeepsNothing) {
  xdr::SETCLIENTID4args who;
  who.client.id = as_bytes(std::string_view("old client"));
  const auto known =
      harness_.run_bare(Operations4().add<OP_SETCLIENTID>(who), 0).get<OP_SETCLIENTID>().resok4;
  ASSERT_EQ(harness_
                .run_bare(Operations4().add<OP_SETCLIENTID_CONFIRM>(
                              {known.clientid, known.setclientid_confirm}),
                          0)
                .status,
            NFS4_OK);
  const std::size_t before = descriptors();
  for (std::uint32_t i = 0; i < 100; ++i) {
    xdr::OPEN4args args;
    args.seqid = 10 * i;  // not the next: as if the server had never confirmed the one before
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {known.clientid, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = "file";
    ASSERT_EQ(harness_.run_bare(Operations4().putfh(harness_.root()).add<OP_OPEN>(args), 0).status,
              NFS4_OK);
    ASSERT_EQ(
        harness_.run_bare(Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"}), 0).status,
        NFS4_OK);
  }
  EXPECT_LT(descriptors(), before + 20);
  EXPECT_EQ(opens_of(known.clientid), 1u);
}

TEST_F(HeldFiles, AnOpenWhoseFileCannotBeCutIsNone) {
  std::array<std::byte, 8> size{};
  store_be64(size.data(), std::uint64_t{1} << 63);
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.owner = {harness_.session.client, as_bytes(std::string_view("owner"))};
  args.claim.file = "large";
  args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  args.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
  args.openhow.how.createattrs.attr_vals = size;
  EXPECT_EQ(harness_.run(Operations4().putfh(harness_.root()).add<OP_OPEN>(args)).status,
            NFS4ERR_FBIG);
  EXPECT_EQ(opens_of(harness_.session.client), 0u);
}

/// What cannot be synced for want of a descriptor is not acknowledged.
TEST_F(HeldFiles, WithoutDescriptorsNothingIsSaidToBeDurable) {
  const Open4 synced = harness_.open(harness_.root(), "synced");
  const Open4 file = harness_.open(harness_.root(), "file");
  for (const Open4& one : {synced, file}) {
    ASSERT_EQ(harness_.close(one), NFS4_OK);
    // In the cache again, and without a descriptor that fsync takes.
    harness_.server().files.forget(one.handle);
    EXPECT_EQ(harness_.run(Operations4().putfh(one.handle)).status, NFS4_OK);
  }
  xdr::SETATTR4args mode;
  std::array<std::byte, 4> value{};
  store_be32(value.data(), 0600);
  mode.obj_attributes.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
  mode.obj_attributes.attr_vals = value;
  EXPECT_EQ(harness_.on<OP_SETATTR>(synced.handle, mode).status, NFS4_OK);
  harness_.on_its_thread([] { refuse_calls(SYS_openat, EMFILE); });
  EXPECT_EQ(harness_.on<OP_SETATTR>(synced.handle, mode).status, NFS4_OK) << "it has one";
  EXPECT_NE(harness_.on<OP_SETATTR>(file.handle, mode).status, NFS4_OK);
}

TEST_F(HeldFiles, AClientThatNobodyMissesIsForgottenAfterADay) {
  const Open4 file = harness_.open(harness_.root(), "file");
  Session4 other = harness_.connect("other");
  EXPECT_EQ(
      harness_.run(other, Operations4().putfh(harness_.root()).add<OP_REMOVE>({"file"})).status,
      NFS4_OK);
  harness_.clock.move(std::chrono::hours(20));
  Session4 later = harness_.connect("later");
  EXPECT_EQ(harness_.run(later, Operations4().putfh(file.handle)).status, NFS4_OK)
      << "kept out of courtesy";
  harness_.clock.move(std::chrono::hours(5));
  later = harness_.connect("much later");
  EXPECT_EQ(harness_.run(later, Operations4().putfh(file.handle)).status, NFS4ERR_STALE);
}

/// PUTFH does not look whether the file still has a name; who needs the file does.
TEST_F(HeldFiles, AFileThatWasRemovedHereIsUsableWhileItIsOpen) {
  const Open4 file = harness_.open(harness_.root(), "file");
  ASSERT_EQ(::unlink(harness_.path("file").c_str()), 0);
  xdr::GETATTR4args size;
  size.attr_request.set(xdr::fattr4_number::FATTR4_SIZE);
  EXPECT_EQ(harness_.on<OP_GETATTR>(file.handle, size).status, NFS4_OK);
  xdr::ACCESS4args access;
  access.access = xdr::ACCESS4_READ;
  EXPECT_EQ(harness_.on<OP_ACCESS>(file.handle, access).status, NFS4_OK);
  EXPECT_EQ(harness_.close(file), NFS4_OK);
  EXPECT_EQ(harness_.on<OP_GETATTR>(file.handle, size).status, NFS4ERR_STALE);

  const Open4 looked_at = harness_.open(harness_.root(), "looked at");
  ASSERT_EQ(harness_.close(looked_at), NFS4_OK);
  ASSERT_EQ(harness_.on<OP_GETATTR>(looked_at.handle, size).status, NFS4_OK);
  ASSERT_EQ(::unlink(harness_.path("looked at").c_str()), 0);
  EXPECT_EQ(harness_.on<OP_GETATTR>(looked_at.handle, size).status, NFS4ERR_STALE)
      << "in the cache of descriptors";
  EXPECT_EQ(harness_.on<OP_ACCESS>(looked_at.handle, access).status, NFS4ERR_STALE);
}

TEST_F(HeldFiles, NamesAloneKeepNobodyOut) {
  harness_.set_caller(RpcCredentials{});
  for (int i = 0; i < 11000; ++i) {
    const std::string name = "stranger" + std::to_string(i);
    xdr::EXCHANGE_ID4args who;
    who.eia_clientowner.co_ownerid = as_bytes(name);
    ASSERT_EQ(harness_.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).status, NFS4_OK) << i;
  }
  harness_.set_caller(user(0, 0));
  EXPECT_NE(harness_.connect("a real one").client, 0u);
}

}  // namespace
}  // namespace nfsrdma::test
