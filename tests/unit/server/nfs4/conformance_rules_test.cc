// SPDX-License-Identifier: Apache-2.0
// More of what the RFCs demand and no other test shows (tests/conformance/ledger): what has to be
// on stable storage, minor version 0, and several file systems.
#include <sys/xattr.h>

#include <mutex>

#include "tests/support/nfs4_exports.h"

namespace nfsrdma::test {
namespace {

using enum xdr::fattr4_number;
using xdr::createmode4;
using xdr::nfs_lock_type4;
using xdr::stable_how4;

// --- stable storage
// -----------------------------------------------------------------------------

struct Synced {
  ino_t inode;
  bool data_only;
  bool operator==(const Synced&) const = default;
};
std::mutex g_mutex;
std::vector<Synced> g_synced;

int note_sync(int fd, bool data_only) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return -1;
  std::lock_guard lock(g_mutex);
  g_synced.push_back({st.st_ino, data_only});
  return 0;
}

class StableStorage : public ::testing::Test {
 protected:
  StableStorage() { (void)synced(); }
  static HarnessOptions noting() {
    HarnessOptions out;
    out.committer_calls = {note_sync};
    return out;
  }
  /// What has been synced since it was asked last.
  static std::vector<Synced> synced() {
    std::lock_guard lock(g_mutex);
    return std::exchange(g_synced, {});
  }
  Reply4 create(createmode4 mode) {
    xdr::OPEN4args args;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.owner = {nfs.session.client, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.openhow.how.mode = mode;
    args.openhow.how.createverf.fill(std::byte{9});
    args.openhow.how.ch_createboth.cva_verf.fill(std::byte{9});
    args.claim.file = "made";
    return nfs.on<OP_OPEN>(nfs.root(), args);
  }
  Nfs4Harness nfs{noting()};
};

TEST_F(StableStorage, TheVerifierOfAnExclusiveCreateIsThereBeforeTheReply) {
  for (const createmode4 mode : {createmode4::EXCLUSIVE4, createmode4::EXCLUSIVE4_1}) {
    SCOPED_TRACE(static_cast<unsigned>(mode));
    ASSERT_EQ(create(mode).status, NFS4_OK);
    // With the times that hold it, so not the data alone.
    const Synced file{stat_of(nfs.path("made")).st_ino, false};
    EXPECT_EQ(std::ranges::count(synced(), file), 1);
    std::filesystem::remove(nfs.path("made"));
  }
  // And where that fails the create has failed.
  nfs.during_commit = [] { return EIO; };
  EXPECT_EQ(create(createmode4::EXCLUSIVE4_1).status, NFS4ERR_IO);
}

TEST_F(StableStorage, DataOfDataSyncIsThereBeforeTheReply) {
  const Open4 file = nfs.open(nfs.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  const ino_t inode = stat_of(nfs.path("file")).st_ino;
  (void)synced();
  EXPECT_EQ(nfs.write(file, 0, "data"), NFS4_OK);
  EXPECT_EQ(synced(), std::vector<Synced>{}) << "nobody asked";
  auto write = [&](stable_how4 stable) {
    return nfs.on<OP_WRITE>(file.handle, {file.stateid, 0, stable, {as_bytes("data")}});
  };
  const Reply4 reply = write(stable_how4::DATA_SYNC4);
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_WRITE>().resok4.committed, stable_how4::DATA_SYNC4);
  EXPECT_EQ(synced(), (std::vector<Synced>{{inode, true}}));
  EXPECT_EQ(write(stable_how4::FILE_SYNC4).status, NFS4_OK);
  EXPECT_EQ(synced(), (std::vector<Synced>{{inode, false}}));
  nfs.during_commit = [] { return EIO; };
  EXPECT_EQ(write(stable_how4::DATA_SYNC4).status, NFS4ERR_IO);
}

// --- minor version 0
// ----------------------------------------------------------------------------

class OldClient4 : public ::testing::Test {
 protected:
  void SetUp() override { introduce(); }
  void introduce() {
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(std::string_view("old client"));
    const auto known = run(Operations4().add<OP_SETCLIENTID>(who)).get<OP_SETCLIENTID>();
    ASSERT_EQ(known.status, NFS4_OK);
    client_ = known.resok4.clientid;
    const Operations4 confirm =
        Operations4().add<OP_SETCLIENTID_CONFIRM>({client_, known.resok4.setclientid_confirm});
    ASSERT_EQ(run(confirm).status, NFS4_OK);
  }
  Reply4 run(const Operations4& operations) { return nfs.run_bare(operations, 0); }
  xdr::OPEN4args opening(std::uint32_t seqid) {
    xdr::OPEN4args args;
    args.seqid = seqid;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {client_, as_bytes(std::string_view("owner"))};
    args.claim.file = "file";
    return args;
  }
  /// Open and confirmed, with the owner's seqids 1 and 2.
  void open_file() {
    xdr::OPEN4args args = opening(1);
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    const Reply4 opened = run(Operations4().putfh(nfs.root()).add<OP_OPEN>(args).add<OP_GETFH>());
    ASSERT_EQ(opened.status, NFS4_OK);
    EXPECT_NE(opened.get<OP_OPEN>().resok4.rflags & xdr::OPEN4_RESULT_CONFIRM, 0u);
    file_ = to_handle(opened.get<OP_GETFH>().resok4.object.data);
    const Reply4 confirmed = run(
        Operations4().putfh(file_).add<OP_OPEN_CONFIRM>({opened.get<OP_OPEN>().resok4.stateid, 2}));
    ASSERT_EQ(confirmed.status, NFS4_OK);
    open_ = confirmed.get<OP_OPEN_CONFIRM>().resok4.open_stateid;
  }

  Nfs4Harness nfs;
  std::uint64_t client_ = 0;
  FileHandle file_;
  xdr::stateid4 open_;
};

TEST_F(OldClient4, WhoReclaimsConfirmsNothing) {
  open_file();
  nfs.restart();
  introduce();
  xdr::OPEN4args args = opening(77);
  args.claim = {};
  args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
  const Reply4 claimed = run(Operations4().putfh(file_).add<OP_OPEN>(args));
  ASSERT_EQ(claimed.status, NFS4_OK);
  EXPECT_EQ(claimed.get<OP_OPEN>().resok4.rflags & xdr::OPEN4_RESULT_CONFIRM, 0u);
  // It is open as it is.
  const xdr::stateid4 stateid = claimed.get<OP_OPEN>().resok4.stateid;
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_READ>({stateid, 0, 1})).status, NFS4_OK);
}

TEST_F(OldClient4, ClaimsOfFormerDelegationsAndTheirEndAreBothLeftOut) {
  open_file();
  xdr::OPEN4args args = opening(3);
  args.claim.claim = xdr::open_claim_type4::CLAIM_DELEGATE_PREV;
  EXPECT_EQ(run(Operations4().putfh(nfs.root()).add<OP_OPEN>(args)).status, NFS4ERR_NOTSUPP);
  EXPECT_EQ(run(Operations4().add<OP_DELEGPURGE>({client_})).status, NFS4ERR_NOTSUPP);
}

/// RFC 7530 16.28.5.
TEST_F(OldClient4, WhoRenewsIsTheClientOrHasAFileOpen) {
  open_file();
  const auto renew = [this](std::uint32_t who) {
    nfs.set_caller(user(who, who));
    return run(Operations4().add<OP_RENEW>({client_})).status;
  };
  EXPECT_EQ(renew(1234), NFS4ERR_ACCESS);
  EXPECT_EQ(renew(0), NFS4_OK);
  ASSERT_EQ(::chmod(nfs.path("file").c_str(), 0666), 0);
  nfs.set_caller(user(1234, 1234));
  xdr::OPEN4args args = opening(1);
  args.owner.owner = as_bytes(std::string_view("another"));
  const Reply4 opened = run(Operations4().putfh(nfs.root()).add<OP_OPEN>(args));
  ASSERT_EQ(opened.status, NFS4_OK);
  const Reply4 confirmed = run(
      Operations4().putfh(file_).add<OP_OPEN_CONFIRM>({opened.get<OP_OPEN>().resok4.stateid, 2}));
  ASSERT_EQ(confirmed.status, NFS4_OK);
  EXPECT_EQ(renew(1234), NFS4_OK);
  EXPECT_EQ(renew(0), NFS4_OK);
  EXPECT_EQ(renew(4321), NFS4ERR_ACCESS);
  nfs.set_caller(user(1234, 1234));
  const xdr::stateid4 stateid = confirmed.get<OP_OPEN_CONFIRM>().resok4.open_stateid;
  EXPECT_EQ(run(Operations4().putfh(file_).add<OP_CLOSE>({3, stateid})).status, NFS4_OK);
  EXPECT_EQ(renew(1234), NFS4ERR_ACCESS) << "it has nothing open any more";
  EXPECT_EQ(renew(0), NFS4_OK);
}

TEST_F(OldClient4, UnlockingTakesEveryKindOfLock) {
  open_file();
  xdr::LOCK4args lock;
  lock.locktype = nfs_lock_type4::WRITE_LT;
  lock.length = 10;
  lock.locker.new_lock_owner = true;
  lock.locker.open_owner = {3, open_, 1, {client_, as_bytes(std::string_view("locker"))}};
  const Reply4 first = run(Operations4().putfh(file_).add<OP_LOCK>(lock));
  ASSERT_EQ(first.status, NFS4_OK);
  xdr::stateid4 stateid = first.get<OP_LOCK>().resok4.lock_stateid;
  std::uint32_t seqid = 1;
  for (const nfs_lock_type4 type : {nfs_lock_type4::READ_LT, nfs_lock_type4::WRITE_LT,
                                    nfs_lock_type4::READW_LT, nfs_lock_type4::WRITEW_LT}) {
    SCOPED_TRACE(static_cast<unsigned>(type));
    const xdr::LOCKU4args unlock{type, ++seqid, stateid, 0, 10};
    const Reply4 unlocked = run(Operations4().putfh(file_).add<OP_LOCKU>(unlock));
    ASSERT_EQ(unlocked.status, NFS4_OK);
    xdr::LOCKT4args test{nfs_lock_type4::WRITE_LT, 0, 10, {}};
    test.owner = {client_, as_bytes(std::string_view("somebody"))};
    EXPECT_EQ(run(Operations4().putfh(file_).add<OP_LOCKT>(test)).status, NFS4_OK);
    xdr::LOCK4args again = lock;
    again.locker.new_lock_owner = false;
    again.locker.lock_owner = {unlocked.get<OP_LOCKU>().resok4, ++seqid};
    const Reply4 locked = run(Operations4().putfh(file_).add<OP_LOCK>(again));
    ASSERT_EQ(locked.status, NFS4_OK);
    stateid = locked.get<OP_LOCK>().resok4.lock_stateid;
  }
}

// --- several file systems
// -----------------------------------------------------------------------

/// The directory of the test, and one in memory.
class TwoFileSystems4 : public Exports4 {
 protected:
  void SetUp() override {
    ASSERT_NE(stat_of(other_).st_dev, stat_of(nfs.directory()).st_dev);
    load("@ *(rw,no_root_squash)\n" + other_ + " *(rw,no_root_squash)\n");
    put_file(nfs.path("file"), "");
    put_file(other_ + "/file", "");
  }
  Operations4 other() const {
    Operations4 out;
    out.add<OP_PUTROOTFH>();
    for (const auto& part : std::filesystem::path(other_).relative_path())
      out.add<OP_LOOKUP>({part.string()});
    return out;
  }
  std::uint64_t fsid(const Operations4& way) {
    const auto fsid = attributes(way, xdr::bitmap4::of({FATTR4_FSID})).values.fsid;
    EXPECT_EQ(fsid.minor, 0u);
    return fsid.major;
  }

  const TemporaryDirectory in_memory_{"/dev/shm"};
  const std::string& other_ = in_memory_.path();
};

TEST_F(TwoFileSystems4, EachHasAnFsidOfItsOwnAndSoHasWhatLeadsThere) {
  const std::uint64_t pseudo = fsid(Operations4().add<OP_PUTROOTFH>());
  EXPECT_EQ(fsid(Operations4().add<OP_PUTROOTFH>().add<OP_LOOKUP>({"dev"})), pseudo);
  const std::uint64_t first = fsid(way_to("")), second = fsid(other());
  EXPECT_NE(first, pseudo);
  EXPECT_NE(second, pseudo);
  EXPECT_NE(first, second);
  EXPECT_EQ(fsid(way_to("file")), first);
}

TEST_F(TwoFileSystems4, NamesDoNotGoFromOneToTheOther) {
  const Operations4 link = way_to("file").add<OP_SAVEFH>().add(other()).add<OP_LINK>({"linked"});
  EXPECT_EQ(nfs.run(link).status, NFS4ERR_XDEV);
  const Operations4 move =
      way_to("").add<OP_SAVEFH>().add(other()).add<OP_RENAME>({"file", "moved"});
  EXPECT_EQ(nfs.run(move).status, NFS4ERR_XDEV);
  // Nor to the pseudo file system or from it.
  const Operations4 root = Operations4().add<OP_PUTROOTFH>().add<OP_SAVEFH>();
  EXPECT_NE(nfs.run(Operations4(root).add(other()).add<OP_RENAME>({"dev", "moved"})).status,
            NFS4_OK);
  EXPECT_FALSE(std::filesystem::exists(other_ + "/linked"));
  EXPECT_FALSE(std::filesystem::exists(other_ + "/moved"));
  EXPECT_TRUE(std::filesystem::exists(nfs.path("file")));
}

TEST_F(TwoFileSystems4, EachSaysWhetherItHasExtendedAttributes) {
  for (const auto& each : {std::pair{way_to("file"), nfs.path("file")},
                           {other().add<OP_LOOKUP>({"file"}), other_ + "/file"}}) {
    // clang 14 lets no lambda have structured bindings.
    const Operations4& way = each.first;
    const std::string& path = each.second;
    const bool has = ::setxattr(path.c_str(), "user.some", "x", 1, 0) == 0;
    const auto found = attributes(way, xdr::bitmap4::of({FATTR4_XATTR_SUPPORT}));
    ASSERT_EQ(found.status, NFS4_OK);
    EXPECT_EQ(found.values.xattr_support, has) << path;
    // And so all four operations are there, or none of them is.
    const auto run = [&](const Operations4& one) {
      return nfs.run(Operations4(way).add(one)).status;
    };
    const auto either = xdr::setxattr_option4::SETXATTR4_EITHER;
    const nfsstat4 answer = has ? NFS4_OK : NFS4ERR_NOTSUPP;
    EXPECT_EQ(run(Operations4().add<OP_SETXATTR>({either, "other", as_bytes("y")})), answer);
    EXPECT_EQ(run(Operations4().add<OP_GETXATTR>({"some"})), answer);
    EXPECT_EQ(run(Operations4().add<OP_LISTXATTRS>({0, 1000})), answer);
    EXPECT_EQ(run(Operations4().add<OP_REMOVEXATTR>({"some"})), answer);
  }
}

TEST_F(TwoFileSystems4, NamesMayBeOtherThanUtf8AndTheirCapabilitySaysSo) {
  constexpr std::uint32_t kContainsNonUtf8 = 1, kAllowsOnlyUtf8 = 2;
  const std::string name = "\xff\xfe";
  for (const Operations4& way : {way_to(""), other()}) {
    const auto found = attributes(way, xdr::bitmap4::of({FATTR4_FS_CHARSET_CAP}));
    ASSERT_EQ(found.status, NFS4_OK);
    EXPECT_NE(found.values.fs_charset_cap & kContainsNonUtf8, 0u);
    EXPECT_EQ(found.values.fs_charset_cap & kAllowsOnlyUtf8, 0u);
  }
  xdr::CREATE4args args;
  args.objtype.type = xdr::nfs_ftype4::NF4DIR;
  args.objname = name;
  EXPECT_EQ(nfs.run(way_to("").add<OP_CREATE>(args)).status, NFS4_OK);
  EXPECT_TRUE(std::filesystem::is_directory(nfs.path(name)));
}

// --- ACLs
// ---------------------------------------------------------------------------------------

TEST(SpecialIdentifiers4, AreNoGroupsWhateverTheFlagSays) {
  constexpr std::uint32_t kAllow = xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE;
  constexpr std::uint32_t kWrite = xdr::ACE4_WRITE_DATA | xdr::ACE4_APPEND_DATA;
  Nfs4Harness nfs;
  put_file(nfs.path("file"), "");
  const FileHandle file = nfs.lookup(nfs.root(), "file");
  for (const std::uint32_t flag : {0u, std::uint32_t{xdr::ACE4_IDENTIFIER_GROUP}}) {
    ASSERT_EQ(::chmod(nfs.path("file").c_str(), 0), 0);
    const xdr::nfsace4 aces[] = {{kAllow, flag, xdr::ACE4_READ_DATA | kWrite, "OWNER@"},
                                 {kAllow, flag, xdr::ACE4_READ_DATA, "GROUP@"},
                                 {kAllow, flag, xdr::ACE4_EXECUTE, "EVERYONE@"}};
    std::vector<std::byte> scratch(512), bytes(512);
    xdr::Encoder encoder(scratch), all(bytes);
    xdr::FileAttributes4 values;
    values.acl.aces = xdr::encode_array<xdr::nfsace4>(encoder, aces);
    values.attrmask.set(FATTR4_ACL);
    xdr::detail::EncodeArchive archive(all);
    xdr::visit_attribute_values(archive, values);
    xdr::SETATTR4args args;
    args.obj_attributes = {values.attrmask, all.bytes()};
    EXPECT_EQ(nfs.on<OP_SETATTR>(file, args).status, NFS4_OK);
    EXPECT_EQ(stat_of(nfs.path("file")).st_mode & 0777, 0751u) << flag;
    EXPECT_LT(::getxattr(nfs.path("file").c_str(), "system.posix_acl_access", nullptr, 0), 0)
        << "an entry of its own for a group";
  }
}

// RFC 8881 18.30.3, RFC 7530 16.32.4: also of a SETATTR that fails.
TEST(SetattrRules, WhatWasSetBeforeAFailureIsTold) {
  NFSRDMA_NEEDS_ROOT();
  Nfs4Harness nfs;
  put_file(nfs.path("file"), "content", 0600);
  ASSERT_EQ(::chown(nfs.path("file").c_str(), 1000, 1000), 0);
  const FileHandle file = nfs.lookup(nfs.root(), "file");
  nfs.set_caller(user(1000, 1000));
  std::array<std::byte, 64> bytes;
  xdr::Encoder all(bytes);
  xdr::FileAttributes4 values;
  values.size = 3;
  values.owner = "1001";
  values.attrmask = xdr::bitmap4::of({FATTR4_SIZE, FATTR4_OWNER});
  xdr::detail::EncodeArchive archive(all);
  xdr::visit_attribute_values(archive, values);
  xdr::SETATTR4args args;
  args.obj_attributes = {values.attrmask, all.bytes()};
  const Reply4 reply = nfs.on<OP_SETATTR>(file, args);
  EXPECT_EQ(reply.status, NFS4ERR_PERM);
  EXPECT_EQ(reply.get<OP_SETATTR>().attrsset, xdr::bitmap4::of({FATTR4_SIZE}));
  EXPECT_EQ(stat_of(nfs.path("file")).st_size, 3);
}

}  // namespace
}  // namespace nfsrdma::test
