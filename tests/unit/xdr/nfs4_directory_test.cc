// SPDX-License-Identifier: Apache-2.0
#include "xdr/nfs4_directory.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;

// An entry with a name of four bytes and no attributes: TRUE, cookie, length, name, mask, opaque.
constexpr std::size_t kEntryBytes = 4 + 8 + 4 + 4 + 4 + 4;
constexpr std::size_t kFrameBytes = 8 + 4 + 4;  // verifier, end of list, eof

AttributedEntry4 entry(std::uint64_t cookie) {
  return {.cookie = cookie, .name = "name", .attrs = {}};
}

/// Entries that get in under `limits`, in a reply that must decode.
std::size_t written(DirectoryLimits limits, std::size_t room_bytes = 4096) {
  std::vector<std::byte> room(room_bytes);
  Encoder encoder(room);
  DirectoryWriter<AttributedEntry4> writer(encoder, limits);
  if (!writer.start(verifier4{})) {
    EXPECT_EQ(encoder.size(), 0u);
    return 0;
  }
  std::uint64_t cookie = 1;
  while (cookie <= 20 && writer.try_add(entry(cookie)))
    ++cookie;
  writer.finish(cookie == 21);
  READDIR4res back;
  EXPECT_TRUE(decode_exactly(encoder.bytes(), back));
  EXPECT_LE(encoder.size() - 4, limits.result_bytes);
  std::uint64_t expected = 1;
  for (const entry4& read : back.resok4.reply.entries)
    EXPECT_EQ(read.cookie, expected++);
  EXPECT_EQ(back.resok4.reply.entries.count, writer.count());
  EXPECT_EQ(back.resok4.reply.eof, writer.count() == 20);
  return writer.count();
}

TEST(Nfs4Directory, MaxcountBoundsAllBehindTheStatus) {
  EXPECT_EQ(written({.result_bytes = kFrameBytes + 3 * kEntryBytes}), 3u);
  EXPECT_EQ(written({.result_bytes = kFrameBytes + 3 * kEntryBytes - 1}), 2u);
  EXPECT_EQ(written({.result_bytes = 65536}), 20u);
}

TEST(Nfs4Directory, DircountBoundsCookiesAndNames) {
  EXPECT_EQ(written({.result_bytes = 65536, .directory_bytes = 3 * 16}), 3u);
  EXPECT_EQ(written({.result_bytes = 65536, .directory_bytes = 3 * 16 - 1}), 2u);
}

TEST(Nfs4Directory, DircountLessThanAnEntryLetsOneIn) {
  EXPECT_EQ(written({.result_bytes = 65536, .directory_bytes = 1}), 1u);
}

TEST(Nfs4Directory, DircountOfZeroIsNoLimit) {
  EXPECT_EQ(written(directory_limits({.dircount = 0, .maxcount = 65536})), 20u);
}

TEST(Nfs4Directory, RoomForTheEndIsKept) {
  EXPECT_EQ(written({.result_bytes = 65536}, 4 + kFrameBytes + 2 * kEntryBytes), 2u);
  EXPECT_EQ(written({.result_bytes = 65536}, 4 + kFrameBytes + 2 * kEntryBytes - 4), 1u);
}

TEST(Nfs4Directory, NotEvenAnEmptyListLeavesNothing) {
  EXPECT_EQ(written({.result_bytes = kFrameBytes - 1}), 0u);
  EXPECT_EQ(written({.result_bytes = 65536}, 4 + kFrameBytes - 4), 0u);
}

TEST(Nfs4Directory, AbandonTakesEverythingBack) {
  std::array<std::byte, 256> room;
  Encoder encoder(room);
  encoder.u32(7);
  DirectoryWriter<AttributedEntry4> writer(encoder, {.result_bytes = 200});
  ASSERT_TRUE(writer.start(verifier4{}));
  ASSERT_TRUE(writer.try_add(entry(1)));
  writer.abandon();
  EXPECT_EQ(encoder.size(), 4u);
}

}  // namespace
}  // namespace nfsrdma::xdr
