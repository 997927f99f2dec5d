// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <atomic>
#include <optional>

#include "tests/support/failed_sync.h"
#include "tests/support/faulty_buffer.h"
#include "tests/support/full_cache.h"
#include "tests/support/held_calls.h"
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

using xdr::stable_how;

class ReadWrite : public ::testing::Test {
 protected:
  Nfs3Harness nfs;
};

TEST_F(ReadWrite, WhatWasWrittenIsRead) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.write(file, 0, "hello"), NFS3_OK);
  EXPECT_EQ(nfs.write(file, 5, " world"), NFS3_OK);
  EXPECT_EQ(nfs.read(file, 0, 100), "hello world");
  EXPECT_EQ(content_of(nfs.path("f")), "hello world");
}

TEST_F(ReadWrite, ReadGivesTheRangeAskedFor) {
  put_file(nfs.path("f"), "0123456789");
  EXPECT_EQ(nfs.read(nfs.lookup(nfs.root(), "f"), 3, 4), "3456");
}

TEST_F(ReadWrite, EofIsSetExactlyAtTheEnd) {
  put_file(nfs.path("f"), "0123456789");
  const FileHandle file = nfs.lookup(nfs.root(), "f");
  auto eof = [&](std::uint64_t offset, std::uint32_t count) {
    return nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(file), offset, count}).res.resok.eof;
  };
  EXPECT_FALSE(eof(0, 9));
  EXPECT_TRUE(eof(0, 10));
  EXPECT_TRUE(eof(0, 11));
  EXPECT_TRUE(eof(10, 1));
}

TEST_F(ReadWrite, ReadBehindTheEndIsEmpty) {
  put_file(nfs.path("f"), "x");
  const FileHandle file = nfs.lookup(nfs.root(), "f");
  EXPECT_EQ(nfs.read(file, 1000, 10), "");
  EXPECT_EQ(nfs.read(file, ~std::uint64_t{0}, 10), "");
}

/// Linux's client takes what is missing before the end of the file that it knows for zeros.
TEST_F(ReadWrite, AnErrorInTheMiddleIsNotTheEndOfTheFile) {
  put_file(nfs.path("f"), std::string(FaultyBuffer::kSize, 'x'));
  const FileHandle file = nfs.lookup(nfs.root(), "f");
  const FaultyBuffer faulty(nfs.connection().buffers());
  auto reply = nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(file), 0, FaultyBuffer::kSize});
  EXPECT_EQ(reply.status(), NFS3_OK);
  EXPECT_EQ(reply.res.resok.count, FaultyBuffer::kGood);
  EXPECT_FALSE(reply.res.resok.eof);
}

TEST_F(ReadWrite, ReadGivesNoMoreThanRtmax) {
  const FileHandle file = nfs.create(nfs.root(), "big");
  EXPECT_EQ(::truncate(nfs.path("big").c_str(), 8 << 20), 0);
  auto reply = nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(file), 0, 4u << 20});
  EXPECT_EQ(reply.res.resok.count, nfs.server().rtmax());
  EXPECT_FALSE(reply.res.resok.eof);
}

TEST_F(ReadWrite, CachedDataIsReadOnTheShard) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, std::string(1 << 20, 'x')), NFS3_OK);
  auto reply = nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(file), 0, 1u << 20});
  EXPECT_EQ(reply.res.resok.count, 1u << 20);
  EXPECT_FALSE(reply.ran_on_worker);
}

/// The first reads go both ways by turns (server/files/read_costs.h).
class ReadPages : public ReadWrite {
 protected:
  static constexpr std::uint32_t kSize = 1 << 20;
  static constexpr int kReads = 8;

  ReadPages() {
    for (std::size_t i = 0; i < text.size(); ++i)
      text[i] = static_cast<char>('a' + (i / 4099) % 25);
    put_file(nfs.path("f"), text);
    nfs.connection().file_pages = true;
  }
  /// How many of kReads showed pages; all have the right data.
  int shown(std::uint64_t offset, std::uint32_t count) {
    const FileHandle file = nfs.lookup(nfs.root(), "f");
    int shown = 0;
    for (int i = 0; i < kReads; ++i) {
      auto reply = nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(file), offset, count});
      const std::string wanted = text.substr(offset, count);
      EXPECT_EQ(reply.status(), NFS3_OK);
      EXPECT_TRUE(as_text(reply.res.resok.data.bytes) == wanted);
      EXPECT_EQ(reply.res.resok.count, wanted.size());
      EXPECT_EQ(reply.res.resok.eof, offset + count >= text.size());
      EXPECT_FALSE(reply.ran_on_worker);
      EXPECT_EQ(nfs.connection().buffers().in_use(), 0u);
      shown += reply.shows_pages ? 1 : 0;
    }
    return shown;
  }

  std::string text = std::string(kSize + 5000, '\0');
};

TEST_F(ReadPages, LargeReadsShowThePagesOfTheFile) {
  EXPECT_EQ(shown(0, kSize), kReads / 2);
}
TEST_F(ReadPages, UpToTheMiddleOfTheLastPage) {
  EXPECT_EQ(shown(kSize / 2, kSize), kReads / 2);
}
TEST_F(ReadPages, SmallAndUnevenOnesAreCopied) {
  EXPECT_EQ(shown(0, 64 << 10), 0);
  EXPECT_EQ(shown(1000, kSize), 0);
}
TEST_F(ReadPages, SoAreThoseOfConnectionsThatLookAtThem) {
  nfs.connection().file_pages = false;
  EXPECT_EQ(shown(0, kSize), 0);
}
TEST_F(ReadPages, SoAreThoseOfAServerThatIsNotToShowAny) {
  nfs.server().read_costs.never_pages();
  EXPECT_EQ(shown(0, kSize), 0);
}
TEST_F(ReadPages, ACallerWhoMayOnlyReadTheFileSeesItAsWell) {
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 0444), 0);
  nfs.set_caller(user(12345, 12345));
  EXPECT_EQ(shown(0, kSize), kReads / 2);
}

/// The kernel says of a file that all of it is in the page cache, when it is neither the caller's
/// nor one that he may write: the shard would wait for the disk.
TEST_F(ReadPages, WhatIsNotCachedIsLeftToAWorkerForEveryCaller) {
  ASSERT_EQ(::truncate(nfs.path("f").c_str(), 0), 0);
  ASSERT_EQ(::truncate(nfs.path("f").c_str(), kSize), 0);
  ASSERT_EQ(::chmod(nfs.path("f").c_str(), 0444), 0);
  const FileHandle file = nfs.lookup(nfs.root(), "f");
  for (std::uint32_t uid : {0u, 12345u, 0u, 12345u}) {
    nfs.set_caller(user(uid, uid));
    auto reply = nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(file), 0, kSize});
    EXPECT_EQ(reply.res.resok.count, kSize);
    EXPECT_FALSE(reply.shows_pages) << uid;
    UniqueFd drop(::open(nfs.path("f").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::posix_fadvise(drop.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
}

TEST_F(ReadWrite, ReadOfADirectoryIsRefused) {
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_READ>({nfs.fh(nfs.root()), 0, 10}).status(), NFS3ERR_ISDIR);
}

TEST_F(ReadWrite, WriteBehind64BitsOfOffsetIsTooBig) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.write(file, ~std::uint64_t{0} - 2, "abc"), NFS3ERR_FBIG);
}

TEST_F(ReadWrite, WriteWithLessDataThanCountIsGarbage) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  xdr::WRITE3args args;
  args.file = nfs.fh(file);
  args.count = 10;
  args.data.bytes = as_bytes("abc");
  EXPECT_EQ(nfs.call<nfsproc3::NFSPROC3_WRITE>(args).outcome, Outcome::kGarbageArgs);
}

/// What the client has written behind it, having the answer from the first one, would be lost.
TEST_F(ReadWrite, AWriteIsNotRunTwice) {
  const auto& rows = nfs3::program_table().procedures;
  EXPECT_EQ(rows[static_cast<std::size_t>(nfsproc3::NFSPROC3_WRITE)].replay,
            Replay::kCachedBriefly);
}

TEST_F(ReadWrite, WriteOfNothingSucceeds) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_EQ(nfs.write(file, 0, ""), NFS3_OK);
}

TEST_F(ReadWrite, UnstableDoesNotWaitAndOthersDo) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  for (auto [stable, waits] : {std::pair{stable_how::UNSTABLE, false},
                               {stable_how::DATA_SYNC, true},
                               {stable_how::FILE_SYNC, true}}) {
    xdr::WRITE3args args;
    args.file = nfs.fh(file);
    args.count = 3;
    args.stable = stable;
    args.data.bytes = as_bytes("abc");
    auto reply = nfs.call<nfsproc3::NFSPROC3_WRITE>(args);
    EXPECT_EQ(reply.waited_for_disk, waits);
    EXPECT_EQ(reply.res.resok.committed, stable);
  }
}

/// Or each file of an untarred tree stays open for seconds, and is synced once more.
TEST_F(ReadWrite, WhatIsOnTheDiskIsNotSyncedAgain) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  const FilePin entry = nfs.server().files.find(file);
  ASSERT_TRUE(entry);
  for (const stable_how stable : {stable_how::DATA_SYNC, stable_how::FILE_SYNC}) {
    EXPECT_EQ(nfs.write(file, 0, "abc", stable), NFS3_OK);
    EXPECT_FALSE(entry->unstable);
  }
  EXPECT_EQ(nfs.write(file, 0, "abc"), NFS3_OK);
  EXPECT_TRUE(entry->unstable);
  EXPECT_EQ(nfs.write(file, 0, "abc", stable_how::FILE_SYNC), NFS3_OK);
  EXPECT_TRUE(entry->unstable) << "of what was written before, COMMIT is to tell";
}

/// Its descriptor is closed when the call ends, and a write-back error could be lost with it.
TEST_F(ReadWrite, WhatTheCacheHasNoRoomForIsCommittedAtOnce) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  xdr::WRITE3args args;
  args.file = nfs.fh(file);
  args.count = 3;
  args.stable = stable_how::UNSTABLE;
  args.data.bytes = as_bytes("abc");
  {
    const std::vector<FilePin> others = leave_no_room(nfs.server().files, file);
    auto reply = nfs.call<nfsproc3::NFSPROC3_WRITE>(args);
    EXPECT_TRUE(reply.waited_for_disk);
    EXPECT_EQ(reply.res.resok.committed, stable_how::FILE_SYNC);
  }
  auto reply = nfs.call<nfsproc3::NFSPROC3_WRITE>(args);
  EXPECT_FALSE(reply.waited_for_disk);
  EXPECT_EQ(reply.res.resok.committed, stable_how::UNSTABLE);
}

TEST_F(ReadWrite, AsyncExportStillSyncsDataWhenAsked) {
  ExportOptions options = HarnessOptions::writable();
  options.sync = false;
  nfs.export_with(options);
  const FileHandle file = nfs.create(nfs.root(), "f");
  const std::uint64_t before = nfs.server().committer.stats().syncs;
  EXPECT_EQ(nfs.write(file, 0, "x", stable_how::FILE_SYNC), NFS3_OK);
  EXPECT_GT(nfs.server().committer.stats().syncs, before);
}

TEST_F(ReadWrite, CommitWaits) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  auto reply = nfs.call<nfsproc3::NFSPROC3_COMMIT>({nfs.fh(file), 0, 0});
  EXPECT_EQ(reply.status(), NFS3_OK);
  EXPECT_TRUE(reply.waited_for_disk);
}

TEST(SyncOfNamesAlone, IsLeftOutWithFsyncNever) {
  HarnessOptions options;
  options.sync_names = false;
  Nfs3Harness nfs(options);
  xdr::MKDIR3args args;
  args.where = {nfs.fh(nfs.root()), "d"};
  EXPECT_FALSE(nfs.call<nfsproc3::NFSPROC3_MKDIR>(args).waited_for_disk);
  const FileHandle file = nfs.create(nfs.root(), "f");
  EXPECT_TRUE(nfs.call<nfsproc3::NFSPROC3_COMMIT>({nfs.fh(file), 0, 0}).waited_for_disk);
}

TEST_F(ReadWrite, VerifierIsTheSameUntilARestart) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  auto verf = [&] {
    return nfs.call<nfsproc3::NFSPROC3_COMMIT>({nfs.fh(file), 0, 0}).res.resok.verf;
  };
  const auto first = verf();
  EXPECT_EQ(verf(), first);
  nfs.restart();
  EXPECT_NE(verf(), first);
}

TEST_F(ReadWrite, CommitAnswersWithTheVerifierAfterItsSync) {
  // Another file's sync failed meanwhile, and took the report of our lost data with it, maybe.
  const FileHandle file = nfs.create(nfs.root(), "f");
  const std::uint64_t before = nfs.server().verifier.value();
  nfs.during_commit = [&] { nfs.server().verifier.renew(); };
  auto reply = nfs.call<nfsproc3::NFSPROC3_COMMIT>({nfs.fh(file), 0, 0});
  EXPECT_EQ(load_be64(reply.res.resok.verf.data()), nfs.server().verifier.value());
  EXPECT_NE(load_be64(reply.res.resok.verf.data()), before);
}

TEST_F(ReadWrite, ACommitMeanwhileDoesNotHaveWhatIsWrittenBehindIt) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  const FilePin entry = nfs.server().files.find(file);
  ASSERT_TRUE(entry);
  std::atomic<bool> was_unstable{false};
  std::optional<HeldCalls> held;
  nfs.during_commit = [&] {  // on the thread that serves
    held.emplace(SYS_pwrite64, [&] { was_unstable = entry->unstable.exchange(false); });
  };
  ASSERT_EQ(nfs.call<nfsproc3::NFSPROC3_COMMIT>({nfs.fh(file), 0, 0}).status(), NFS3_OK);
  ASSERT_TRUE(held);
  nfs.during_commit = {};
  EXPECT_EQ(nfs.write(file, 0, "data"), NFS3_OK);
  EXPECT_TRUE(was_unstable);
  EXPECT_TRUE(entry->unstable) << "nobody would sync it before its descriptor is closed";
}

TEST_F(ReadWrite, WriteReportsTheVerifierFromBeforeItsSync) {
  // The other way round than COMMIT: should the sync fail, the client must see a difference later.
  const FileHandle file = nfs.create(nfs.root(), "f");
  const std::uint64_t before = nfs.server().verifier.value();
  nfs.during_commit = [&] { nfs.server().verifier.renew(); };
  xdr::WRITE3args args;
  args.file = nfs.fh(file);
  args.count = 1;
  args.stable = stable_how::FILE_SYNC;
  args.data.bytes = as_bytes("x");
  auto reply = nfs.call<nfsproc3::NFSPROC3_WRITE>(args);
  EXPECT_EQ(load_be64(reply.res.resok.verf.data()), before);
}

/// The kernel tells of lost pages once: the sync of whoever came later says that all is well.
TEST_F(ReadWrite, ASyncThatFailsMeanwhileFailsWhatWasToBeOnTheDisk) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  const FileHandle other = nfs.create(nfs.root(), "other");
  nfs.during_commit = [&] { fail_a_sync(nfs.server(), file); };
  EXPECT_EQ(nfs.write(other, 0, "x", stable_how::FILE_SYNC), NFS3_OK);
  auto reply = nfs.call<nfsproc3::NFSPROC3_COMMIT>({nfs.fh(file), 0, 0});
  EXPECT_EQ(load_be64(reply.res.resok.verf.data()), nfs.server().verifier.value());
  nfs.commit_error = EIO;  // the dispatcher makes the status of it
  for (const stable_how stable : {stable_how::DATA_SYNC, stable_how::FILE_SYNC})
    (void)nfs.write(file, 0, "x", stable);
  (void)nfs.setattr(file, {.mode = {true, 0600}});
  nfs.during_commit = {};
  nfs.commit_error = 0;
  EXPECT_EQ(nfs.write(file, 0, "x", stable_how::FILE_SYNC), NFS3_OK);
}

TEST_F(ReadWrite, WriteReportsAttributesBeforeAndAfter) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "abc"), NFS3_OK);
  xdr::WRITE3args args;
  args.file = nfs.fh(file);
  args.offset = 3;
  args.count = 2;
  args.data.bytes = as_bytes("de");
  auto reply = nfs.call<nfsproc3::NFSPROC3_WRITE>(args);
  ASSERT_TRUE(reply.res.resok.file_wcc.before.attributes_follow);
  EXPECT_EQ(reply.res.resok.file_wcc.before.attributes.size, 3u);
  EXPECT_EQ(reply.res.resok.file_wcc.after.attributes.size, 5u);
}

TEST_F(ReadWrite, ReadOnlyExportRefusesWriting) {
  const FileHandle file = nfs.create(nfs.root(), "f");
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  EXPECT_EQ(nfs.write(file, 0, "x"), NFS3ERR_ROFS);
  EXPECT_EQ(nfs.read(file, 0, 1), "");
}

TEST_F(ReadWrite, OwnerWritesAReadOnlyFileThatItCreated) {
  if (nfs.acts_as_callers()) nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "pack", 0444);
  EXPECT_EQ(nfs.write(file, 0, "data"), NFS3_OK);
  nfs.restart();  // also when no descriptor from its creation is left
  EXPECT_EQ(nfs.write(file, 4, "more"), NFS3_OK);
  EXPECT_EQ(nfs.getattr(file).resok.obj_attributes.mode, 0444u);
}

TEST_F(ReadWrite, OwnerReadsAFileWithoutPermissionBits) {
  if (nfs.acts_as_callers()) nfs.set_caller(user(1000, 1000));
  const FileHandle file = nfs.create(nfs.root(), "f", 0);
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  nfs.restart();
  EXPECT_EQ(nfs.read(file, 0, 1), "x");
}

class Strangers : public ReadWrite {
 protected:
  void SetUp() override {
    NFSRDMA_NEEDS_ROOT();
    nfs.set_caller(user(1000, 1000));
  }
  FileHandle file_with(std::uint32_t mode) {
    nfs.set_caller(user(1000, 1000));
    const FileHandle file = nfs.create(nfs.root(), "f" + std::to_string(mode), mode);
    EXPECT_EQ(nfs.write(file, 0, "secret"), NFS3_OK);
    return file;
  }
};

TEST_F(Strangers, ModeBitsDecideForOthers) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const FileHandle file = file_with(0600 | bits);
    nfs.set_caller(user(2000, 2000));
    const bool reads = (bits & 4) != 0 || (bits & 1) != 0;  // execute implies read
    EXPECT_EQ(nfs.read(file, 0, 6), reads ? "secret" : "error 13") << bits;
    EXPECT_EQ(nfs.write(file, 0, "s"), (bits & 2) != 0 ? NFS3_OK : NFS3ERR_ACCES) << bits;
  }
}

TEST_F(Strangers, GroupsCount) {
  const FileHandle file = file_with(0640);
  nfs.set_caller(user(2000, 2000, {5, 1000, 7}));
  EXPECT_EQ(nfs.read(file, 0, 6), "secret");
  nfs.set_caller(user(2000, 2000, {5, 7}));
  EXPECT_EQ(nfs.read(file, 0, 6), "error 13");
}

TEST_F(Strangers, ADescriptorOpenedByOneIsNotLentToAnother) {
  const FileHandle file = file_with(0600);
  EXPECT_EQ(nfs.read(file, 0, 6), "secret");
  nfs.set_caller(user(2000, 2000));
  EXPECT_EQ(nfs.read(file, 0, 6), "error 13");
  EXPECT_EQ(nfs.write(file, 0, "x"), NFS3ERR_ACCES);
}

TEST_F(Strangers, RevokedPermissionCountsAtOnce) {
  const FileHandle file = file_with(0644);
  nfs.set_caller(user(2000, 2000));
  ASSERT_EQ(nfs.read(file, 0, 6), "secret");
  ASSERT_EQ(::chmod(nfs.path("f" + std::to_string(0644)).c_str(), 0600), 0);
  EXPECT_EQ(nfs.read(file, 0, 6), "error 13");
}

TEST_F(Strangers, SetIdBitsFallOnAWriteByAnotherUser) {
  const FileHandle file = file_with(0666);
  const std::string path = nfs.path("f" + std::to_string(0666));
  ASSERT_EQ(::chmod(path.c_str(), 06777), 0);
  nfs.set_caller(user(2000, 2000));
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  EXPECT_EQ(stat_of(path).st_mode & 07777, 0777u);
}

TEST_F(Strangers, SetIdBitsFallOnAWriteByRoot) {
  const FileHandle file = file_with(0644);
  const std::string path = nfs.path("f" + std::to_string(0644));
  ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
  nfs.set_caller(user(0, 0));
  ASSERT_EQ(nfs.write(file, 0, "x"), NFS3_OK);
  EXPECT_EQ(stat_of(path).st_mode & 07777, 0755u);
}

TEST_F(Strangers, SetIdBitsFallOnTruncate) {
  const FileHandle file = file_with(0666);
  const std::string path = nfs.path("f" + std::to_string(0666));
  ASSERT_EQ(::chmod(path.c_str(), 06777), 0);
  nfs.set_caller(user(2000, 2000));
  xdr::sattr3 values;
  values.size = {true, 0};
  ASSERT_EQ(nfs.setattr(file, values), NFS3_OK);
  EXPECT_EQ(stat_of(path).st_mode & 07777, 0777u);
}

TEST_F(Strangers, RootReadsEverything) {
  const FileHandle file = file_with(0600);
  nfs.set_caller(user(0, 0));
  EXPECT_EQ(nfs.read(file, 0, 6), "secret");
}

TEST_F(Strangers, SquashedRootReadsNothingOfOthers) {
  const FileHandle file = file_with(0600);
  ExportOptions options = HarnessOptions::writable();
  options.root_squash = true;
  nfs.export_with(options);
  nfs.set_caller(user(0, 0));
  EXPECT_EQ(nfs.read(file, 0, 6), "error 13");
}

}  // namespace
}  // namespace nfsrdma::test
