// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using xdr::data_content4;
using xdr::IO_ADVISE_type4;

class Space : public ::testing::Test {
 protected:
  Open4 file_with(std::string_view content) {
    const Open4 file = nfs.open(nfs.root(), "f");
    EXPECT_EQ(file.status, NFS4_OK);
    EXPECT_EQ(nfs.write(file, 0, content), NFS4_OK);
    return file;
  }
  nfsstat4 allocate(const Open4& file, std::uint64_t offset, std::uint64_t length) {
    return nfs.on<OP_ALLOCATE>(file.handle, {file.stateid, offset, length}).status;
  }
  nfsstat4 deallocate(const Open4& file, std::uint64_t offset, std::uint64_t length) {
    return nfs.on<OP_DEALLOCATE>(file.handle, {file.stateid, offset, length}).status;
  }
  /// "offset", "offset eof" or "error N".
  std::string seek(const Open4& file, std::uint64_t offset, data_content4 what) {
    const auto reply = nfs.on<OP_SEEK>(file.handle, {file.stateid, offset, what});
    if (reply.status != NFS4_OK) {
      return "error " + std::to_string(static_cast<unsigned>(reply.status));
    }
    const auto found = reply.get<OP_SEEK>().resok4;
    return std::to_string(found.sr_offset) + (found.sr_eof ? " eof" : "");
  }
  Nfs4Harness nfs;
  static constexpr auto kData = data_content4::NFS4_CONTENT_DATA;
  static constexpr auto kHole = data_content4::NFS4_CONTENT_HOLE;
};

TEST_F(Space, AllocateTakesTheBlocksAndGrowsTheFile) {
  const Open4 file = file_with("x");
  const std::uint64_t before = nfs.change(file.handle);
  const Reply4 reply = nfs.on<OP_ALLOCATE>(file.handle, {file.stateid, 0, 1 << 20});
  EXPECT_EQ(reply.status, NFS4_OK);
  EXPECT_TRUE(reply.waited_for_disk);
  const struct stat st = stat_of(nfs.path("f"));
  EXPECT_EQ(st.st_size, 1 << 20);
  EXPECT_GE(st.st_blocks * 512, 1 << 20);
  EXPECT_GT(nfs.change(file.handle), before);
  EXPECT_EQ(content_of(nfs.path("f")).substr(0, 2), std::string("x\0", 2));
}

TEST_F(Space, AnAsyncExportDoesNotWait) {
  const Open4 file = file_with("x");
  ExportOptions options = HarnessOptions::writable();
  options.sync = false;
  nfs.export_with(options);
  const Reply4 reply = nfs.on<OP_ALLOCATE>(file.handle, {file.stateid, 0, 4096});
  EXPECT_EQ(reply.status, NFS4_OK);
  EXPECT_FALSE(reply.waited_for_disk);
}

TEST_F(Space, DeallocateMakesAHole) {
  const Open4 file = file_with(std::string(256 << 10, 'x'));
  EXPECT_EQ(deallocate(file, 64 << 10, 64 << 10), NFS4_OK);
  EXPECT_EQ(seek(file, 0, kHole), std::to_string(64 << 10));
  EXPECT_EQ(seek(file, 64 << 10, kHole), std::to_string(64 << 10));
  EXPECT_EQ(seek(file, 64 << 10, kData), std::to_string(128 << 10));
  EXPECT_EQ(seek(file, 5, kData), "5");
  const std::string content = content_of(nfs.path("f"));
  EXPECT_EQ(content.size(), 256u << 10);
  EXPECT_EQ(content.substr(64 << 10, 64 << 10), std::string(64 << 10, '\0'));
  EXPECT_EQ(content[(64 << 10) - 1], 'x');
  EXPECT_EQ(content[128 << 10], 'x');
}

/// Whole blocks go; of those that are not in the range as a whole, the rest is zeros.
TEST_F(Space, DeallocateGivesZerosForPartsOfBlocks) {
  const Open4 file = file_with(std::string(64 << 10, 'x'));
  const auto blocks = stat_of(nfs.path("f")).st_blocks;
  EXPECT_EQ(deallocate(file, 5000, 40000), NFS4_OK);
  const std::string content = content_of(nfs.path("f"));
  EXPECT_EQ(content.substr(5000, 40000), std::string(40000, '\0'));
  EXPECT_EQ(content.substr(0, 5000), std::string(5000, 'x'));
  EXPECT_EQ(content.substr(45000), std::string((64 << 10) - 45000, 'x'));
  EXPECT_LE(stat_of(nfs.path("f")).st_blocks, blocks);
  // In a file that has blocks there, writes behind it are as ever.
  EXPECT_EQ(nfs.write(file, 6000, "new"), NFS4_OK);
  EXPECT_EQ(nfs.read(file, 5999, 5), std::string("\0new\0", 5));
}

TEST_F(Space, DeallocateLeavesTheSize) {
  const Open4 file = file_with("0123456789");
  EXPECT_EQ(deallocate(file, 5, 100), NFS4_OK);
  EXPECT_EQ(content_of(nfs.path("f")), std::string("01234\0\0\0\0\0", 10));
}

TEST_F(Space, RangesThatAreNone) {
  const Open4 file = file_with("x");
  EXPECT_EQ(allocate(file, 0, 0), NFS4ERR_INVAL);
  EXPECT_EQ(deallocate(file, 0, 0), NFS4ERR_INVAL);
  EXPECT_EQ(allocate(file, ~std::uint64_t{0}, 1), NFS4ERR_FBIG);
  EXPECT_EQ(allocate(file, 1, ~std::uint64_t{0}), NFS4ERR_FBIG);
  EXPECT_EQ(deallocate(file, std::uint64_t{1} << 62, std::uint64_t{1} << 62), NFS4ERR_FBIG);
}

TEST_F(Space, OnlyWritersChangeIt) {
  file_with("x");
  nfs.session = nfs.connect("second");
  const Open4 reader = nfs.open(nfs.root(), "f", xdr::OPEN4_SHARE_ACCESS_READ, false);
  EXPECT_EQ(allocate(reader, 0, 1), NFS4ERR_OPENMODE);
  EXPECT_EQ(deallocate(reader, 0, 1), NFS4ERR_OPENMODE);
  EXPECT_EQ(seek(reader, 0, kData), "0");
  xdr::stateid4 wrong = reader.stateid;
  wrong.other[3] ^= std::byte{0x55};
  EXPECT_EQ(nfs.on<OP_SEEK>(reader.handle, {wrong, 0, kData}).status, NFS4ERR_BAD_STATEID);
}

TEST_F(Space, AReadOnlyExportRefuses) {
  const Open4 file = file_with("x");
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  EXPECT_EQ(allocate(file, 0, 1), NFS4ERR_ROFS);
  EXPECT_EQ(seek(file, 0, kData), "0");
}

TEST_F(Space, OnlyFilesHaveAny) {
  ASSERT_EQ(::symlink("f", nfs.path("link").c_str()), 0);
  ASSERT_EQ(::mkfifo(nfs.path("fifo").c_str(), 0666), 0);
  for (const FileHandle& other :
       {nfs.root(), nfs.lookup(nfs.root(), "link"), nfs.lookup(nfs.root(), "fifo")}) {
    EXPECT_EQ(nfs.on<OP_ALLOCATE>(other, {{}, 0, 1}).status, NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(nfs.on<OP_DEALLOCATE>(other, {{}, 0, 1}).status, NFS4ERR_WRONG_TYPE);
  }
  EXPECT_EQ(nfs.on<OP_SEEK>(nfs.root(), {{}, 0, kData}).status, NFS4ERR_ISDIR);
  EXPECT_EQ(nfs.on<OP_SEEK>(nfs.lookup(nfs.root(), "link"), {{}, 0, kData}).status,
            NFS4ERR_SYMLINK);
  EXPECT_EQ(nfs.on<OP_SEEK>(nfs.lookup(nfs.root(), "fifo"), {{}, 0, kData}).status,
            NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(nfs.run(Operations4().add<OP_PUTROOTFH>().add<OP_SEEK>()).status, NFS4ERR_ISDIR);
}

TEST_F(Space, TheEndIsAHole) {
  const Open4 file = file_with("0123456789");
  EXPECT_EQ(seek(file, 3, kHole), "10 eof");
  EXPECT_EQ(seek(file, 10, kHole), "error 6");  // NFS4ERR_NXIO
  EXPECT_EQ(seek(file, 10, kData), "error 6");
  EXPECT_EQ(seek(file, ~std::uint64_t{0}, kData), "error 6");
  ASSERT_EQ(::truncate(nfs.path("f").c_str(), 1 << 20), 0);
  EXPECT_EQ(seek(file, 512 << 10, kData), std::to_string(1 << 20) + " eof");
  EXPECT_EQ(seek(file, 0, static_cast<data_content4>(7)), "error 10090");  // UNION_NOTSUPP
}

TEST_F(Space, AdviceThatIsTakenIsNamed) {
  const Open4 file = file_with("0123456789");
  xdr::IO_ADVISE4args args{file.stateid, 0, 0, {}};
  for (const auto hint :
       {IO_ADVISE_type4::IO_ADVISE4_SEQUENTIAL, IO_ADVISE_type4::IO_ADVISE4_WILLNEED,
        IO_ADVISE_type4::IO_ADVISE4_INIT_PROXIMITY}) {
    args.iaa_hints.set(hint);
  }
  const Reply4 reply = nfs.on<OP_IO_ADVISE>(file.handle, args);
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_IO_ADVISE>().resok4.ior_hints,
            xdr::bitmap4::of({IO_ADVISE_type4::IO_ADVISE4_WILLNEED}));
  args.iaa_offset = ~std::uint64_t{0};
  EXPECT_EQ(nfs.on<OP_IO_ADVISE>(file.handle, args).status, NFS4ERR_INVAL);
}

TEST_F(Space, AdviceThatContradictsItselfOrIsNoneIsNoError) {
  const Open4 file = file_with("0123456789");
  const auto advise = [&](const xdr::bitmap4& hints) {
    const Reply4 reply = nfs.on<OP_IO_ADVISE>(file.handle, {file.stateid, 0, 5, hints});
    EXPECT_EQ(reply.status, NFS4_OK);
    return xdr::bitmap4(reply.get<OP_IO_ADVISE>().resok4.ior_hints);
  };
  const auto kNormal = xdr::bitmap4::of({IO_ADVISE_type4::IO_ADVISE4_NORMAL});
  EXPECT_EQ(advise(xdr::bitmap4::of(
                {IO_ADVISE_type4::IO_ADVISE4_SEQUENTIAL, IO_ADVISE_type4::IO_ADVISE4_RANDOM})),
            kNormal);
  EXPECT_EQ(advise(xdr::bitmap4::of({static_cast<IO_ADVISE_type4>(40)})), kNormal);
  EXPECT_EQ(advise({}), kNormal);
  EXPECT_EQ(nfs.read(file, 0, 10), "0123456789");
}

TEST_F(Space, MinorVersion1HasNoneOfIt) {
  const Open4 file = file_with("x");
  nfs.session = nfs.connect("old", 1);
  EXPECT_EQ(nfs.on<OP_SEEK>(file.handle, {{}, 0, kData}).status, NFS4ERR_OP_ILLEGAL);
}

}  // namespace
}  // namespace nfsrdma::test
