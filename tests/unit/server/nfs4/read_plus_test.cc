// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "rpcrdma/base/unique_fd.h"
#include "tests/support/faulty_buffer.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using xdr::data_content4;

constexpr std::uint64_t kBlock = 64 << 10;  // a hole to every file system

class ReadPlus : public ::testing::Test {
 protected:
  ReadPlus() { nfs.connection().set_transport(TransportKind::kTcp); }

  /// A file of `blocks` blocks, full of 'd' where the text has that letter, a hole elsewhere.
  Open4 file_of(std::string_view blocks) {
    const UniqueFd fd(::open(nfs.path("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    const std::string data(kBlock, 'd');
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] != 'd') continue;
      EXPECT_EQ(::pwrite(fd.get(), data.data(), data.size(), static_cast<off_t>(i * kBlock)),
                static_cast<ssize_t>(data.size()));
    }
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(blocks.size() * kBlock)), 0);
    holes_ = ::lseek(fd.get(), 0, SEEK_HOLE) != static_cast<off_t>(blocks.size() * kBlock);
    return nfs.open(nfs.root(), "f");
  }
  Reply4 read(const Open4& file, std::uint64_t offset, std::uint32_t count) {
    return nfs.on<OP_READ_PLUS>(file.handle, {file.stateid, offset, count});
  }
  /// "data 0+5 hole 5+3 eof", or "error N". What was read is appended to `content`.
  std::string segments(const Reply4& reply) {
    if (reply.status != NFS4_OK) {
      return "error " + std::to_string(static_cast<unsigned>(reply.status));
    }
    const auto res = reply.get<OP_READ_PLUS>().resok4;
    std::string out;
    for (const xdr::read_plus_content& one : res.rpr_contents) {
      if (one.rpc_content == data_content4::NFS4_CONTENT_DATA) {
        out += "data " + std::to_string(one.rpc_data.d_offset) + "+" +
               std::to_string(one.rpc_data.d_data.size()) + " ";
        content += as_text(one.rpc_data.d_data);
      } else {
        out += "hole " + std::to_string(one.rpc_hole.di_offset) + "+" +
               std::to_string(one.rpc_hole.di_length) + " ";
        content += std::string(one.rpc_hole.di_length, '\0');
      }
    }
    out += res.rpr_eof ? "eof" : "more";
    return out;
  }
  /// All of it, as a client would.
  std::string all_of(const Open4& file, std::uint32_t count, int* calls) {
    content.clear();
    for (*calls = 0; *calls < 1000; ++*calls) {
      const Reply4 reply = read(file, content.size(), count);
      const std::size_t before = content.size();
      const std::string seen = segments(reply);
      if (seen.ends_with("eof")) return content;
      EXPECT_GT(content.size(), before) << seen;
      if (content.size() == before) break;
    }
    return "there is no end";
  }
  Nfs4Harness nfs;
  bool holes_ = false;
  std::string content;
};

TEST_F(ReadPlus, DataAndHolesInTheirOrder) {
  const Open4 file = file_of("d..d.");
  ASSERT_TRUE(holes_) << "the file system of the temporary folder has no holes: set TMPDIR";
  EXPECT_EQ(segments(read(file, 0, 1 << 20)),
            "data 0+65536 hole 65536+131072 data 196608+65536 hole 262144+65536 eof");
  EXPECT_EQ(content, content_of(nfs.path("f")));
}

TEST_F(ReadPlus, OnlyWhatWasAskedFor) {
  const Open4 file = file_of("d.d");
  ASSERT_TRUE(holes_) << "the file system of the temporary folder has no holes: set TMPDIR";
  EXPECT_EQ(segments(read(file, 10, 5)), "data 10+5 more");
  EXPECT_EQ(segments(read(file, 65530, 10)), "data 65530+6 hole 65536+4 more");
  EXPECT_EQ(segments(read(file, 70000, 10)), "hole 70000+10 more");
  EXPECT_EQ(segments(read(file, 131071, 3)), "hole 131071+1 data 131072+2 more");
  EXPECT_EQ(segments(read(file, 196600, 100)), "data 196600+8 eof");
  EXPECT_EQ(segments(read(file, 0, 0)), "more");
}

TEST_F(ReadPlus, BehindTheEndIsNothing) {
  const Open4 file = file_of("d");
  EXPECT_EQ(segments(read(file, kBlock, 1)), "eof");
  EXPECT_EQ(segments(read(file, ~std::uint64_t{0}, 1)), "eof");
  const Open4 empty = nfs.open(nfs.root(), "empty");
  EXPECT_EQ(segments(read(empty, 0, 10)), "eof");
}

TEST_F(ReadPlus, AnErrorInTheMiddleIsNotTheEndOfTheFileAndNoneForRead) {
  const Open4 file = file_of("ddd");
  const FaultyBuffer faulty(nfs.connection().buffers());
  EXPECT_EQ(segments(read(file, 0, 3 * kBlock)),
            "data 0+" + std::to_string(FaultyBuffer::kGood) + " more");
  const Reply4 reply = nfs.on<OP_READ>(file.handle, {file.stateid, 0, 3 * kBlock});
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_EQ(reply.get<OP_READ>().resok4.data.bytes.size(), FaultyBuffer::kGood);
  EXPECT_FALSE(reply.get<OP_READ>().resok4.eof);
}

TEST_F(ReadPlus, UnevenSegmentsAreNotMixedUp) {
  const Open4 file = file_of("d.");
  ASSERT_EQ(nfs.write(file, 0, "abc"), NFS4_OK);
  ASSERT_EQ(::truncate(nfs.path("f").c_str(), 65537 + 5 * kBlock), 0);
  ASSERT_EQ(nfs.write(file, 65536 + 5 * kBlock, "e"), NFS4_OK);
  int calls = 0;
  EXPECT_EQ(all_of(file, 1u << 20, &calls), content_of(nfs.path("f")));
  EXPECT_EQ(all_of(file, 50021, &calls), content_of(nfs.path("f")));
}

TEST_F(ReadPlus, MoreSegmentsThanFitAreGoneOnWith) {
  std::string blocks;
  for (int i = 0; i < 30; ++i)
    blocks += "d.";
  const Open4 file = file_of(blocks);
  int calls = 0;
  EXPECT_EQ(all_of(file, 4u << 20, &calls), content_of(nfs.path("f")));
  if (holes_) {
    EXPECT_GT(calls, 1);
  }
}

TEST_F(ReadPlus, TheReplyStaysWithinItsLimits) {
  const Open4 file = file_of("dd");
  nfs.session.cache_this = true;  // 8192 bytes
  const Reply4 reply = read(file, 0, kBlock);
  const std::string seen = segments(reply);
  EXPECT_LE(reply.bytes.size(), 8192u);
  EXPECT_GT(content.size(), 4096u);
  EXPECT_EQ(seen, "data 0+" + std::to_string(content.size()) + " more");
}

TEST_F(ReadPlus, TwoInOneCompound) {
  const Open4 file = file_of("dd");
  ASSERT_EQ(nfs.write(file, kBlock, std::string(kBlock, 'e')), NFS4_OK);
  const Reply4 reply = nfs.run(Operations4()
                                   .putfh(file.handle)
                                   .add<OP_READ_PLUS>({file.stateid, 1, 1001})
                                   .add<OP_READ>({file.stateid, kBlock, 2})
                                   .add<OP_READ_PLUS>({file.stateid, kBlock, kBlock}));
  ASSERT_EQ(reply.status, NFS4_OK);
  const auto second = reply.get<OP_READ_PLUS>(1).resok4;
  EXPECT_TRUE(second.rpr_eof);
  for (const xdr::read_plus_content& one : second.rpr_contents)
    EXPECT_EQ(as_text(one.rpc_data.d_data), std::string(kBlock, 'e'));
  EXPECT_EQ(as_text(reply.get<OP_READ>().resok4.data.bytes), "ee");
  EXPECT_EQ(segments(reply), "data 1+1001 more");
  EXPECT_EQ(content, std::string(1001, 'd'));
}

TEST_F(ReadPlus, TheStateidAndTheFileCountAsForRead) {
  const Open4 file = file_of("d");
  Open4 other = nfs.open(nfs.root(), "other");
  other.handle = file.handle;
  EXPECT_EQ(read(other, 0, 1).status, NFS4ERR_BAD_STATEID);
  Open4 directory = file;
  directory.handle = nfs.root();
  EXPECT_EQ(read(directory, 0, 1).status, NFS4ERR_ISDIR);
}

TEST_F(ReadPlus, NotOverRdmaWhereItsDataCouldNotBeReduced) {
  const Open4 file = file_of("d");
  nfs.connection().set_transport(TransportKind::kIwarp);
  EXPECT_EQ(read(file, 0, 1).status, NFS4ERR_NOTSUPP);
  nfs.connection().set_transport(TransportKind::kVerbs);
  EXPECT_EQ(read(file, 0, 1).status, NFS4ERR_NOTSUPP);
}

}  // namespace
}  // namespace nfsrdma::test
