// SPDX-License-Identifier: Apache-2.0
// GETATTR, SETATTR, ACCESS, FSINFO, FSSTAT, PATHCONF.
#include <fcntl.h>
#include <sys/statvfs.h>
#include <atomic>
#include <optional>

#include <csignal>

#include "server/group_source.h"
#include "tests/support/held_calls.h"
#include "tests/support/mounted_tmpfs.h"
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Attributes : public ::testing::Test {
 protected:
  xdr::sattr3 times(std::uint32_t atime, std::uint32_t mtime) {
    xdr::sattr3 values;
    values.atime = {xdr::time_how::SET_TO_CLIENT_TIME, {atime, 5}};
    values.mtime = {xdr::time_how::SET_TO_CLIENT_TIME, {mtime, 7}};
    return values;
  }
  /// A change that is to be made only if nothing has changed since.
  xdr::SETATTR3args guarded(const FileHandle& file) {
    xdr::SETATTR3args args;
    args.object = nfs.fh(file);
    args.new_attributes.mode = {true, 0600};
    args.guard = {true, nfs.getattr(file).resok.obj_attributes.ctime};
    return args;
  }
  Nfs3Harness nfs;
};

TEST_F(Attributes, GetattrShowsWhatStatShows) {
  put_file(nfs.path("f"), std::string(5000, 'x'), 0640);
  const xdr::fattr3 got = nfs.getattr(nfs.lookup(nfs.root(), "f")).resok.obj_attributes;
  const struct stat st = stat_of(nfs.path("f"));
  EXPECT_EQ(got.type, xdr::ftype3::NF3REG);
  EXPECT_EQ(got.mode, 0640u);
  EXPECT_EQ(got.nlink, 1u);
  EXPECT_EQ(got.uid, st.st_uid);
  EXPECT_EQ(got.gid, st.st_gid);
  EXPECT_EQ(got.size, 5000u);
  EXPECT_EQ(got.used, static_cast<std::uint64_t>(st.st_blocks) * 512);
  EXPECT_EQ(got.fileid, st.st_ino);
  EXPECT_EQ(got.mtime.seconds, static_cast<std::uint32_t>(st.st_mtim.tv_sec));
  EXPECT_EQ(got.ctime.nseconds, static_cast<std::uint32_t>(st.st_ctim.tv_nsec));
}

TEST_F(Attributes, FsidIsTheSameForAllAndAfterARestart) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  const std::uint64_t fsid = nfs.getattr(nfs.root()).resok.obj_attributes.fsid;
  EXPECT_EQ(nfs.getattr(file).resok.obj_attributes.fsid, fsid);
  nfs.restart();
  EXPECT_EQ(nfs.getattr(file).resok.obj_attributes.fsid, fsid);
}

TEST_F(Attributes, FsidOptionIsShown) {
  ExportOptions options = HarnessOptions::writable();
  options.fsid = "77";
  nfs.export_with(options);
  FileHandle root;
  nfs.on_serving_thread([&] {
    Resolved top;
    ASSERT_EQ(nfs.server().resolver.open_root(*nfs.server().exports.current().exports[0], &top), 0);
    root = top.file->handle();
  });
  EXPECT_EQ(nfs.getattr(root).resok.obj_attributes.fsid, 77u);
}

TEST_F(Attributes, SizesAre64Bit) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  xdr::sattr3 values;
  values.size = {true, (std::uint64_t{1} << 40) + 1};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(nfs.getattr(file).resok.obj_attributes.size, (std::uint64_t{1} << 40) + 1);
  ASSERT_EQ(nfs.write(file, (std::uint64_t{1} << 40) - 1, "ab"), NFS3_OK);
  EXPECT_EQ(nfs.read(file, (std::uint64_t{1} << 40) - 1, 10), std::string("ab"));
}

TEST_F(Attributes, SetattrCutsAndExtends) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "abcdef"), NFS3_OK);
  xdr::sattr3 values;
  values.size = {true, 2};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  values.size = {true, 4};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(nfs.read(file, 0, 10), std::string("ab\0\0", 4));
}

TEST_F(Attributes, SetattrSetsClientTimes) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.setattr(file, times(1000, 2000)), NFS3_OK);
  const struct stat st = stat_of(nfs.path("f"));
  EXPECT_EQ(st.st_atim.tv_sec, 1000);
  EXPECT_EQ(st.st_mtim.tv_sec, 2000);
  EXPECT_EQ(st.st_mtim.tv_nsec, 7);
}

TEST_F(Attributes, SetattrSetsServerTime) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.setattr(file, times(1000, 2000)), NFS3_OK);
  xdr::sattr3 values;
  values.mtime.set_it = xdr::time_how::SET_TO_SERVER_TIME;
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_GT(stat_of(nfs.path("f")).st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(stat_of(nfs.path("f")).st_atim.tv_sec, 1000);
}

TEST_F(Attributes, SetattrOnASymbolicLinkTouchesOnlyIt) {
  put_file(nfs.path("f"), "x");
  ASSERT_EQ(::symlink("f", nfs.path("l").c_str()), 0);
  ASSERT_EQ(nfs.setattr(nfs.lookup(nfs.root(), "l"), times(1000, 2000)), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("l")).st_mtim.tv_sec, 2000);
  EXPECT_GT(stat_of(nfs.path("f")).st_mtim.tv_sec, 1'000'000'000);
}

TEST_F(Attributes, ImpossibleTimesAreInvalid) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  xdr::sattr3 values;
  values.mtime = {xdr::time_how::SET_TO_CLIENT_TIME, {1, 1'000'000'000}};
  EXPECT_EQ(nfs.setattr(file, values), NFS3ERR_INVAL);
}

TEST_F(Attributes, GuardThatHoldsLetsSetattrThrough) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  const xdr::SETATTR3args args = guarded(file);
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_SETATTR>(args).status(), NFS3_OK);
}

/// Nor waits for it, which a worker could do for as long as that call's file system hangs.
TEST_F(Attributes, NobodyLooksWhileAGuardedCallIsBetweenLookingAndChanging) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  const xdr::SETATTR3args args = guarded(file);
  std::atomic<Outcome> second{Outcome::kDrop}, on_worker{Outcome::kDrop};
  const auto run = [&](bool may_block) {
    std::vector<std::byte> room(1024);
    xdr::Encoder encoder(room);
    xdr::encode(encoder, args);
    StubCall call(nfs.connection(), flatten(encoder));
    Request request;
    request.call = &call;
    request.credentials = user(0, 0);
    request.may_block = may_block;
    xdr::Encoder result(call.reply_room());
    xdr::Decoder decoder = call.decoder();
    const auto& row =
        nfs3::program_table().procedures[static_cast<std::size_t>(nfsproc3::NFSPROC3_SETATTR)];
    const Outcome outcome = row.run(nfs.server(), request, decoder, result);
    if (request.release != nullptr) request.release(request);
    return outcome;
  };
  const auto run_second = [&] {
    prepare_serving_thread();
    second = run(false);
    on_worker = run(true);
  };
  std::optional<HeldCalls> held;
  nfs.on_serving_thread([&] { held.emplace(SYS_fchmod, run_second); });
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_SETATTR>(args).status(), NFS3_OK);
  EXPECT_EQ(second, Outcome::kWouldBlock) << "both saw the same time";
  EXPECT_EQ(on_worker, Outcome::kWouldBlock);
}

TEST_F(Attributes, GuardThatDoesNotHoldIsNotSync) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  xdr::SETATTR3args args = guarded(file);
  args.guard.obj_ctime = {1, 1};
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_SETATTR>(args).status(), NFS3ERR_NOT_SYNC);
  // A nanosecond is enough.
  args.guard = {true, nfs.getattr(file).resok.obj_attributes.ctime};
  args.guard.obj_ctime.nseconds ^= 1;
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_SETATTR>(args).status(), NFS3ERR_NOT_SYNC);
  EXPECT_EQ(nfs.getattr(file).resok.obj_attributes.mode, 0644u);
}

TEST_F(Attributes, OnlyTheOwnerChangesTheMode) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f", 0666);
  xdr::sattr3 values;
  values.mode = {true, 0777};
  nfs.set_caller(user(2000, 2000));
  EXPECT_EQ(nfs.setattr(file, values), NFS3ERR_PERM);
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(nfs.setattr(file, values), NFS3_OK);
}

/// Linux's client says so of mtime alone when a file is opened with O_TRUNC.
TEST_F(Attributes, WhoMayWriteSetsOneTimeToTheServers) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f", 0666);
  ASSERT_EQ(nfs.setattr(file, times(1000, 2000)), NFS3_OK);
  xdr::sattr3 values;
  values.mtime.set_it = xdr::time_how::SET_TO_SERVER_TIME;
  nfs.set_caller(user(2000, 2000));
  EXPECT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_GT(stat_of(nfs.path("f")).st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(stat_of(nfs.path("f")).st_atim.tv_sec, 1000);
  values.size = {true, 0};
  EXPECT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("f")).st_atim.tv_sec, 1000);
  EXPECT_EQ(nfs.setattr(file, times(1000, 2000)), NFS3ERR_PERM) << "a time of the client's";
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 0644), 0);
  xdr::sattr3 time;
  time.mtime.set_it = xdr::time_how::SET_TO_SERVER_TIME;
  EXPECT_EQ(nfs.setattr(file, time), NFS3ERR_ACCES);
}

TEST_F(Attributes, OnlyRootGivesFilesAway) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f");
  xdr::sattr3 values;
  values.uid = {true, 2000};
  EXPECT_EQ(nfs.setattr(file, values), NFS3ERR_PERM);
  nfs.set_caller(user(0, 0));
  EXPECT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("f")).st_uid, 2000u);
}

TEST_F(Attributes, ChangeOfOwnerTakesSetIdBits) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle file = nfs.create(nfs.root(), "f", 06755);
  ASSERT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 06755u);
  xdr::sattr3 values;
  values.uid = {true, 2000};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 0755u);
  // Also those of a mode that comes with the change.
  values.uid = {true, 3000};
  values.mode = {true, 06755};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 0755u);
}

TEST_F(Attributes, ChangeOfOwnerByRootLeavesASetgidBitThatMakesNobodyAnything) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(::chown(nfs.path("f").c_str(), 1000, 4242), 0);
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 06744), 0);
  xdr::sattr3 values;
  values.uid = {true, 2000};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 02744u);
}

TEST_F(Attributes, AccessFollowsTheModeForStrangers) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f", 0604);
  nfs.set_caller(user(2000, 2000));
  EXPECT_EQ(nfs.access(file, 0x3f), xdr::ACCESS3_READ);
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(nfs.access(file, 0x3f), xdr::ACCESS3_READ | xdr::ACCESS3_MODIFY | xdr::ACCESS3_EXTEND);
}

/// Of each answer in turn.
class ChangingGroups final : public GroupSource {
 public:
  std::uint64_t answer_at_hand(std::uint32_t) override { return number_; }
  void groups(std::uint32_t, CallerIdentity* identity) override { identity->groups = groups_; }
  void change(std::vector<std::uint32_t> groups) {
    ++number_;
    groups_.assign(groups.begin(), groups.end());
  }

 private:
  std::uint64_t number_ = 1;
  decltype(CallerIdentity::groups) groups_;
};

/// Who a caller is is remembered, for as long as the name service says the same.
TEST_F(Attributes, AccessFollowsTheGroupsThatTheNameServiceGives) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f", 0040);
  ASSERT_EQ(::chown(nfs.path("f").c_str(), 1000, 3000), 0);
  auto source = std::make_unique<ChangingGroups>();
  ChangingGroups& groups = *source;
  nfs.server().groups = std::move(source);
  nfs.set_caller(user(2000, 2000));
  for (int i = 0; i < 2; ++i) {
    groups.change({});
    EXPECT_EQ(nfs.access(file, 0x3f), 0u);
    EXPECT_EQ(nfs.access(file, 0x3f), 0u);
    groups.change({3000});
    EXPECT_EQ(nfs.access(file, 0x3f), xdr::ACCESS3_READ);
  }
}

TEST_F(Attributes, AccessShowsNoOwnerOverride) {
  if (nfs.acts_as_callers()) nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f", 0);
  EXPECT_EQ(nfs.access(file, 0x3f), 0u);
}

TEST_F(Attributes, AccessOfADirectory) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const FileHandle dir = nfs.mkdir(nfs.root(), "d", 0751);
  nfs.set_caller(user(2000, 2000));
  EXPECT_EQ(nfs.access(dir, 0x3f), xdr::ACCESS3_LOOKUP);
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(nfs.access(dir, 0x3f), 0x1fu);
}

TEST_F(Attributes, AccessShowsOnlyWhatWasAsked) {
  const FileHandle file = nfs.create(nfs.root(), "f", 0700);
  EXPECT_EQ(nfs.access(file, xdr::ACCESS3_READ), xdr::ACCESS3_READ);
}

TEST_F(Attributes, AccessOnAReadOnlyExportShowsNoWriting) {
  const FileHandle file = nfs.create(nfs.root(), "f", 0600);
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  EXPECT_EQ(nfs.access(file, 0x3f), xdr::ACCESS3_READ);
}

TEST_F(Attributes, FsinfoAnnouncesTheTransferSizes) {
  auto reply = nfs.call<nfsproc3::NFSPROC3_FSINFO>({nfs.fh(nfs.root())});
  EXPECT_EQ(reply.res.resok.rtmax, nfs.server().rtmax());
  EXPECT_EQ(reply.res.resok.wtmax, nfs.server().wtmax());
  EXPECT_EQ(reply.res.resok.rtpref, 1u << 20);
  EXPECT_EQ(reply.res.resok.properties, 0x1bu);
}

TEST_F(Attributes, FsstatAgreesWithStatvfs) {
  auto reply = nfs.call<nfsproc3::NFSPROC3_FSSTAT>({nfs.fh(nfs.root())});
  struct statvfs fs;
  ASSERT_EQ(::statvfs(nfs.directory().c_str(), &fs), 0);
  EXPECT_EQ(reply.res.resok.tbytes, fs.f_blocks * fs.f_frsize);
  EXPECT_EQ(reply.res.resok.tfiles, fs.f_files);
}

TEST_F(Attributes, PathconfNamesTheLimits) {
  auto reply = nfs.call<nfsproc3::NFSPROC3_PATHCONF>({nfs.fh(nfs.root())});
  EXPECT_EQ(reply.res.resok.name_max, 255u);
  EXPECT_TRUE(reply.res.resok.no_trunc);
  EXPECT_TRUE(reply.res.resok.case_preserving);
}

/// A tiny file system, full soon.
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    NFSRDMA_MOUNT(disk_, home_.path(), "size=256k,nr_inodes=40");
    ::chmod(home_.path().c_str(), 0777);
    HarnessOptions options;
    options.directory = home_.path();
    nfs = std::make_unique<Nfs3Harness>(options);
  }
  void TearDown() override {
    nfs.reset();
    if (disk_.mounted()) {
      EXPECT_TRUE(disk_.unmount()) << std::strerror(errno);
    }
  }
  TemporaryDirectory home_;
  MountedTmpfs disk_;
  std::unique_ptr<Nfs3Harness> nfs;
};

TEST_F(FullDisk, WriteIsNospc) {
  const FileHandle file = nfs->create(nfs->root(), "f");
  const std::string block(65536, 'x');
  nfsstat3 status = NFS3_OK;
  for (int i = 0; i < 8 && status == NFS3_OK; ++i) {
    status = nfs->write(file, static_cast<std::uint64_t>(i) * block.size(), block);
  }
  EXPECT_EQ(status, NFS3ERR_NOSPC);
}

TEST_F(FullDisk, CreateIsNospc) {
  nfsstat3 status = NFS3_OK;
  for (int i = 0; i < 60 && status == NFS3_OK; ++i) {
    const std::string name = "f" + std::to_string(i);
    xdr::CREATE3args args;
    args.where = {nfs->fh(nfs->root()), name};
    status = nfs->call<nfsproc3::NFSPROC3_CREATE>(args).status();
  }
  EXPECT_EQ(status, NFS3ERR_NOSPC);
}

TEST_F(FullDisk, SpaceOfRemovedFilesComesBackAtOnce) {
  const std::string block(150 << 10, 'x');
  for (int i = 0; i < 3; ++i) {
    const FileHandle file = nfs->create(nfs->root(), "f");
    ASSERT_EQ(nfs->write(file, 0, block), NFS3_OK) << "round " << i;
    ASSERT_EQ(nfs->read(file, 0, 1), "x");
    ASSERT_EQ(nfs->remove(nfs->root(), "f"), NFS3_OK);
  }
}

TEST_F(FullDisk, SpaceOfLocallyRemovedFilesComesBackAfterSomeSeconds) {
  const std::string block(150 << 10, 'x');
  const FileHandle file = nfs->create(nfs->root(), "f");
  ASSERT_EQ(nfs->write(file, 0, block), NFS3_OK);
  ASSERT_EQ(::unlink(nfs->path("f").c_str()), 0);
  for (std::uint64_t i = 0; i < 3 * FdCache::kIdleSeconds; ++i)
    nfs->server().files.sweep();
  struct statvfs fs;
  ASSERT_EQ(::statvfs(nfs->directory().c_str(), &fs), 0);
  EXPECT_GT(fs.f_bfree * fs.f_frsize, 200u << 10);
}

/// How many syncs it takes, and that the reply waits for them, if for any.
class AttributesOnDisk : public Attributes {
 protected:
  std::uint64_t syncs_of_setattr(const std::string& name, const xdr::sattr3& values) {
    const FileHandle object = nfs.lookup(nfs.root(), name);
    const std::uint64_t before = nfs.server().committer.stats().syncs;
    const auto reply = nfs.call<nfsproc3::NFSPROC3_SETATTR>({nfs.fh(object), values, {}});
    EXPECT_EQ(reply.status(), NFS3_OK);
    const std::uint64_t syncs = nfs.server().committer.stats().syncs - before;
    EXPECT_EQ(reply.waited_for_disk, syncs != 0);
    return syncs;
  }
};

TEST_F(AttributesOnDisk, OfWhatCannotBeOpenedAreWaitedFor) {
  ASSERT_EQ(::symlink("target", nfs.path("link").c_str()), 0);
  ASSERT_EQ(::mkfifo(nfs.path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mknod(nfs.path("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  for (const char* name : {"link", "fifo", "socket"})
    EXPECT_EQ(syncs_of_setattr(name, times(1000, 2000)), 1u) << name;
  ExportOptions options = HarnessOptions::writable();
  options.sync = false;
  nfs.export_with(options);
  EXPECT_EQ(syncs_of_setattr("link", times(1000, 2000)), 0u);
}

/// Without root the server may not read it.
TEST_F(AttributesOnDisk, OfWhatNobodyMayReadAreWaitedFor) {
  put_file(nfs.path("f"), "x", 0);
  EXPECT_EQ(syncs_of_setattr("f", times(1000, 2000)), 1u);
}

/// As Samba has leases.
TEST_F(AttributesOnDisk, OfWhatAnotherProcessHasALeaseOnAreWaitedFor) {
  put_file(nfs.path("f"), "x");
  UniqueFd leased(::open(nfs.path("f").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_NE(::signal(SIGIO, SIG_IGN), SIG_ERR);
  ASSERT_EQ(::fcntl(leased.get(), F_SETLEASE, F_WRLCK), 0);
  UniqueFd other(::open(nfs.path("f").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_FALSE(other);
  EXPECT_EQ(syncs_of_setattr("f", times(1000, 2000)), 1u);
}

TEST_F(AttributesOnDisk, OfANewLinkNeedNoSyncBesideItsDirectorys) {
  const std::uint64_t before = nfs.server().committer.stats().syncs;
  xdr::SYMLINK3args args;
  args.where = {nfs.fh(nfs.root()), "link"};
  args.symlink.symlink_data.bytes = as_bytes(std::string_view("target"));
  ASSERT_EQ(nfs.call<nfsproc3::NFSPROC3_SYMLINK>(args).status(), NFS3_OK);
  EXPECT_EQ(nfs.server().committer.stats().syncs, before + 1);
  args.where.name = "with times";
  args.symlink.symlink_attributes = times(1000, 2000);
  ASSERT_EQ(nfs.call<nfsproc3::NFSPROC3_SYMLINK>(args).status(), NFS3_OK);
  EXPECT_EQ(nfs.server().committer.stats().syncs, before + 3) << "that was another change";
}

}  // namespace
}  // namespace nfsrdma::test
