// SPDX-License-Identifier: Apache-2.0
// File systems mounted below an export: hidden without crossmnt, part of it with.
#include "server/mount/mount_program.h"
#include "tests/support/mounted_tmpfs.h"
#include "tests/support/nfs3_harness.h"
#include "xdr/mount3.h"

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

/// crossmnt is an option of a client. The calls are those of 192.0.2.7.
class MountsForSome : public Mounts {
 protected:
  /// `clients` in the syntax of exports(5).
  void share(const std::string& clients) {
    if (!nfs) start(false);
    const ParsedExports parsed = parse_exports(top.path() + " " + clients + "\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    nfs->server().exports.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  xdr::mountstat3 mount(const std::string& path) {
    constexpr auto kMnt = static_cast<std::size_t>(xdr::mountproc3::MOUNTPROC3_MNT);
    const ProgramTable program = mount3_program();
    return nfs->call_row<xdr::mountres3>(program.procedures[kMnt], xdr::dirpath{path})
        .res.fhs_status;
  }
  const std::string theirs_ = "198.51.100.1(rw,crossmnt) *(rw,no_root_squash)";
};

TEST_F(MountsForSome, AreNotCrossedByOthers) {
  share(theirs_);
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3ERR_XDEV);
  share("192.0.2.7(rw,crossmnt) *(rw)");
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3_OK);
}

TEST_F(MountsForSome, AreNotMountedByOthers) {
  share(theirs_);
  EXPECT_EQ(mount(below + "/dir"), xdr::mountstat3::MNT3ERR_ACCES);
  share("192.0.2.7(rw,crossmnt) *(rw)");
  EXPECT_EQ(mount(below + "/dir"), xdr::mountstat3::MNT3_OK);
}

TEST_F(MountsForSome, HandlesInThemAreStaleForOthers) {
  share("192.0.2.7(rw,no_root_squash,crossmnt)");
  const FileHandle mount = nfs->lookup(nfs->root(), "below");
  const FileHandle file = nfs->lookup(nfs->lookup(mount, "dir"), "f");
  share(theirs_);
  EXPECT_EQ(nfs->getattr(file).status, NFS3ERR_STALE);
  EXPECT_EQ(nfs->lookup_status(mount, ".."), NFS3ERR_STALE);
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

TEST_F(MountedExports, AreNotSeenBelowCrossmntOfOtherClients) {
  start("rw", "rw");
  const ParsedExports parsed =
      parse_exports(top.path() + " 198.51.100.1(rw,crossmnt) *(rw)\n" + below + " *(rw)\n", "test");
  ConfigProblems problems;
  nfs->server().exports.reload(parsed.entries, &problems);
  EXPECT_EQ(nfs->lookup_status(nfs->root(), "below"), NFS3ERR_XDEV);
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

/// MNT of a directory in an export that lies in another one, on one file system.
class InnerExports : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(nfs.path("home")); }
  /// Who may use the outer and the inner one. The calls are those of 192.0.2.7.
  void share(const std::string& outer, const std::string& inner) {
    const ParsedExports parsed = parse_exports(
        nfs.directory() + " " + outer + "\n" + nfs.path("home") + " " + inner + "\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    nfs.server().exports.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  Reply<xdr::mountres3> mount(const std::string& path) {
    constexpr auto kMnt = static_cast<std::size_t>(xdr::mountproc3::MOUNTPROC3_MNT);
    const ProgramTable program = mount3_program();
    return nfs.call_row<xdr::mountres3>(program.procedures[kMnt], xdr::dirpath{path});
  }
  /// The path of the export that the mounted directory is part of; "": it was not mounted.
  std::string mounted(const std::string& path) {
    const auto reply = mount(path);
    if (reply.res.fhs_status != xdr::mountstat3::MNT3_OK) return {};
    HandleParts parts;
    EXPECT_TRUE(nfs.server().handles.open(reply.res.mountinfo.fhandle, &parts));
    return nfs.server().exports.current().find(parts.export_id)->path;
  }
  Nfs3Harness nfs;
};

TEST_F(InnerExports, AreMountedByWhomTheyAreFor) {
  share("*(ro)", "192.0.2.7(rw)");
  EXPECT_EQ(mounted(nfs.path("home")), nfs.path("home"));
}

TEST_F(InnerExports, AreMountedByOthersAsPartOfTheOuterOne) {
  share("*(ro)", "198.51.100.1(rw)");
  EXPECT_EQ(mounted(nfs.path("home")), nfs.directory());
  EXPECT_EQ(mounted(nfs.path("none")), "");
}

TEST_F(InnerExports, AreRefusedWhenBothAreForOthers) {
  share("198.51.100.1(ro)", "198.51.100.1(rw)");
  EXPECT_EQ(mount(nfs.path("home")).res.fhs_status, xdr::mountstat3::MNT3ERR_ACCES);
}

TEST_F(InnerExports, AreRefusedFromAWrongPortThoughTheOuterOneIsNot) {
  nfs.connection().set_transport(TransportKind::kTcp);
  nfs.connection().set_peer(SocketAddress::parse("192.0.2.7", 40000).value());
  share("*(ro,insecure)", "192.0.2.7(rw)");
  EXPECT_EQ(mount(nfs.path("home")).res.fhs_status, xdr::mountstat3::MNT3ERR_ACCES);
  EXPECT_EQ(mounted(nfs.directory()), nfs.directory());
}

}  // namespace
}  // namespace nfsrdma::test
