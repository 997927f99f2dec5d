// SPDX-License-Identifier: Apache-2.0
// File handles from outside: forged, stale, after renames and restarts, in both schemes.
#include <fcntl.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Handles : public ::testing::TestWithParam<SchemeChoice> {
 protected:
  static HarnessOptions options() {
    HarnessOptions out;
    out.scheme = GetParam();
    return out;
  }
  Nfs3Harness nfs{options()};
};

INSTANTIATE_TEST_SUITE_P(BothSchemes, Handles,
                         ::testing::Values(SchemeChoice::kBest, SchemeChoice::kInode),
                         [](const auto& scheme) {
                           return scheme.param == SchemeChoice::kBest ? "Best" : "Inode";
                         });

TEST_P(Handles, EveryFlippedBitIsABadHandle) {
  const FileHandle good = nfs.create(nfs.root(), "f");
  for (unsigned bit = 0; bit < good.size * 8u; ++bit) {
    FileHandle forged = good;
    forged.data[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_EQ(nfs.getattr(forged).status, NFS3ERR_BADHANDLE) << bit;
  }
}

TEST_P(Handles, EveryTruncationIsABadHandle) {
  const FileHandle good = nfs.create(nfs.root(), "f");
  for (std::uint8_t size = 0; size < good.size; ++size) {
    FileHandle cut = good;
    cut.size = size;
    EXPECT_EQ(nfs.getattr(cut).status, NFS3ERR_BADHANDLE) << unsigned{size};
  }
}

TEST_P(Handles, AnotherServersHandleIsABadHandle) {
  Nfs3Harness other(options());
  const FileHandle foreign = other.create(other.root(), "f");
  EXPECT_EQ(nfs.getattr(foreign).status, NFS3ERR_BADHANDLE);
}

TEST_P(Handles, NodesOfThePseudoFileSystemAreStale) {
  HandleParts parts = HandleParts::of_pseudo_node(4711);
  const FileHandle node = nfs.server().handles.seal(parts);
  // As no server makes it: with the id of a real export.
  parts.export_id = nfs.server().exports.current().exports.at(0)->id;
  const FileHandle inside = nfs.server().handles.seal(parts);
  const FileHandle file = nfs.create(nfs.root(), "f");
  for (const FileHandle& handle : {node, inside}) {
    EXPECT_EQ(nfs.getattr(handle).status, NFS3ERR_STALE);
    EXPECT_EQ(nfs.lookup_status(handle, "f"), NFS3ERR_STALE);
    EXPECT_EQ(nfs.read(handle, 0, 1), "error 70");
    EXPECT_EQ(nfs.write(handle, 0, "x"), NFS3ERR_STALE);
    EXPECT_EQ(nfs.remove(handle, "f"), NFS3ERR_STALE);
    EXPECT_EQ(nfs.rename(nfs.root(), "f", handle, "g"), NFS3ERR_STALE);
    EXPECT_EQ(nfs.rename(handle, "f", nfs.root(), "g"), NFS3ERR_STALE);
  }
  EXPECT_EQ(nfs.getattr(file).status, NFS3_OK);
}

TEST_P(Handles, HandlesOutliveARestart) {
  const FileHandle dir = nfs.mkdir(nfs.root(), "d");
  const FileHandle file = nfs.create(dir, "f");
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  const FileHandle root = nfs.root();
  nfs.restart();
  EXPECT_EQ(nfs.root(), root);
  EXPECT_EQ(nfs.read(file, 0, 1), "x");
  EXPECT_EQ(nfs.lookup(dir, "f"), file);
}

TEST_P(Handles, HandlesOutliveRenamesByClientsAndARestart) {
  const FileHandle a = nfs.mkdir(nfs.root(), "a");
  const FileHandle b = nfs.mkdir(nfs.root(), "b");
  const FileHandle file = nfs.create(a, "f");
  ASSERT_EQ(nfs.rename(a, "f", b, "g"), NFS3_OK);
  ASSERT_EQ(nfs.rename(nfs.root(), "b", a, "c"), NFS3_OK);
  nfs.restart();
  EXPECT_EQ(nfs.getattr(file).status, NFS3_OK);
  EXPECT_EQ(nfs.lookup(b, "g"), file);
}

TEST_P(Handles, RemovedFilesAreStale) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  ASSERT_EQ(nfs.remove(nfs.root(), "f"), NFS3_OK);
  EXPECT_EQ(nfs.getattr(file).status, NFS3ERR_STALE);
  EXPECT_EQ(nfs.read(file, 0, 1), "error 70");
  EXPECT_EQ(nfs.write(file, 0, "x"), NFS3ERR_STALE);
}

TEST_P(Handles, LocallyRemovedFilesAreStaleAtOnce) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  ASSERT_EQ(::unlink(nfs.path("f").c_str()), 0);
  EXPECT_EQ(nfs.read(file, 0, 1), "error 70");
}

TEST_P(Handles, AReplacementIsAnotherFile) {
  const FileHandle old_file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.remove(nfs.root(), "f"), NFS3_OK);
  const FileHandle new_file = nfs.create(nfs.root(), "f");
  EXPECT_FALSE(old_file == new_file);
  EXPECT_EQ(nfs.getattr(old_file).status, NFS3ERR_STALE);
  nfs.restart();
  EXPECT_EQ(nfs.getattr(old_file).status, NFS3ERR_STALE);
  EXPECT_EQ(nfs.getattr(new_file).status, NFS3_OK);
}

TEST_P(Handles, RemovedDirectoriesAreStale) {
  const FileHandle dir = nfs.mkdir(nfs.root(), "d");
  ASSERT_EQ(nfs.call<nfsproc3::NFSPROC3_RMDIR>({{nfs.fh(nfs.root()), "d"}}).status(), NFS3_OK);
  EXPECT_EQ(nfs.getattr(dir).status, NFS3ERR_STALE);
  EXPECT_EQ(nfs.lookup_status(dir, "x"), NFS3ERR_STALE);
}

TEST_P(Handles, HandlesWorkWhenTheCacheHasDroppedThem) {
  const FileHandle file = nfs.create(nfs.mkdir(nfs.root(), "d"), "f");
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  for (std::uint64_t i = 0; i < 4 * FdCache::kIdleSeconds; ++i)
    nfs.server().files.sweep();
  EXPECT_EQ(nfs.server().files.size(), 0u);
  EXPECT_EQ(nfs.read(file, 0, 1), "x");
}

TEST_P(Handles, AnExportThatIsGoneIsStale) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ConfigProblems problems;
  nfs.server().exports.reload({}, &problems);
  EXPECT_EQ(nfs.getattr(file).status, NFS3ERR_STALE);
}

TEST_P(Handles, AClientThatIsNotNamedIsRefused) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ExportEntry entry;
  entry.path = nfs.directory();
  ExportClient other;
  other.kind = ExportClient::Kind::kNetwork;
  other.prefix = 128;
  other.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 1};
  entry.clients.push_back(other);
  ConfigProblems problems;
  nfs.server().exports.reload({entry}, &problems);
  EXPECT_EQ(nfs.getattr(file).status, NFS3ERR_ACCES);
}

TEST_P(Handles, ALocallyHeldRemovedFileIsStillServedWithKernelHandles) {
  if (GetParam() != SchemeChoice::kBest || !nfs.acts_as_callers()) {
    GTEST_SKIP() << "needs the kernel's handles";
  }
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  std::ifstream held(nfs.path("f"));
  ASSERT_TRUE(held.good());
  ASSERT_EQ(::unlink(nfs.path("f").c_str()), 0);
  EXPECT_EQ(nfs.read(file, 0, 1), "x");
  held.close();
  EXPECT_EQ(nfs.read(file, 0, 1), "error 70");
}

/// The number of a removed file belongs to a new one soon. ext4 calls it ENOMEM to open the old
/// one's handle while that is under way; the client would come back after seconds.
TEST_P(Handles, RemovedFilesAreStaleWhileOthersGetTheirNumbers) {
  std::atomic<bool> enough = false;
  const std::string churned = nfs.path("churned");
  std::thread others([&] {
    while (!enough) {
      const UniqueFd fd(::open(churned.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
      ::unlink(churned.c_str());
    }
  });
  std::map<nfsstat3, int> answers;
  for (int i = 0; i < 100; ++i) {
    const FileHandle file = nfs.create(nfs.root(), "f");
    EXPECT_EQ(::unlink(nfs.path("f").c_str()), 0);
    for (int again = 0; again < 20; ++again)
      ++answers[nfs.getattr(file).status];
  }
  enough = true;
  others.join();
  EXPECT_EQ(answers, (std::map<nfsstat3, int>{{NFS3ERR_STALE, 2'000}}));
}

TEST_P(Handles, LocallyMovedFilesKeepTheirHandle) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(::rename(nfs.path("f").c_str(), nfs.path("g").c_str()), 0);
  EXPECT_EQ(nfs.getattr(file).status, NFS3_OK);
  EXPECT_EQ(nfs.lookup(nfs.root(), "g"), file);
  nfs.restart();
  EXPECT_EQ(nfs.getattr(file).status, NFS3_OK);
}

}  // namespace
}  // namespace nfsrdma::test
