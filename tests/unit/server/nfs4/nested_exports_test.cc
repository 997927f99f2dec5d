// SPDX-License-Identifier: Apache-2.0
// One directory, one handle: READDIR and LOOKUP go the same way over mount points and into exports
// that lie in others (RFC 8881 7.4 to 7.7, 5.8.2.23).
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/support/mounted_tmpfs.h"
#include "tests/support/nfs4_exports.h"

namespace nfsrdma::test {
namespace {

using xdr::bitmap4;
using enum xdr::fattr4_number;

constexpr bitmap4 kAll = bitmap4::of({FATTR4_TYPE, FATTR4_FSID, FATTR4_RDATTR_ERROR,
                                      FATTR4_FILEHANDLE, FATTR4_FILEID, FATTR4_MOUNTED_ON_FILEID});

class NestedExports : public Exports4 {
 protected:
  /// What READDIR of `directory` says of `name` is what LOOKUP and GETATTR say.
  Attributes4 expect_same(const std::string& directory, const std::string& name) {
    const auto listed = list(way_to(directory), kAll);
    EXPECT_TRUE(listed.contains(name));
    if (!listed.contains(name)) return {};
    const Attributes4& entry = listed.at(name);
    const Attributes4 found = attributes(way_to(directory + "/" + name), kAll);
    EXPECT_EQ(found.status, NFS4_OK);
    EXPECT_EQ(entry.values.rdattr_error, NFS4_OK);
    EXPECT_EQ(entry.handle(), found.handle());
    EXPECT_EQ(entry.handle(), walk(directory + "/" + name));
    EXPECT_EQ(entry.values.fsid.major, found.values.fsid.major);
    EXPECT_EQ(entry.values.fileid, found.values.fileid);
    EXPECT_EQ(entry.values.mounted_on_fileid, found.values.mounted_on_fileid);
    return found;
  }
  const Export* exported(std::string_view path) {
    for (const auto& entry : nfs.server().exports.current().exports) {
      if (entry->path == path) return entry.get();
    }
    ADD_FAILURE() << path << " is not exported";
    return nullptr;
  }
  std::uint64_t export_of(const FileHandle& handle) {
    HandleParts parts;
    EXPECT_TRUE(nfs.server().handles.open(handle.bytes(), &parts));
    return parts.export_id;
  }
};

TEST_F(NestedExports, AnEntryThatIsAnExportIsThatExport) {
  make_directory("data");
  make_directory("plain");
  load("@ *(rw)\n@/data *(rw,fsid=77)\n");
  const Attributes4 data = expect_same("", "data");
  EXPECT_EQ(data.values.fsid.major, 77u);
  EXPECT_EQ(data.values.fileid, inode("data"));
  EXPECT_EQ(data.values.mounted_on_fileid, inode("data"));
  EXPECT_EQ(export_of(data.handle()), exported(nfs.path("data"))->id);
  const Attributes4 plain = expect_same("", "plain");
  EXPECT_EQ(export_of(plain.handle()), exported(nfs.directory())->id);
  EXPECT_EQ(plain.values.mounted_on_fileid, inode("plain"));
}

TEST_F(NestedExports, WhoMayNotUseTheInnerOneStaysInTheOuter) {
  make_directory("data");
  load("@ *(rw)\n@/data 198.51.100.1(rw,fsid=77)\n");
  const Attributes4 data = expect_same("", "data");
  EXPECT_NE(data.values.fsid.major, 77u);
  EXPECT_EQ(export_of(data.handle()), exported(nfs.directory())->id);
}

/// The thread acts as somebody else in the inner export, and READDIR goes on in the outer one.
TEST_F(NestedExports, EntriesBehindAnInnerExportAreReadAsBefore) {
  make_directory("data");
  for (int i = 0; i < 40; ++i)
    make_directory("d" + std::to_string(i));
  ::chmod(nfs.directory().c_str(), 0700);
  load("@ *(rw,no_root_squash)\n@/data *(rw,all_squash)\n");
  const auto listed = list(way_to(""), kAll);
  EXPECT_EQ(listed.size(), 41u);
  for (const auto& [name, entry] : listed)
    EXPECT_EQ(entry.values.rdattr_error, NFS4_OK) << name;
}

/// As in Linux's server, a directory is not kept from being removed by being exported. What has its
/// name later is no export before the exports are read again.
TEST_F(NestedExports, TheRootOfAnInnerExportCanBeRemoved) {
  make_directory("data");
  load("@ *(rw)\n@/data *(rw,fsid=77)\n");
  const FileHandle old = expect_same("", "data").handle();
  const std::uint64_t outer = exported(nfs.directory())->id;
  ASSERT_EQ(nfs.run(way_to("").add<OP_REMOVE>({"data"})).status, NFS4_OK);
  EXPECT_EQ(nfs.run(way_to("data")).status, NFS4ERR_NOENT);
  EXPECT_TRUE(list(way_to(""), kAll).empty());
  const auto nothing_there = [&] {
    nfsstat4 failed = NFS4_OK;
    list(Operations4().putfh(old), kAll, &failed);
    EXPECT_EQ(failed, NFS4ERR_STALE);
    EXPECT_EQ(nfs.run(Operations4().putfh(old).add<OP_LOOKUP>({"file"})).status, NFS4ERR_NOENT);
    EXPECT_EQ(nfs.open(old, "file").status, NFS4ERR_NOENT) << "nothing can be made there";
  };
  nothing_there();
  make_directory("data");
  put_file(nfs.path("data/file"), "another's");
  const Attributes4 another = expect_same("", "data");
  EXPECT_EQ(export_of(another.handle()), outer);
  EXPECT_NE(another.values.fsid.major, 77u);
  nothing_there();
  load("@ *(rw)\n@/data *(rw,fsid=77)\n");
  EXPECT_EQ(expect_same("", "data").values.fsid.major, 77u);
  nothing_there();
}

TEST_F(NestedExports, TheRootOfAnInnerExportCanBeRenamed) {
  make_directory("data");
  load("@ *(rw)\n@/data *(rw,fsid=77)\n");
  put_file(nfs.path("data/file"), "its");
  const FileHandle old = expect_same("", "data").handle();
  ASSERT_EQ(nfs.run(way_to("").add<OP_SAVEFH>().add<OP_RENAME>({"data", "moved"})).status, NFS4_OK);
  make_directory("data");
  // It is the directory that is exported; its old name is that of another one.
  const Attributes4 moved = expect_same("", "moved");
  EXPECT_EQ(moved.handle(), old);
  EXPECT_EQ(moved.values.fsid.major, 77u);
  EXPECT_TRUE(list(Operations4().putfh(old), kAll).contains("file"));
  EXPECT_EQ(export_of(expect_same("", "data").handle()), exported(nfs.directory())->id);
  const Reply4 back = nfs.run(Operations4().putfh(old).add<OP_LOOKUPP>().add<OP_GETFH>());
  ASSERT_EQ(back.status, NFS4_OK);
  EXPECT_EQ(to_handle(back.get<OP_GETFH>().resok4.object.data), walk(""));
}

TEST_F(NestedExports, BelowThePseudoFileSystemTheyAreMountedOnItsNodes) {
  make_directory("a/data");
  load("@/a/data *(rw)\n");
  const Attributes4 data = expect_same("a", "data");
  EXPECT_EQ(data.values.fileid, inode("a/data"));
  EXPECT_NE(data.values.mounted_on_fileid, inode("a/data"));
}

/// Needs to mount something.
class MountedExports : public NestedExports {
 protected:
  void SetUp() override {
    make_directory("disk");
    on_disk_ = inode("disk");
    NFSRDMA_MOUNT(disk_, nfs.path("disk"), "size=1m,mode=0777");
    make_directory("disk/below");
    ASSERT_NE(inode("disk"), on_disk_);
  }
  std::uint64_t on_disk_ = 0;  // inode of the directory under the mount
  MountedTmpfs disk_;
};

TEST_F(MountedExports, WithCrossmntAMountIsOfTheExport) {
  load("@ *(rw,crossmnt)\n");
  const Attributes4 disk = expect_same("", "disk");
  EXPECT_EQ(disk.values.fileid, inode("disk"));
  EXPECT_EQ(disk.values.mounted_on_fileid, on_disk_);
  EXPECT_EQ(export_of(disk.handle()), exported(nfs.directory())->id);
  EXPECT_NE(disk.values.fsid.major, attributes(way_to(""), kAll).values.fsid.major);
  expect_same("disk", "below");
}

/// An entry's attributes are those of its own file system, not of the directory's.
TEST_F(MountedExports, WithCrossmntAMountHasLocationsOfItsOwn) {
  make_directory("beside");
  load("@ *(rw,crossmnt,replicas=/r@one)\n");
  const bitmap4 wanted =
      bitmap4::of({FATTR4_FS_LOCATIONS, FATTR4_FSID, FATTR4_FILES_TOTAL, FATTR4_SPACE_TOTAL});
  for (const bitmap4& asked : {wanted, bitmap4::of({FATTR4_FS_LOCATIONS})}) {
    const auto listed = list(way_to(""), asked);
    ASSERT_EQ(listed.size(), 2u);
    for (const auto& [name, entry] : listed) {
      const Attributes4 found = attributes(way_to(name), asked);
      ASSERT_EQ(found.status, NFS4_OK);
      EXPECT_EQ(*entry.bytes, *found.bytes) << name;
      EXPECT_EQ(entry.values.fs_locations.fs_root.components.count,
                std::ranges::count(nfs.directory(), '/') + (name == "disk" ? 1u : 0u));
      EXPECT_EQ(entry.values.fs_locations.locations.count, name == "disk" ? 0u : 1u);
    }
  }
  const auto below = list(way_to("disk"), wanted);
  ASSERT_TRUE(below.contains("below"));
  EXPECT_EQ(below.at("below").values.fs_locations.locations.count, 0u);
  EXPECT_EQ(*below.at("below").bytes, *attributes(way_to("disk/below"), wanted).bytes);
}

/// What kept the server from looking is not what it would have seen.
TEST_F(MountedExports, AFailureToLookBelowAMountIsNotKept) {
  load("@/disk *(rw)\n");
  const std::shared_ptr<MountPoint> disk = exported(nfs.path("disk"))->top;
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::uint64_t meanwhile = disk->mounted_on(true);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(meanwhile, inode("disk"));
  EXPECT_EQ(disk->mounted_on(false), 0u);
  EXPECT_EQ(disk->mounted_on(true), on_disk_);
  EXPECT_EQ(disk->mounted_on(false), on_disk_);
}

TEST_F(MountedExports, AnExportOnAMountIsReachedWithoutCrossmnt) {
  load("@ *(rw)\n@/disk *(rw)\n");
  const Attributes4 disk = expect_same("", "disk");
  EXPECT_EQ(disk.values.fileid, inode("disk"));
  EXPECT_EQ(disk.values.mounted_on_fileid, on_disk_);
  EXPECT_EQ(export_of(disk.handle()), exported(nfs.path("disk"))->id);
  const Reply4 back = nfs.run(way_to("disk").add<OP_LOOKUPP>().add<OP_GETFH>());
  ASSERT_EQ(back.status, NFS4_OK);
  EXPECT_EQ(to_handle(back.get<OP_GETFH>().resok4.object.data), walk(""));
}

TEST_F(MountedExports, AnExportOnAMountGoesBeforeCrossmnt) {
  load("@ *(rw,crossmnt)\n@/disk *(rw)\n");
  const Attributes4 disk = expect_same("", "disk");
  EXPECT_EQ(disk.values.mounted_on_fileid, on_disk_);
  EXPECT_EQ(export_of(disk.handle()), exported(nfs.path("disk"))->id);
}

TEST_F(MountedExports, WithoutEitherItIsOutOfReach) {
  load("@ *(rw)\n");
  EXPECT_EQ(nfs.run(way_to("disk")).status, NFS4ERR_ACCESS);
  const auto listed = list(way_to(""), kAll);
  ASSERT_TRUE(listed.contains("disk"));
  EXPECT_EQ(listed.at("disk").values.rdattr_error, NFS4ERR_ACCESS);
  EXPECT_EQ(listed.at("disk").values.mounted_on_fileid, on_disk_);
}

/// The calls are those of 192.0.2.7.
TEST_F(MountedExports, WithCrossmntOfAnotherClientItIsOutOfReachToo) {
  load("@ 192.0.2.7(rw,crossmnt)\n");
  const FileHandle below = walk("disk/below");
  load("@ 198.51.100.1(rw,crossmnt) *(rw)\n");
  EXPECT_EQ(nfs.run(way_to("disk")).status, NFS4ERR_ACCESS);
  const auto listed = list(way_to(""), kAll);
  ASSERT_TRUE(listed.contains("disk"));
  EXPECT_EQ(listed.at("disk").values.rdattr_error, NFS4ERR_ACCESS);
  EXPECT_EQ(nfs.run(Operations4().putfh(below)).status, NFS4ERR_STALE);
}

TEST_F(MountedExports, WhatIsOfTheDirectoryBelowNeedsNoMount) {
  load("@ *(rw)\n");
  const auto listed = list(way_to(""), bitmap4::of({FATTR4_MOUNTED_ON_FILEID, FATTR4_LEASE_TIME}));
  ASSERT_TRUE(listed.contains("disk"));
  EXPECT_EQ(listed.at("disk").values.mounted_on_fileid, on_disk_);
}

}  // namespace
}  // namespace nfsrdma::test
