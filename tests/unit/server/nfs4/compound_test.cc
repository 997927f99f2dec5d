// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/compound.h"

#include <atomic>
#include <cerrno>

#include "tests/support/failed_sync.h"
#include "tests/support/full_cache.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

class Compounds : public ::testing::Test {
 protected:
  Nfs4Harness nfs;
};

TEST_F(Compounds, WhatWasWrittenIsRead) {
  const Open4 file = nfs.open(nfs.root(), "f");
  ASSERT_EQ(file.status, NFS4_OK);
  EXPECT_EQ(nfs.write(file, 0, "hello world"), NFS4_OK);
  EXPECT_EQ(nfs.read(file, 6, 100), "world");
  EXPECT_EQ(content_of(nfs.path("f")), "hello world");
  EXPECT_EQ(nfs.close(file), NFS4_OK);
  EXPECT_EQ(nfs.read(file, 0, 1), "error 10025");  // NFS4ERR_BAD_STATEID
}

TEST_F(Compounds, TheFirstErrorEndsIt) {
  const Reply4 reply =
      nfs.run(Operations4().putfh(nfs.root()).add<OP_LOOKUP>({"nothing"}).add<OP_GETFH>());
  EXPECT_EQ(reply.status, NFS4ERR_NOENT);
  ASSERT_EQ(reply.results.size(), 3u);
  EXPECT_EQ(reply.results[2].number, OP_LOOKUP);
}

TEST_F(Compounds, WithoutASessionItsLengthIsBoundedAsWell) {
  Operations4 operations;
  for (int i = 0; i < 256; ++i)
    operations.add<OP_PUTROOTFH>();
  EXPECT_EQ(nfs.run_bare(operations, 0).status, NFS4_OK);
  const Reply4 longer = nfs.run_bare(operations.add<OP_PUTROOTFH>(), 0);
  EXPECT_EQ(longer.status, NFS4ERR_RESOURCE);
  EXPECT_TRUE(longer.results.empty());
}

TEST_F(Compounds, ARetryGetsTheReplyThatWasKept) {
  nfs.session.cache_this = true;
  xdr::REMOVE4args what{"f"};
  put_file(nfs.path("f"), "");
  const Reply4 first = nfs.on<OP_REMOVE>(nfs.root(), what);
  EXPECT_EQ(first.status, NFS4_OK);
  --nfs.session.sequence;
  const Reply4 second = nfs.on<OP_REMOVE>(nfs.root(), what);
  EXPECT_EQ(second.bytes, first.bytes);
  EXPECT_EQ(nfs.on<OP_REMOVE>(nfs.root(), what).status, NFS4ERR_NOENT);
}

TEST_F(Compounds, AFailedSyncIsTheErrorOfWhoWantedIt) {
  const Open4 file = nfs.open(nfs.root(), "f");
  nfs.during_commit = [] { return EIO; };
  const Reply4 reply =
      nfs.run(Operations4()
                  .putfh(file.handle)
                  .add<OP_WRITE>({file.stateid, 0, xdr::stable_how4::FILE_SYNC4, {as_bytes("x")}})
                  .add<OP_GETFH>());
  EXPECT_EQ(reply.status, NFS4ERR_IO);
  ASSERT_EQ(reply.results.size(), 3u);
  EXPECT_EQ(reply.results[2].number, OP_WRITE);
}

TEST_F(Compounds, EveryCommitOfOneSyncs) {
  std::vector<Open4> files;
  files.reserve(6);
  for (int i = 0; i < 6; ++i) {
    files.push_back(nfs.open(nfs.root(), "f" + std::to_string(i)));
    ASSERT_EQ(nfs.write(files.back(), 0, "x"), NFS4_OK);
  }
  const auto before = nfs.server().committer.stats().syncs;
  Operations4 operations;
  for (const Open4& file : files)
    operations.putfh(file.handle).add<OP_COMMIT>();
  EXPECT_EQ(nfs.run(operations).status, NFS4_OK);
  EXPECT_EQ(nfs.server().committer.stats().syncs - before, 6u);
}

/// The kernel tells of a lost write once per descriptor: the next fsync says that all is well.
TEST(CompoundsOnABadDisk, ASyncThatFailsOnTheWayIsNotForgotten) {
  static std::atomic<int> to_fail{0};
  HarnessOptions options;
  options.committer_calls = {[](int, bool) {
    if (to_fail.fetch_sub(1) <= 0) return 0;
    errno = EIO;
    return -1;
  }};
  Nfs4Harness nfs(options);
  std::vector<Open4> files;
  files.reserve(4);
  for (int i = 0; i < 4; ++i)
    files.push_back(nfs.open(nfs.root(), "f" + std::to_string(i)));
  Operations4 operations;
  operations.putfh(nfs.root()).add<OP_GETFH>();
  for (const Open4& file : files) {
    operations.putfh(file.handle)
        .add<OP_WRITE>({file.stateid, 0, xdr::stable_how4::FILE_SYNC4, {as_bytes("x")}});
  }
  to_fail = 1;
  const Reply4 reply = nfs.run(operations);
  EXPECT_EQ(reply.status, NFS4ERR_IO);
  ASSERT_EQ(reply.results.size(), 5u) << "SEQUENCE, PUTFH, GETFH, PUTFH and the first WRITE";
  EXPECT_EQ(reply.results.back().number, OP_WRITE);
  EXPECT_FALSE(reply.waited_for_disk);
  to_fail = 0;
  EXPECT_EQ(nfs.run(operations).status, NFS4_OK);
}

/// The kernel tells of lost pages once: the sync of whoever came later says that all is well.
TEST_F(Compounds, ASyncThatFailsMeanwhileFailsWhatWasToBeOnTheDisk) {
  const Open4 file = nfs.open(nfs.root(), "f");
  nfs.during_commit = [&] {
    fail_a_sync(nfs.server(), file.handle);
    return 0;
  };
  const xdr::WRITE4args args{file.stateid, 0, xdr::stable_how4::FILE_SYNC4, {as_bytes("x")}};
  EXPECT_EQ(nfs.on<OP_WRITE>(file.handle, args).status, NFS4ERR_IO);
  const auto committed = nfs.on<OP_COMMIT>(file.handle, {});
  ASSERT_EQ(committed.status, NFS4_OK);
  EXPECT_EQ(load_be64(committed.get<OP_COMMIT>().resok4.writeverf.data()),
            nfs.server().verifier.value());
}

TEST_F(Compounds, WhatTheCacheHasNoRoomForIsCommittedAtOnce) {
  const Open4 file = nfs.open(nfs.root(), "f");
  const xdr::WRITE4args args{file.stateid, 0, xdr::stable_how4::UNSTABLE4, {as_bytes("x")}};
  const std::vector<FilePin> others = leave_no_room(nfs.server().files, file.handle);
  const Reply4 reply = nfs.on<OP_WRITE>(file.handle, args);
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_TRUE(reply.waited_for_disk);
  EXPECT_EQ(reply.get<OP_WRITE>().resok4.committed, xdr::stable_how4::FILE_SYNC4);
}

TEST_F(Compounds, ASavedHandleKnowsWhatChangedMeanwhile) {
  const Open4 file = nfs.open(nfs.root(), "f");
  const Reply4 reply =
      nfs.run(Operations4()
                  .putfh(file.handle)
                  .add<OP_SAVEFH>()
                  .add<OP_WRITE>({file.stateid, 0, xdr::stable_how4::UNSTABLE4, {as_bytes("new")}})
                  .add<OP_RESTOREFH>()
                  .add<OP_READ>({file.stateid, 0, 10}));
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(as_text(reply.get<OP_READ>().resok4.data.bytes), "new");
}

TEST_F(Compounds, ACurrentStateidThatNobodyMadeIsNone) {
  const Open4 file = nfs.open(nfs.root(), "f");
  ASSERT_EQ(nfs.close(file), NFS4_OK);
  xdr::stateid4 current{};
  current.seqid = 1;
  EXPECT_EQ(
      nfs.on<OP_WRITE>(file.handle, {current, 0, xdr::stable_how4::UNSTABLE4, {as_bytes("x")}})
          .status,
      NFS4ERR_BAD_STATEID);
}

TEST_F(Compounds, AnExclusiveCreateSaysEachTimeWhereItsVerifierIs) {
  xdr::OPEN4args args;
  args.share_access = xdr::OPEN4_SHARE_ACCESS_BOTH | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.owner = {nfs.session.client, as_bytes("owner")};
  args.claim.file = "x";
  args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  args.openhow.how.mode = xdr::createmode4::EXCLUSIVE4_1;
  args.openhow.how.ch_createboth.cva_verf.fill(std::byte{0x11});
  for (int i = 0; i < 2; ++i) {
    const Reply4 reply = nfs.run(Operations4().putfh(nfs.root()).add<OP_OPEN>(args));
    ASSERT_EQ(reply.status, NFS4_OK);
    EXPECT_TRUE(
        reply.get<OP_OPEN>().resok4.attrset.has(xdr::fattr4_number::FATTR4_TIME_MODIFY_SET));
  }
}

TEST_F(Compounds, ManyReadsOfOneCompoundKeepTheirData) {
  const Open4 file = nfs.open(nfs.root(), "f");
  ASSERT_EQ(nfs.write(file, 0, "0123456789"), NFS4_OK);
  Operations4 operations;
  operations.putfh(file.handle);
  for (std::uint64_t i = 0; i < 10; ++i)
    operations.add<OP_READ>({file.stateid, i, 1});
  const Reply4 reply = nfs.run(operations);
  ASSERT_EQ(reply.status, NFS4_OK);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(as_text(reply.get<OP_READ>(i).resok4.data.bytes), std::to_string(i));
  }
}

/// "Later" would have the client come again for ever.
TEST_F(Compounds, ReadsThatTogetherAreTooLongSaySo) {
  const Open4 file = nfs.open(nfs.root(), "f");
  ASSERT_EQ(file.status, NFS4_OK);
  ASSERT_EQ(::truncate(nfs.path("f").c_str(), 1 << 20), 0);
  Operations4 operations;
  operations.putfh(file.handle);
  for (int i = 0; i < 5; ++i)
    operations.add<OP_READ>({xdr::stateid4{}, 0, 1u << 20});
  const Reply4 old = nfs.run_bare(operations, 0);
  EXPECT_EQ(old.status, NFS4ERR_RESOURCE);
  EXPECT_EQ(old.results.size(), 6u) << "PUTFH, four READs, and the one too many";
  EXPECT_EQ(nfs.run(operations).status, NFS4ERR_REP_TOO_BIG);
}

/// The first reads go both ways by turns (server/files/read_costs.h).
TEST_F(Compounds, PagesOfAFileArePayloadOfOneReadAlone) {
  nfs.connection().file_pages = true;
  constexpr std::uint32_t kPiece = 128 << 10;
  std::string text(2 * kPiece, '\0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>('a' + (i / 4099) % 25);
  put_file(nfs.path("f"), text);
  const Open4 file = nfs.open(nfs.root(), "f", xdr::OPEN4_SHARE_ACCESS_READ, false);
  auto reads = [&](int count) {
    Operations4 operations;
    operations.putfh(file.handle);
    for (int i = 0; i < count; ++i)
      operations.add<OP_READ>(
          {file.stateid, std::uint64_t{kPiece} * static_cast<unsigned>(i), kPiece});
    const Reply4 reply = nfs.run(operations);
    EXPECT_EQ(reply.status, NFS4_OK);
    for (int i = 0; i < count; ++i) {
      const auto& result = reply.get<OP_READ>(static_cast<std::size_t>(i)).resok4;
      const std::size_t at = std::size_t{kPiece} * static_cast<unsigned>(i);
      EXPECT_TRUE(as_text(result.data.bytes) == text.substr(at, kPiece)) << i;
      EXPECT_EQ(result.eof, i == 1);
    }
    return reply.shows_pages;
  };
  EXPECT_FALSE(reads(1));
  EXPECT_TRUE(reads(1));
  EXPECT_FALSE(reads(1));
  EXPECT_FALSE(reads(2));  // shown, then copied to where the second one has room
}

}  // namespace
}  // namespace nfsrdma::test
