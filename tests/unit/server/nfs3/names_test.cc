// SPDX-License-Identifier: Apache-2.0
// LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK, READLINK.
#include <fcntl.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/support/held_calls.h"
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Names : public ::testing::Test {
 protected:
  nfsstat3 mkdir_status(std::string_view name) {
    return nfs.call<nfsproc3::NFSPROC3_MKDIR>({{nfs.fh(nfs.root()), name}, {}}).status();
  }
  nfsstat3 rmdir(std::string_view name) {
    return nfs.call<nfsproc3::NFSPROC3_RMDIR>({{nfs.fh(nfs.root()), name}}).status();
  }
  auto symlink(std::string_view name, std::string_view text) {
    xdr::SYMLINK3args args;
    args.where = {nfs.fh(nfs.root()), name};
    args.symlink.symlink_data.bytes = as_bytes(text);
    return nfs.call<nfsproc3::NFSPROC3_SYMLINK>(args);
  }
  nfsstat3 link(const FileHandle& file, std::string_view name) {
    return nfs.call<nfsproc3::NFSPROC3_LINK>({nfs.fh(file), {nfs.fh(nfs.root()), name}}).status();
  }
  auto create_as(xdr::createmode3 mode, std::string_view name, std::uint64_t verifier = 0) {
    xdr::CREATE3args args;
    args.where = {nfs.fh(nfs.root()), name};
    args.how.mode = mode;
    store_be64(args.how.verf.data(), verifier);
    return nfs.call<nfsproc3::NFSPROC3_CREATE>(args);
  }
  auto mknod(xdr::ftype3 type, std::string_view name) {
    xdr::MKNOD3args args;
    args.where = {nfs.fh(nfs.root()), name};
    args.what.type = type;
    args.what.device.spec = {7, 9};
    args.what.device.dev_attributes.mode = {true, 0600};
    args.what.pipe_attributes.mode = {true, 0600};
    return nfs.call<nfsproc3::NFSPROC3_MKNOD>(args);
  }
  Nfs3Harness nfs;
};

/// Between making it and looking it up: a root caller must not give away what is somebody else's.
TEST_F(Names, WhatSomebodyPutInPlaceOfANewDirectoryIsLeftAlone) {
  NFSRDMA_NEEDS_ROOT();
  const std::string victim = nfs.path("victim"), made = nfs.path("d");
  ASSERT_EQ(::mkdir(victim.c_str(), 0700), 0);
  ASSERT_EQ(::chown(victim.c_str(), 2000, 2000), 0);
  std::optional<HeldCalls> held;
  nfs.on_serving_thread([&] {
    held.emplace(SYS_openat, [&] {
      if (::access(made.c_str(), F_OK) == 0) (void)::rename(victim.c_str(), made.c_str());
    });
  });
  xdr::MKDIR3args args;
  args.where = {nfs.fh(nfs.root()), "d"};
  args.attributes.mode = {true, 01755};
  args.attributes.uid = {true, 1000};
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_MKDIR>(args).status(), NFS3_OK);
  EXPECT_NE(::access(victim.c_str(), F_OK), 0) << "it was not put there";
  EXPECT_EQ(stat_of(made).st_uid, 2000u);
  EXPECT_EQ(stat_of(made).st_mode & 07777, 0700u);
}

TEST_F(Names, LookupFindsWhatIsThere) {
  put_file(nfs.path("f"), "x");
  EXPECT_EQ(nfs.getattr(nfs.lookup(nfs.root(), "f")).resok.obj_attributes.fileid,
            stat_of(nfs.path("f")).st_ino);
}

TEST_F(Names, LookupOfNothingIsNoent) {
  EXPECT_EQ(nfs.lookup_status(nfs.root(), "nothing"), NFS3ERR_NOENT);
}

TEST_F(Names, LookupInAFileIsNotdir) {
  EXPECT_EQ(nfs.lookup_status(nfs.create(nfs.root(), "f"), "x"), NFS3ERR_NOTDIR);
}

TEST_F(Names, LookupTwiceGivesTheSameHandle) {
  const FileHandle first = nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.lookup(nfs.root(), "f"), first);
  EXPECT_EQ(nfs.lookup(nfs.root(), "f"), first);
}

TEST_F(Names, LookupOpensNothingThatAHandleCanOpenLater) {
  if (!nfs.acts_as_callers()) GTEST_SKIP() << "needs the kernel's handles";
  std::ofstream(nfs.path("f")) << "text";
  nfs.getattr(nfs.root());
  const std::size_t before = nfs.server().files.size();
  const FileHandle file = nfs.lookup(nfs.root(), "f");
  EXPECT_EQ(nfs.server().files.size(), before);
  EXPECT_EQ(nfs.read(file, 0, 10), "text");
}

TEST_F(Names, LookupGivesHandleAndAttributesOfOneObject) {
  const FileHandle a = nfs.create(nfs.root(), "a");
  const FileHandle b = nfs.create(nfs.root(), "b");
  const std::uint64_t inode_of_a = stat_of(nfs.path("a")).st_ino;
  const std::uint64_t inode_of_b = stat_of(nfs.path("b")).st_ino;
  nfs.restart();  // neither is open
  std::atomic<bool> over{false};
  std::atomic<int> begun{0};
  // Some for each LOOKUP: without end they can keep it from the directory for long.
  std::thread swapping([&] {
    for (int swaps = 0; !over;) {
      if (swaps >= 8 * begun) {
        std::this_thread::yield();
        continue;
      }
      ::renameat2(AT_FDCWD, nfs.path("a").c_str(), AT_FDCWD, nfs.path("b").c_str(),
                  RENAME_EXCHANGE);
      ++swaps;
    }
  });
  for (int i = 0; i < 5000; ++i) {
    ++begun;
    auto found = nfs.call<nfsproc3::NFSPROC3_LOOKUP>({{nfs.fh(nfs.root()), "a"}});
    EXPECT_EQ(found.status(), NFS3_OK);
    const FileHandle handle = to_handle(found.res.resok.object.data);
    EXPECT_TRUE(handle == a || handle == b);
    EXPECT_EQ(found.res.resok.obj_attributes.attributes.fileid,
              handle == a ? inode_of_a : inode_of_b);
    if (HasFailure()) break;
  }
  over = true;
  swapping.join();
}

TEST_F(Names, DotIsTheDirectoryItself) {
  EXPECT_EQ(nfs.lookup(nfs.root(), "."), nfs.root());
}

TEST_F(Names, DotDotOfTheExportIsItself) {
  EXPECT_EQ(nfs.lookup(nfs.root(), ".."), nfs.root());
}

TEST_F(Names, DotDotOfADirectoryIsItsParent) {
  const FileHandle a = nfs.mkdir(nfs.root(), "a");
  const FileHandle b = nfs.mkdir(a, "b");
  EXPECT_EQ(nfs.lookup(b, ".."), a);
  EXPECT_EQ(nfs.lookup(a, ".."), nfs.root());
}

TEST_F(Names, DotDotDoesNotLeaveTheExportAfterAMove) {
  const FileHandle dir = nfs.mkdir(nfs.root(), "dir");
  const std::string outside = nfs.state_dir() + "/moved";
  ASSERT_EQ(::rename(nfs.path("dir").c_str(), outside.c_str()), 0);
  const nfsstat3 status = nfs.lookup_status(dir, "..");
  EXPECT_TRUE(status == NFS3ERR_ACCES || status == NFS3ERR_STALE);
}

TEST_F(Names, NamesWithSlashesAreRefused) {
  ASSERT_EQ(mkdir_status("d"), NFS3_OK);
  put_file(nfs.path("d/f"), "x");
  EXPECT_EQ(nfs.lookup_status(nfs.root(), "d/f"), NFS3ERR_INVAL);
  EXPECT_EQ(nfs.lookup_status(nfs.root(), "/etc"), NFS3ERR_INVAL);
  EXPECT_EQ(nfs.lookup_status(nfs.root(), "../state"), NFS3ERR_INVAL);
  EXPECT_EQ(nfs.remove(nfs.root(), "d/f"), NFS3ERR_INVAL);
  EXPECT_EQ(mkdir_status("d/e"), NFS3ERR_INVAL);
}

TEST_F(Names, NamesWithZeroBytesAreRefused) {
  put_file(nfs.path("f"), "x");
  EXPECT_EQ(nfs.lookup_status(nfs.root(), std::string_view("f\0g", 3)), NFS3ERR_INVAL);
}

TEST_F(Names, EmptyNamesAreRefused) {
  EXPECT_EQ(nfs.lookup_status(nfs.root(), ""), NFS3ERR_ACCES);
  EXPECT_EQ(mkdir_status(""), NFS3ERR_ACCES);
}

TEST_F(Names, TheLongestNameWorks) {
  const std::string name(255, 'n');
  const FileHandle file = nfs.create(nfs.root(), name);
  EXPECT_EQ(nfs.lookup(nfs.root(), name), file);
}

TEST_F(Names, LongerNamesAreTooLong) {
  const std::string name(256, 'n');
  EXPECT_EQ(nfs.lookup_status(nfs.root(), name), NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(mkdir_status(name), NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(nfs.remove(nfs.root(), std::string(1000, 'n')), NFS3ERR_NAMETOOLONG);
}

TEST_F(Names, SymbolicLinksAreNeverFollowed) {
  ASSERT_EQ(symlink("out", "/etc").status(), NFS3_OK);
  const FileHandle link_handle = nfs.lookup(nfs.root(), "out");
  EXPECT_EQ(nfs.getattr(link_handle).resok.obj_attributes.type, xdr::ftype3::NF3LNK);
  EXPECT_EQ(nfs.lookup_status(link_handle, "passwd"), NFS3ERR_NOTDIR);
  EXPECT_EQ(nfs.read(link_handle, 0, 10), "error 22");
  EXPECT_EQ(nfs.write(link_handle, 0, "x"), NFS3ERR_INVAL);
}

TEST_F(Names, CreateOverASymbolicLinkDoesNotFollowIt) {
  const std::string outside = nfs.state_dir() + "/target";
  put_file(outside, "untouched");
  ASSERT_EQ(symlink("l", outside).status(), NFS3_OK);
  EXPECT_EQ(create_as(xdr::createmode3::UNCHECKED, "l").status(), NFS3ERR_EXIST);
  EXPECT_EQ(content_of(outside), "untouched");
}

TEST_F(Names, ReadlinkGivesTheTextAsItCame) {
  ASSERT_EQ(symlink("l", "../some//where").status(), NFS3_OK);
  auto reply = nfs.call<nfsproc3::NFSPROC3_READLINK>({nfs.fh(nfs.lookup(nfs.root(), "l"))});
  EXPECT_EQ(as_text(reply.res.resok.data.bytes), "../some//where");
}

TEST_F(Names, ReadlinkOfAFileIsInvalid) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_READLINK>({nfs.fh(file)}).status(), NFS3ERR_INVAL);
}

TEST_F(Names, SymlinkRefusesWhatIsNoPath) {
  EXPECT_EQ(symlink("l", "").status(), NFS3ERR_INVAL);
  EXPECT_EQ(symlink("l", std::string_view("a\0b", 3)).status(), NFS3ERR_INVAL);
  EXPECT_EQ(symlink("l", std::string(4096, 'x')).status(), NFS3ERR_NAMETOOLONG);
}

TEST_F(Names, CreateAppliesTheModeExactly) {
  nfs.create(nfs.root(), "f", 0666);
  EXPECT_EQ(stat_of(nfs.path("f")).st_mode & 07777, 0666u);
}

TEST_F(Names, GuardedCreateOfAnExistingFileIsExist) {
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(create_as(xdr::createmode3::GUARDED, "f").status(), NFS3ERR_EXIST);
}

TEST_F(Names, UncheckedCreateOfAnExistingFileGivesIt) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "keep"), NFS3_OK);
  auto reply = create_as(xdr::createmode3::UNCHECKED, "f");
  EXPECT_EQ(to_handle(reply.res.resok.obj.handle.data), file);
  EXPECT_EQ(content_of(nfs.path("f")), "keep");
}

TEST_F(Names, UncheckedCreateWithSizeZeroTruncates) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "gone"), NFS3_OK);
  xdr::CREATE3args args;
  args.where = {nfs.fh(nfs.root()), "f"};
  args.how.obj_attributes.size = {true, 0};
  auto reply = nfs.call<nfsproc3::NFSPROC3_CREATE>(args);
  EXPECT_EQ(reply.res.resok.obj_attributes.attributes.size, 0u);
}

TEST_F(Names, ExclusiveCreateIsRepeatable) {
  auto first = create_as(xdr::createmode3::EXCLUSIVE, "f", 0x123456789abcdef0);
  ASSERT_EQ(first.status(), NFS3_OK);
  auto again = create_as(xdr::createmode3::EXCLUSIVE, "f", 0x123456789abcdef0);
  ASSERT_EQ(again.status(), NFS3_OK);
  EXPECT_EQ(to_handle(again.res.resok.obj.handle.data), to_handle(first.res.resok.obj.handle.data));
}

TEST_F(Names, ExclusiveCreateIsRepeatableAfterARestart) {
  ASSERT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", ~std::uint64_t{0}).status(), NFS3_OK);
  nfs.restart();
  EXPECT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", ~std::uint64_t{0}).status(), NFS3_OK);
}

TEST_F(Names, ExclusiveCreateByAnotherIsExist) {
  ASSERT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", 1).status(), NFS3_OK);
  EXPECT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", 2).status(), NFS3ERR_EXIST);
  EXPECT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", 0x1'00000001).status(), NFS3ERR_EXIST);
}

TEST_F(Names, ExclusiveCreateOfATakenNameIsExistAlsoForWhoMayNotMakeIt) {
  NFSRDMA_NEEDS_ROOT();
  ASSERT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", 1).status(), NFS3_OK);
  ASSERT_EQ(::chmod(nfs.directory().c_str(), 0755), 0);
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "f", 2).status(), NFS3ERR_EXIST);
  EXPECT_EQ(create_as(xdr::createmode3::EXCLUSIVE, "g", 2).status(), NFS3ERR_ACCES);
}

TEST_F(Names, ExclusiveCreateWorksForOthersThanRoot) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1000));
  const auto made = create_as(xdr::createmode3::EXCLUSIVE, "f", 0x7000000060000000);
  ASSERT_EQ(made.status(), NFS3_OK);
  const struct stat st = stat_of(nfs.path("f"));
  EXPECT_EQ(st.st_uid, 1000u);
  EXPECT_EQ(st.st_mtim.tv_sec, 0x70000000);
  EXPECT_EQ(made.res.resok.obj_attributes.attributes.mtime.seconds, 0x70000000u);
  EXPECT_EQ(made.res.resok.obj_attributes.attributes.nlink, 1u);
}

TEST_F(Names, DotsCannotBeMadeOrRemoved) {
  EXPECT_EQ(mkdir_status("."), NFS3ERR_EXIST);
  EXPECT_EQ(mkdir_status(".."), NFS3ERR_EXIST);
  EXPECT_EQ(rmdir("."), NFS3ERR_INVAL);
  EXPECT_EQ(rmdir(".."), NFS3ERR_EXIST);
  EXPECT_EQ(nfs.remove(nfs.root(), ".."), NFS3ERR_ACCES);
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.rename(nfs.root(), "f", nfs.root(), ".."), NFS3ERR_INVAL);
}

TEST_F(Names, MkdirAppliesTheModeExactly) {
  nfs.mkdir(nfs.root(), "d", 01777);
  EXPECT_EQ(stat_of(nfs.path("d")).st_mode & 07777, 01777u);
}

TEST_F(Names, MkdirInASetgidDirectoryInheritsGroupAndBit) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle top = nfs.mkdir(nfs.root(), "top", 0777);
  ASSERT_EQ(::chown(nfs.path("top").c_str(), 0, 4242), 0);
  ASSERT_EQ(::chmod(nfs.path("top").c_str(), 02777), 0);
  nfs.set_caller(user(1000, 1000));
  nfs.mkdir(top, "below", 0755);
  const struct stat st = stat_of(nfs.path("top/below"));
  EXPECT_EQ(st.st_gid, 4242u);
  EXPECT_EQ(st.st_mode & 07777, 02755u);
}

TEST_F(Names, RootSetsTheSetgidBitForAnyGroup) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle dir = nfs.mkdir(nfs.root(), "d", 0755);
  ASSERT_EQ(::chown(nfs.path("d").c_str(), 0, 4242), 0);
  xdr::sattr3 values;
  values.mode = {true, 02755};
  ASSERT_EQ(nfs.setattr(dir, values), NFS3_OK);
  EXPECT_EQ(stat_of(nfs.path("d")).st_mode & 07777, 02755u);
}

TEST_F(Names, NewFilesBelongToTheCaller) {
  NFSRDMA_NEEDS_ROOT();
  nfs.set_caller(user(1000, 1001));
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(stat_of(nfs.path("f")).st_uid, 1000u);
  EXPECT_EQ(stat_of(nfs.path("f")).st_gid, 1001u);
}

TEST_F(Names, SquashedRootsFilesBelongToNobody) {
  NFSRDMA_NEEDS_ROOT();
  ExportOptions options = HarnessOptions::writable();
  options.root_squash = true;
  options.anon_uid = 1234;
  options.anon_gid = 4321;
  nfs.export_with(options);
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(stat_of(nfs.path("f")).st_uid, 1234u);
  EXPECT_EQ(stat_of(nfs.path("f")).st_gid, 4321u);
}

TEST_F(Names, AllSquashMakesEverybodyAnonymous) {
  NFSRDMA_NEEDS_ROOT();
  ExportOptions options = HarnessOptions::writable();
  options.all_squash = true;
  options.anon_uid = 1234;
  nfs.export_with(options);
  nfs.set_caller(user(1000, 1000));
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(stat_of(nfs.path("f")).st_uid, 1234u);
}

TEST_F(Names, OthersCannotCreateInAPrivateDirectory) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle dir = nfs.mkdir(nfs.root(), "private", 0700);
  nfs.create(dir, "f");
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(nfs.lookup_status(dir, "f"), NFS3ERR_ACCES);
  EXPECT_EQ(nfs.remove(dir, "f"), NFS3ERR_ACCES);
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_MKDIR>({{nfs.fh(dir), "x"}, {}}).status(), NFS3ERR_ACCES);
}

TEST_F(Names, FifosAndSocketsAreMade) {
  EXPECT_EQ(mknod(xdr::ftype3::NF3FIFO, "fifo").status(), NFS3_OK);
  EXPECT_EQ(mknod(xdr::ftype3::NF3SOCK, "sock").status(), NFS3_OK);
  EXPECT_TRUE(S_ISFIFO(stat_of(nfs.path("fifo")).st_mode));
  EXPECT_TRUE(S_ISSOCK(stat_of(nfs.path("sock")).st_mode));
}

TEST_F(Names, RootMakesDevices) {
  NFSRDMA_NEEDS_ROOT();
  auto reply = mknod(xdr::ftype3::NF3CHR, "dev");
  if (reply.status() == NFS3ERR_PERM) GTEST_SKIP() << "no CAP_MKNOD here";
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_EQ(reply.res.resok.obj_attributes.attributes.rdev, (xdr::specdata3{7, 9}));
  EXPECT_EQ(stat_of(nfs.path("dev")).st_rdev, makedev(7, 9));
}

TEST_F(Names, OthersMakeNoDevices) {
  if (nfs.acts_as_callers()) nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(mknod(xdr::ftype3::NF3BLK, "dev").status(), NFS3ERR_PERM);
}

TEST_F(Names, ADeviceIsNeverOpened) {
  EXPECT_EQ(mknod(xdr::ftype3::NF3FIFO, "fifo").status(), NFS3_OK);
  EXPECT_EQ(nfs.read(nfs.lookup(nfs.root(), "fifo"), 0, 1), "error 22");
}

TEST_F(Names, MknodOfARegularFileIsBadtype) {
  EXPECT_EQ(mknod(xdr::ftype3::NF3REG, "f").status(), NFS3ERR_BADTYPE);
}

TEST_F(Names, RemovedFilesAreGone) {
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.remove(nfs.root(), "f"), NFS3_OK);
  EXPECT_EQ(nfs.remove(nfs.root(), "f"), NFS3ERR_NOENT);
}

TEST_F(Names, RemoveOfADirectoryIsIsdir) {
  ASSERT_EQ(mkdir_status("d"), NFS3_OK);
  EXPECT_EQ(nfs.remove(nfs.root(), "d"), NFS3ERR_ISDIR);
}

TEST_F(Names, RmdirWantsAnEmptyDirectory) {
  const FileHandle d = nfs.mkdir(nfs.root(), "d");
  nfs.create(d, "f");
  EXPECT_EQ(rmdir("d"), NFS3ERR_NOTEMPTY);
  EXPECT_EQ(nfs.remove(d, "f"), NFS3_OK);
  EXPECT_EQ(rmdir("d"), NFS3_OK);
}

TEST_F(Names, RmdirOfAFileIsNotdir) {
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(rmdir("f"), NFS3ERR_NOTDIR);
}

TEST_F(Names, RenameKeepsTheHandle) {
  const FileHandle dir = nfs.mkdir(nfs.root(), "d");
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.rename(nfs.root(), "f", dir, "g"), NFS3_OK);
  EXPECT_EQ(nfs.lookup(dir, "g"), file);
  EXPECT_EQ(nfs.lookup_status(nfs.root(), "f"), NFS3ERR_NOENT);
}

TEST_F(Names, RenameOverAFileReplacesIt) {
  const FileHandle winner = nfs.create(nfs.root(), "new");
  const FileHandle loser = nfs.create(nfs.root(), "old");
  ASSERT_EQ(nfs.write(loser, 0, "x"), NFS3_OK);
  EXPECT_EQ(nfs.rename(nfs.root(), "new", nfs.root(), "old"), NFS3_OK);
  EXPECT_EQ(nfs.lookup(nfs.root(), "old"), winner);
  EXPECT_EQ(nfs.getattr(loser).status, NFS3ERR_STALE);
}

TEST_F(Names, RenameReportsBothDirectories) {
  const FileHandle dir = nfs.mkdir(nfs.root(), "d");
  nfs.create(nfs.root(), "f");
  auto reply = nfs.call<nfsproc3::NFSPROC3_RENAME>({{nfs.fh(nfs.root()), "f"}, {nfs.fh(dir), "f"}});
  EXPECT_TRUE(reply.res.resok.fromdir_wcc.after.attributes_follow);
  EXPECT_EQ(reply.res.resok.todir_wcc.after.attributes.fileid, stat_of(nfs.path("d")).st_ino);
}

TEST_F(Names, RenameWithinADirectoryReportsBefore) {
  nfs.create(nfs.root(), "f");
  auto reply =
      nfs.call<nfsproc3::NFSPROC3_RENAME>({{nfs.fh(nfs.root()), "f"}, {nfs.fh(nfs.root()), "g"}});
  EXPECT_TRUE(reply.res.resok.fromdir_wcc.before.attributes_follow);
}

TEST_F(Names, RenameIntoOwnChildIsInvalid) {
  nfs.mkdir(nfs.root(), "d");
  const FileHandle child = nfs.mkdir(nfs.lookup(nfs.root(), "d"), "c");
  EXPECT_EQ(nfs.rename(nfs.root(), "d", child, "x"), NFS3ERR_INVAL);
}

TEST_F(Names, LinkMakesAnotherName) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(link(file, "g"), NFS3_OK);
  EXPECT_EQ(nfs.lookup(nfs.root(), "g"), file);
  EXPECT_EQ(nfs.getattr(file).resok.obj_attributes.nlink, 2u);
}

TEST_F(Names, LinkOfASymbolicLinkLinksTheLink) {
  ASSERT_EQ(symlink("l", "nowhere").status(), NFS3_OK);
  const FileHandle handle = nfs.lookup(nfs.root(), "l");
  EXPECT_EQ(link(handle, "m"), NFS3_OK);
  EXPECT_EQ(nfs.lookup(nfs.root(), "m"), handle);
}

TEST_F(Names, LinkOntoAnExistingNameIsExist) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(link(file, "f"), NFS3ERR_EXIST);
}

TEST_F(Names, LinkOfADirectoryIsRefused) {
  EXPECT_EQ(link(nfs.mkdir(nfs.root(), "d"), "e"), NFS3ERR_PERM);
}

TEST_F(Names, RemovingOneOfTwoNamesKeepsTheFile) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(link(file, "g"), NFS3_OK);
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  ASSERT_EQ(nfs.remove(nfs.root(), "f"), NFS3_OK);
  EXPECT_EQ(nfs.read(file, 0, 1), "x");
}

TEST_F(Names, ChangesOfNamesWaitForTheDiskOnlyOnASyncExport) {
  for (bool sync : {true, false}) {
    ExportOptions options = HarnessOptions::writable();
    options.sync = sync;
    nfs.export_with(options);
    xdr::MKDIR3args args;
    const std::string name = sync ? "s" : "a";
    args.where = {nfs.fh(nfs.root()), name};
    EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_MKDIR>(args).waited_for_disk, sync);
    EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_RMDIR>({{nfs.fh(nfs.root()), name}}).waited_for_disk,
              sync);
  }
}

TEST_F(Names, CreateReportsTheDirectoryBeforeAndAfter) {
  auto reply = create_as(xdr::createmode3::GUARDED, "f");
  const auto& wcc = reply.res.resok.dir_wcc;
  ASSERT_TRUE(wcc.before.attributes_follow);
  EXPECT_LE(wcc.before.attributes.mtime.seconds, wcc.after.attributes.mtime.seconds);
}

TEST_F(Names, NothingCanBeMadeOnAReadOnlyExport) {
  put_file(nfs.path("f"), "x");
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  EXPECT_EQ(mkdir_status("d"), NFS3ERR_ROFS);
  EXPECT_EQ(create_as(xdr::createmode3::UNCHECKED, "g").status(), NFS3ERR_ROFS);
  EXPECT_EQ(symlink("l", "x").status(), NFS3ERR_ROFS);
  EXPECT_EQ(nfs.remove(nfs.root(), "f"), NFS3ERR_ROFS);
  EXPECT_EQ(nfs.rename(nfs.root(), "f", nfs.root(), "g"), NFS3ERR_ROFS);
  EXPECT_EQ(link(nfs.lookup(nfs.root(), "f"), "g"), NFS3ERR_ROFS);
}

/// NFSv3's wcc data and NFSv4's change attributes count on every change being announced.
class AnnouncedChanges : public ::testing::Test {
 protected:
  ChangeWitness::Seen seen(const std::string& name) {
    const struct stat st = stat_of(nfs.path(name));
    return nfs.server().changes.seen(st.st_dev, st.st_ino);
  }
  Nfs3Harness nfs;
};

TEST_F(AnnouncedChanges, OfAFileThatCreateCuts) {
  put_file(nfs.path("f"), "content", 0666);
  const auto before = seen("f");
  xdr::CREATE3args args;
  args.where = {nfs.fh(nfs.root()), "f"};
  args.how.mode = xdr::createmode3::UNCHECKED;
  args.how.obj_attributes.size = {true, 0};
  const auto reply = nfs.call<nfsproc3::NFSPROC3_CREATE>(args);
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_EQ(reply.res.resok.obj_attributes.attributes.size, 0u);
  EXPECT_EQ(content_of(nfs.path("f")), "");
  EXPECT_NE(seen("f"), before);
}

TEST_F(AnnouncedChanges, OfAFileThatGetsAnotherName) {
  put_file(nfs.path("f"), "content", 0666);
  const FileHandle file = nfs.lookup(nfs.root(), "f");
  const auto before = seen("f");
  const auto reply =
      nfs.call<nfsproc3::NFSPROC3_LINK>({nfs.fh(file), {nfs.fh(nfs.root()), "second"}});
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_EQ(reply.res.resok.file_attributes.attributes.nlink, 2u);
  EXPECT_NE(seen("f"), before);
}

}  // namespace
}  // namespace nfsrdma::test
