// SPDX-License-Identifier: Apache-2.0
// What an administrator releases (server/release.h), from the clients' side: what they had is lost
// at once and others may have it, they are told so (RFC 8881 8.5, RFC 7530 9.8), and the server
// keeps nothing of a file system open that is not exported any more.
#include "server/release.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/callback_client.h"
#include "tests/support/mounted_tmpfs.h"

namespace nfsrdma::test {
namespace {

using xdr::nfs_lock_type4;
using xdr::open_delegation_type4;

constexpr std::uint32_t kAdminFlag = xdr::SEQ4_STATUS_ADMIN_STATE_REVOKED;

Released release_path(Nfs4Harness& nfs, const std::string& path) {
  std::string why;
  const auto target = find_release_target(path, &why);
  EXPECT_TRUE(target) << why;
  return target ? release(nfs.server(), *target, nfs.state_dir()) : Released();
}

xdr::LOCK4args lock_args(const xdr::stateid4& open, std::uint64_t client,
                         std::uint32_t open_seqid = 0) {
  xdr::LOCK4args args;
  args.locktype = nfs_lock_type4::WRITE_LT;
  args.length = 10;
  args.locker.new_lock_owner = true;
  args.locker.open_owner = {open_seqid, open, 0, {client, as_bytes(std::string_view("locker"))}};
  return args;
}

class ReleasedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    mine_ = nfs_.connect("mine");
    theirs_ = nfs_.connect("theirs");
    nfs_.session = mine_;
    file_ = nfs_.open(nfs_.root(), "file");
    ASSERT_EQ(file_.status, NFS4_OK);
    const Reply4 locked = nfs_.on<OP_LOCK>(file_.handle, lock_args(file_.stateid, mine_.client));
    ASSERT_EQ(locked.status, NFS4_OK);
    lock_ = locked.get<OP_LOCK>().resok4.lock_stateid;
  }
  nfsstat4 lock_by_other() {
    std::swap(nfs_.session, theirs_);
    const Open4 file = nfs_.open(nfs_.root(), "file");
    EXPECT_EQ(file.status, NFS4_OK);
    const nfsstat4 status =
        nfs_.on<OP_LOCK>(file.handle, lock_args(file.stateid, nfs_.session.client)).status;
    std::swap(nfs_.session, theirs_);
    return status;
  }
  nfsstat4 unlock() {
    return nfs_.on<OP_LOCKU>(file_.handle, {nfs_lock_type4::WRITE_LT, 0, lock_, 0, 10}).status;
  }
  nfsstat4 downgrade() {
    return nfs_
        .on<OP_OPEN_DOWNGRADE>(file_.handle, {file_.stateid, 0, xdr::OPEN4_SHARE_ACCESS_READ, 0})
        .status;
  }
  nfsstat4 lock_more(bool by_lock) {
    xdr::LOCK4args args = lock_args(file_.stateid, mine_.client);
    args.offset = 100;
    args.locker.new_lock_owner = !by_lock;
    if (by_lock) args.locker.lock_owner = {lock_, 0};
    return nfs_.on<OP_LOCK>(file_.handle, args).status;
  }
  nfsstat4 cut(const xdr::stateid4& stateid) {
    std::array<std::byte, 8> size{};
    xdr::SETATTR4args args;
    args.stateid = stateid;
    args.obj_attributes.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
    args.obj_attributes.attr_vals = size;
    return nfs_.on<OP_SETATTR>(file_.handle, args).status;
  }
  nfsstat4 write(const xdr::stateid4& stateid) {
    return nfs_
        .on<OP_WRITE>(file_.handle,
                      {stateid, 0, xdr::stable_how4::UNSTABLE4, {as_bytes(std::string_view("x"))}})
        .status;
  }
  nfsstat4 free(const xdr::stateid4& stateid) {
    return nfs_.run(Operations4().add<OP_FREE_STATEID>({stateid})).status;
  }
  std::uint32_t test(const xdr::stateid4& stateid) {
    std::vector<std::byte> room(64);
    xdr::Encoder scratch(room);
    const Reply4 tested = nfs_.run(Operations4().add<OP_TEST_STATEID>(
        {xdr::encode_array(scratch, std::span<const xdr::stateid4>(&stateid, 1))}));
    EXPECT_EQ(tested.status, NFS4_OK);
    return load_be32(tested.get<OP_TEST_STATEID>().resok4.tsr_status_codes.encoded.data());
  }
  std::uint32_t flags(Session4& session) {
    return nfs_.run(session, Operations4()).get<OP_SEQUENCE>().resok4.sr_status_flags;
  }
  bool is_recorded() {
    std::lock_guard lock(nfs_.state().mutex);
    return nfs_.state().clients.find(mine_.client)->recorded;
  }

  Nfs4Harness nfs_;
  Session4 mine_, theirs_;
  Open4 file_;
  xdr::stateid4 lock_{};
};

TEST_F(ReleasedFiles, AreFreeForOthersAndTheirStateidsSayWhy) {
  ASSERT_EQ(lock_by_other(), NFS4ERR_DENIED);
  const Released released = release_path(nfs_, nfs_.path("file"));
  EXPECT_EQ(released.files, 1u);
  ASSERT_EQ(released.clients.size(), 2u);
  for (const Released::Client& client : released.clients) {
    EXPECT_EQ(client.protocol, "4.2");
    EXPECT_EQ(client.opens, 1u);
    EXPECT_EQ(client.locks, client.id == fmt::format("{:016x}", mine_.client) ? 1u : 0u);
  }
  EXPECT_EQ(lock_by_other(), NFS4_OK);
  EXPECT_EQ(nfs_.read(file_, 0, 1), "error 10047");
  for (const xdr::stateid4& stateid : {file_.stateid, lock_}) {
    EXPECT_EQ(write(stateid), NFS4ERR_ADMIN_REVOKED);
    EXPECT_EQ(cut(stateid), NFS4ERR_ADMIN_REVOKED);
    EXPECT_EQ(test(stateid), 10047u);
  }
  EXPECT_EQ(unlock(), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(lock_more(true), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(lock_more(false), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(downgrade(), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(nfs_.close(file_), NFS4ERR_ADMIN_REVOKED);
}

TEST_F(ReleasedFiles, AreToldOfUntilTheClientKnows) {
  EXPECT_EQ(flags(nfs_.session), 0u);
  release_path(nfs_, nfs_.path("file"));
  EXPECT_EQ(flags(nfs_.session), kAdminFlag);
  EXPECT_EQ(flags(theirs_), 0u);
  EXPECT_EQ(free(lock_), NFS4_OK);
  EXPECT_EQ(free(lock_), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(flags(nfs_.session), kAdminFlag) << "the open";
  EXPECT_EQ(free(file_.stateid), NFS4_OK);
  EXPECT_EQ(flags(nfs_.session), 0u);
  EXPECT_EQ(test(file_.stateid), static_cast<std::uint32_t>(NFS4ERR_BAD_STATEID));
}

TEST_F(ReleasedFiles, AreNotToldOfForEver) {
  release_path(nfs_, nfs_.path("file"));
  for (int i = 0; i < 12; ++i) {
    nfs_.clock.move(std::chrono::seconds(55));
    flags(nfs_.session);  // and its lease is renewed
  }
  EXPECT_EQ(flags(nfs_.session), 0u);
  EXPECT_EQ(test(file_.stateid), 10047u) << "who asks hears it nevertheless";
}

TEST_F(ReleasedFiles, MayNotBeReclaimedByWhoDoesNotKnow) {
  EXPECT_TRUE(is_recorded());
  release_path(nfs_, nfs_.path("file"));
  EXPECT_FALSE(is_recorded());
  EXPECT_FALSE(nfs_.state().any_ended()) << "it is written down already";
  EXPECT_EQ(free(file_.stateid), NFS4_OK);
  EXPECT_FALSE(is_recorded()) << "of the lock it does not know";
  EXPECT_EQ(free(lock_), NFS4_OK);
  EXPECT_TRUE(is_recorded());
  // What was revoked a second time counts again.
  const Open4 again = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(again.status, NFS4_OK);
  release_path(nfs_, nfs_.path("file"));
  EXPECT_FALSE(is_recorded());
}

TEST_F(ReleasedFiles, LeaveOtherFilesAlone) {
  const Open4 other = nfs_.open(nfs_.root(), "other");
  ASSERT_EQ(other.status, NFS4_OK);
  const Released released = release_path(nfs_, nfs_.path("other"));
  EXPECT_EQ(released.files, 1u);
  EXPECT_EQ(write(lock_), NFS4_OK);
  EXPECT_EQ(nfs_.close(other), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(release_path(nfs_, nfs_.path("other")).files, 0u) << "nothing is left of it";
}

TEST_F(ReleasedFiles, AreFreeForProcessesOfThisMachine) {
  const UniqueFd local(::open(nfs_.path("file").c_str(), O_RDWR | O_CLOEXEC));
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  EXPECT_NE(::fcntl(local.get(), F_OFD_SETLK, &wanted), 0);
  release_path(nfs_, nfs_.path("file"));
  EXPECT_EQ(::fcntl(local.get(), F_OFD_SETLK, &wanted), 0) << std::strerror(errno);
}

TEST_F(ReleasedFiles, EndWithTheirClient) {
  release_path(nfs_, nfs_.path("file"));
  std::lock_guard lock(nfs_.state().mutex);
  EXPECT_EQ(nfs_.state().opens.revoked().of_client(mine_.client), 2u);
  EXPECT_TRUE(nfs_.state().evict(mine_.client));
  EXPECT_EQ(nfs_.state().opens.revoked().of_client(mine_.client), 0u);
}

TEST(ReleaseTargets, AreFilesAndMountedFileSystems) {
  const TemporaryDirectory home;
  put_file(home.path() + "/file", "x");
  std::filesystem::create_directory(home.path() + "/directory");
  std::filesystem::create_symlink("file", home.path() + "/link");
  std::string why;
  const auto file = find_release_target(home.path() + "/link", &why);
  ASSERT_TRUE(file) << why;
  EXPECT_FALSE(file->whole);
  EXPECT_TRUE(file->path.ends_with("/file"));
  ASSERT_TRUE(file->files.inode);
  const auto root = find_release_target("/", &why);
  ASSERT_TRUE(root) << why;
  EXPECT_TRUE(root->whole);
  EXPECT_FALSE(root->files.inode);
  EXPECT_FALSE(find_release_target(home.path() + "/directory", &why));
  EXPECT_NE(why.find("mounted at " + file->mount_point + ":"), std::string::npos) << why;
  EXPECT_FALSE(find_release_target(home.path() + "/nothing", &why));
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
  EXPECT_FALSE(find_release_target("directory", &why));
  EXPECT_FALSE(find_release_target("", &why));
}

/// Minor version 0: no sessions, and no FREE_STATEID.
class ReleasedFilesOfOldClients : public ::testing::Test {
 protected:
  void SetUp() override {
    xdr::SETCLIENTID4args who;
    who.client.id = as_bytes(std::string_view("old client"));
    const auto known = run(Operations4().add<OP_SETCLIENTID>(who)).get<OP_SETCLIENTID>().resok4;
    client_ = known.clientid;
    ASSERT_EQ(
        run(Operations4().add<OP_SETCLIENTID_CONFIRM>({client_, known.setclientid_confirm})).status,
        NFS4_OK);
    open("file", &file_, &open_);
    const Reply4 locked =
        run(Operations4().putfh(file_).add<OP_LOCK>(lock_args(open_, client_, next_seqid_++)));
    ASSERT_EQ(locked.status, NFS4_OK);
    lock_ = locked.get<OP_LOCK>().resok4.lock_stateid;
  }
  Reply4 run(const Operations4& operations) { return nfs_.run_bare(operations, 0); }
  void open(std::string_view name, FileHandle* file, xdr::stateid4* stateid) {
    xdr::OPEN4args args;
    args.seqid = next_seqid_++;
    args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
    args.owner = {client_, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = name;
    const Reply4 opened = run(Operations4().putfh(nfs_.root()).add<OP_OPEN>(args).add<OP_GETFH>());
    ASSERT_EQ(opened.status, NFS4_OK);
    *file = to_handle(opened.get<OP_GETFH>().resok4.object.data);
    const auto result = opened.get<OP_OPEN>().resok4;
    *stateid = result.stateid;
    if ((result.rflags & xdr::OPEN4_RESULT_CONFIRM) == 0) return;
    const Reply4 confirmed =
        run(Operations4().putfh(*file).add<OP_OPEN_CONFIRM>({*stateid, next_seqid_++}));
    ASSERT_EQ(confirmed.status, NFS4_OK);
    *stateid = confirmed.get<OP_OPEN_CONFIRM>().resok4.open_stateid;
  }
  nfsstat4 read(const xdr::stateid4& stateid) {
    return run(Operations4().putfh(file_).add<OP_READ>({stateid, 0, 10})).status;
  }
  nfsstat4 close(std::uint32_t seqid) {
    return run(Operations4().putfh(file_).add<OP_CLOSE>({seqid, open_})).status;
  }
  bool is_recorded() {
    std::lock_guard lock(nfs_.state().mutex);
    return nfs_.state().clients.find(client_)->recorded;
  }

  Nfs4Harness nfs_;
  std::uint64_t client_ = 0;
  std::uint32_t next_seqid_ = 1;  // of the open-owner
  FileHandle file_;
  xdr::stateid4 open_{}, lock_{};
};

TEST_F(ReleasedFilesOfOldClients, SayWhyAndCountInTheirOwnersSequences) {
  EXPECT_EQ(read(lock_), NFS4_OK);
  release_path(nfs_, nfs_.path("file"));
  EXPECT_EQ(read(lock_), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(read(open_), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(read(open_), NFS4ERR_ADMIN_REVOKED) << "of several requests under way all hear it";
  const nfsstat4 unlocked =
      run(Operations4().putfh(file_).add<OP_LOCKU>({nfs_lock_type4::WRITE_LT, 1, lock_, 0, 10}))
          .status;
  EXPECT_EQ(unlocked, NFS4ERR_ADMIN_REVOKED);
  // The error counts in the owner's sequence (RFC 7530 9.1.7): the next one is the next.
  EXPECT_EQ(close(next_seqid_), NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(close(next_seqid_), NFS4ERR_ADMIN_REVOKED) << "a retry";
  EXPECT_EQ(close(next_seqid_ + 2), NFS4ERR_BAD_SEQID);
  ++next_seqid_;
  open("file", &file_, &open_);
  EXPECT_EQ(read(open_), NFS4_OK);
}

TEST_F(ReleasedFilesOfOldClients, MayNotBeReclaimedByWhoWasNotTold) {
  EXPECT_TRUE(is_recorded());
  release_path(nfs_, nfs_.path("file"));
  FileHandle other;
  xdr::stateid4 opened;
  open("other", &other, &opened);
  EXPECT_FALSE(is_recorded());
  EXPECT_EQ(read(lock_), NFS4ERR_ADMIN_REVOKED);
  open("third", &other, &opened);
  EXPECT_TRUE(is_recorded());
}

class ReleasedDelegations : public ::testing::Test {
 protected:
  void SetUp() override {
    nfs_.connection().max_backward = 1000;
    holder_ = nfs_.connect("holder");
    put_file(nfs_.path("file"), "content");
    file_ = nfs_.lookup(nfs_.root(), "file");
  }
  void take(std::uint32_t access, open_delegation_type4 type) {
    xdr::OPEN4args args;
    args.share_access = access;
    args.owner = {holder_.client, as_bytes(std::string_view("owner"))};
    args.claim.file = "file";
    const Reply4 reply = nfs_.run(holder_, Operations4().putfh(nfs_.root()).add<OP_OPEN>(args));
    ASSERT_EQ(reply.status, NFS4_OK);
    const auto& result = reply.get<OP_OPEN>().resok4;
    ASSERT_EQ(result.delegation.delegation_type, type);
    delegation_ = type == open_delegation_type4::OPEN_DELEGATE_READ
                      ? result.delegation.read.stateid
                      : result.delegation.write.stateid;
    ASSERT_EQ(
        nfs_.run(holder_, Operations4().putfh(file_).add<OP_CLOSE>({0, result.stateid})).status,
        NFS4_OK);
  }
  void release_and_look() {
    const Released released = release_path(nfs_, nfs_.path("file"));
    ASSERT_EQ(released.clients.size(), 1u);
    EXPECT_EQ(released.clients[0].delegations, 1u);
    EXPECT_EQ(released.clients[0].opens, 0u);
    // The kernel's lease is gone with it: nobody waits.
    EXPECT_TRUE(UniqueFd(::open(nfs_.path("file").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)));
    EXPECT_EQ(read(), NFS4ERR_ADMIN_REVOKED);
    EXPECT_EQ(
        nfs_.run(holder_, Operations4().putfh(file_).add<OP_DELEGRETURN>({delegation_})).status,
        NFS4ERR_ADMIN_REVOKED);
    // Linux's client looks at its delegations when the second one is set.
    EXPECT_EQ(flags(), kAdminFlag | xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
    EXPECT_EQ(nfs_.run(holder_, Operations4().add<OP_FREE_STATEID>({delegation_})).status, NFS4_OK);
    EXPECT_EQ(flags(), 0u);
    EXPECT_EQ(read(), NFS4ERR_BAD_STATEID);
  }
  nfsstat4 read() {
    return nfs_.run(holder_, Operations4().putfh(file_).add<OP_READ>({delegation_, 0, 10})).status;
  }
  std::uint32_t flags() {
    return nfs_.run(holder_, Operations4()).get<OP_SEQUENCE>().resok4.sr_status_flags;
  }

  Nfs4Harness nfs_;
  CallbackClient client_side_{nfs_};
  Session4 holder_;
  FileHandle file_;
  xdr::stateid4 delegation_{};
};

TEST_F(ReleasedDelegations, OfReadersEndAtOnce) {
  take(xdr::OPEN4_SHARE_ACCESS_READ, open_delegation_type4::OPEN_DELEGATE_READ);
  release_and_look();
}

TEST_F(ReleasedDelegations, OfWritersEndAtOnce) {
  take(xdr::OPEN4_SHARE_ACCESS_BOTH, open_delegation_type4::OPEN_DELEGATE_WRITE);
  release_and_look();
}

/// An export that is a file system of its own.
class ReleasedFileSystems : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(root_);
    NFSRDMA_MOUNT(disk_, root_, "size=8m,mode=777");
    HarnessOptions options;
    options.directory = root_;
    nfs_ = std::make_unique<Nfs4Harness>(options);
    nfs_->connection().max_backward = 1000;
    nfs_->session = nfs_->connect("client");
    client_side_ = std::make_unique<CallbackClient>(*nfs_);
  }
  void unexport() {
    ConfigProblems problems;
    nfs_->server().exports.reload({}, &problems);
    ASSERT_TRUE(problems.empty());
    // As shards do when they hear of it.
    nfs_->on_its_thread([this] { nfs_->server().exports.current(); });
  }
  bool unmount() { return disk_.unmount(); }

  TemporaryDirectory top_;
  std::string root_ = top_.path() + "/fs";
  MountedTmpfs disk_;
  std::unique_ptr<Nfs4Harness> nfs_;
  std::unique_ptr<CallbackClient> client_side_;
};

TEST_F(ReleasedFileSystems, CanBeUnmountedThoughClientsHadAllOfItInUse) {
  const Open4 file = nfs_->open(nfs_->root(), "file");
  ASSERT_EQ(nfs_->write(file, 0, "not on the disk"), NFS4_OK);
  ASSERT_EQ(nfs_->on<OP_LOCK>(file.handle, lock_args(file.stateid, nfs_->session.client)).status,
            NFS4_OK);
  put_file(nfs_->path("delegated"), "x");
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH;
  args.owner = {nfs_->session.client, as_bytes(std::string_view("owner"))};
  args.claim.file = "delegated";
  const Reply4 opened = nfs_->run(Operations4().putfh(nfs_->root()).add<OP_OPEN>(args));
  ASSERT_EQ(opened.status, NFS4_OK);
  EXPECT_EQ(opened.get<OP_OPEN>().resok4.delegation.delegation_type,
            open_delegation_type4::OPEN_DELEGATE_WRITE);
  ASSERT_EQ(nfs_->on<OP_READDIR>(nfs_->root(), {0, {}, 4096, 4096, {}}).status, NFS4_OK);

  const Released early = release_path(*nfs_, root_);
  EXPECT_EQ(early.files, 2u);
  EXPECT_EQ(early.exports, std::vector<std::string>{root_});
  EXPECT_FALSE(unmount()) << "it is exported";

  ASSERT_EQ(nfs_->open(nfs_->root(), "file").status, NFS4_OK) << "and clients come back";
  unexport();
  EXPECT_FALSE(unmount()) << "a client has a file open";
  const Released released = release_path(*nfs_, root_);
  EXPECT_EQ(released.files, 1u);
  EXPECT_TRUE(released.exports.empty());
  EXPECT_TRUE(released.reached_by.empty());
  EXPECT_EQ(released.in_use, 0u);
  EXPECT_FALSE(released.has_state_directory);
  EXPECT_TRUE(unmount()) << std::strerror(errno);
  const std::uint32_t flags = nfs_->run(Operations4()).get<OP_SEQUENCE>().resok4.sr_status_flags;
  EXPECT_EQ(flags & kAdminFlag, kAdminFlag);
}

TEST_F(ReleasedFileSystems, SayWhatIsMountedInThem) {
  const std::string below = root_ + "/below";
  std::filesystem::create_directory(below);
  MountedTmpfs inner;
  ASSERT_EQ(inner.mount(below, "size=1m"), 0);
  EXPECT_EQ(release_path(*nfs_, root_).mounted_below, std::vector<std::string>{below});
  EXPECT_TRUE(release_path(*nfs_, below).exports.empty());
  EXPECT_TRUE(inner.unmount()) << std::strerror(errno);
}

TEST_F(ReleasedFileSystems, BelowAnExportWithCrossmntAreLetGoOf) {
  const std::string below = root_ + "/below";
  std::filesystem::create_directory(below);
  MountedTmpfs inner;
  ASSERT_EQ(inner.mount(below, "size=1m,mode=777"), 0);
  put_file(below + "/file", "x");
  ExportOptions options = HarnessOptions::writable();
  options.crossmnt = true;
  nfs_->export_with(options);
  const FileHandle directory = nfs_->lookup(nfs_->root(), "below");
  ASSERT_EQ(nfs_->open(directory, "file").status, NFS4_OK);
  EXPECT_FALSE(inner.unmount()) << "it is in use";
  const Released released = release_path(*nfs_, below);
  EXPECT_EQ(released.files, 1u);
  EXPECT_EQ(released.reached_by, std::vector<std::string>{root_});
  EXPECT_TRUE(inner.unmount()) << std::strerror(errno);
}

}  // namespace
}  // namespace nfsrdma::test
