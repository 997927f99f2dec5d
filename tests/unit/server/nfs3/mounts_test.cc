// SPDX-License-Identifier: Apache-2.0
// File systems mounted below an export: hidden without crossmnt, part of it with.
#include "tests/support/mounted_tmpfs.h"
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Mounts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(below);
    NFSRDMA_MOUNT(disk_, below, "size=1m");
    std::filesystem::create_directory(below + "/dir");
    put_file(below + "/dir/f", "inside");
  }
  void start(bool crossmnt) {
    HarnessOptions options;
    options.directory = top.path();
    options.exported.crossmnt = crossmnt;
    nfs = std::make_unique<Nfs3Harness>(options);
  }
  TemporaryDirectory top;
  std::string below = top.path() + "/below";

 private:
  MountedTmpfs disk_;

 protected:
  std::unique_ptr<Nfs3Harness> nfs;  // ends before
};

TEST_F(Mounts, AreNotCrossedByDefault) {
  start(false);
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3ERR_XDEV);
}

TEST_F(Mounts, AreListedWithoutHandleByDefault) {
  start(false);
  auto reply =
      nfs->call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs->fh(nfs->root()), 0, {}, 4096, 16384});
  bool seen = false;
  for (const xdr::entryplus3& entry : reply.res.resok.reply.entries) {
    if (entry.name != "below") continue;
    seen = true;
    EXPECT_FALSE(entry.name_handle.handle_follows);
    EXPECT_FALSE(entry.name_attributes.attributes_follow);
  }
  EXPECT_TRUE(seen);
}

TEST_F(Mounts, AreCrossedWithCrossmnt) {
  start(true);
  const FileHandle mount = nfs->lookup(nfs->root(), "below");
  EXPECT_EQ(nfs->read(nfs->lookup(nfs->lookup(mount, "dir"), "f"), 0, 10), "inside");
}

TEST_F(Mounts, HaveAnFsidOfTheirOwn) {
  start(true);
  EXPECT_NE(nfs->getattr(nfs->lookup(nfs->root(), "below")).resok.obj_attributes.fsid,
            nfs->getattr(nfs->root()).resok.obj_attributes.fsid);
}

TEST_F(Mounts, HandlesInThemOutliveARestart) {
  start(true);
  const FileHandle file = nfs->lookup(nfs->lookup(nfs->lookup(nfs->root(), "below"), "dir"), "f");
  nfs->restart();
  EXPECT_EQ(nfs->read(file, 0, 10), "inside");
}

TEST_F(Mounts, DotDotLeadsBackIntoTheExport) {
  start(true);
  EXPECT_EQ(nfs->lookup(nfs->lookup(nfs->root(), "below"), ".."), nfs->root());
}

TEST_F(Mounts, RenameAcrossThemIsXdev) {
  start(true);
  const FileHandle mount = nfs->lookup(nfs->root(), "below");
  nfs->create(nfs->root(), "f");
  EXPECT_EQ(nfs->rename(nfs->root(), "f", mount, "f"), NFS3ERR_XDEV);
}

TEST_F(Mounts, HandlesInThemAreStaleWithoutCrossmnt) {
  start(true);
  const FileHandle mount = nfs->lookup(nfs->root(), "below");
  ExportOptions options = HarnessOptions::writable();
  nfs->export_with(options);
  EXPECT_EQ(nfs->lookup_status(mount, "dir"), NFS3ERR_STALE);
}

/// Exports the directory and what is mounted below it, each with options.
class MountedExports : public Mounts {
 protected:
  void start(const std::string& above, const std::string& inner, const std::string& client = "*") {
    Mounts::start(false);
    const ParsedExports parsed = parse_exports(
        top.path() + " *(" + above + ")\n" + below + " " + client + "(" + inner + ")\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    nfs->server().exports.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  nfsstat3 make_file_below() {
    const FileHandle inner = nfs->lookup(nfs->root(), "below");
    auto reply = nfs->call<nfsproc3::NFSPROC3_CREATE>(
        {{nfs->fh(inner), "new"}, {xdr::createmode3::UNCHECKED, {}, {}}});
    return reply.status();
  }
};

TEST_F(MountedExports, AreHiddenByDefault) {
  start("rw,no_root_squash", "rw,no_root_squash");
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3ERR_XDEV);
}

TEST_F(MountedExports, AreSeenWithNohideUnderTheirOwnOptions) {
  start("ro,no_root_squash", "rw,no_root_squash,nohide");
  EXPECT_EQ(make_file_below(), NFS3_OK);
  start("rw,no_root_squash", "ro,no_root_squash,nohide");
  EXPECT_EQ(make_file_below(), NFS3ERR_ROFS);
  const FileHandle inner = nfs->lookup(nfs->root(), "below");
  EXPECT_EQ(nfs->read(nfs->lookup(nfs->lookup(inner, "dir"), "f"), 0, 10), "inside");
}

TEST_F(MountedExports, HaveTheirOwnOptionsBelowCrossmntToo) {
  start("rw,no_root_squash,crossmnt", "ro,no_root_squash");
  EXPECT_EQ(make_file_below(), NFS3ERR_ROFS);
}

TEST_F(MountedExports, BelowCrossmntThoseOfOtherClientsAreLikeNone) {
  start("rw,no_root_squash,crossmnt", "ro", "198.51.100.1");
  EXPECT_EQ(make_file_below(), NFS3_OK);
}

TEST_F(MountedExports, NohideShowsNothingThatIsMountedBelowIt) {
  Mounts::start(false);
  ExportOptions options = HarnessOptions::writable();
  options.nohide = true;
  nfs->export_with(options);
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3ERR_XDEV);
}

TEST_F(MountedExports, ThatAreNotForTheClientStayHidden) {
  start("rw", "rw,nohide", "198.51.100.1");
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3ERR_XDEV);
}

}  // namespace
}  // namespace nfsrdma::test
