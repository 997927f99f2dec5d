// SPDX-License-Identifier: Apache-2.0
// RFC 8166 headers: one rule, one test. Golden messages are in tests/golden/.
#include "rpcrdma/header.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace nfsrdma {
namespace {

using Words = std::vector<std::uint32_t>;

std::vector<std::byte> bytes_of(const Words& words) {
  std::vector<std::byte> bytes(words.size() * 4);
  for (std::size_t i = 0; i < words.size(); ++i)
    store_be32(bytes.data() + 4 * i, words[i]);
  return bytes;
}

/// A message of type `proc` with these words after the fixed part.
std::vector<std::byte> message(std::uint32_t proc, const Words& lists) {
  Words words{0x11, 1, 32, proc};
  words.insert(words.end(), lists.begin(), lists.end());
  return bytes_of(words);
}

struct Decoded {
  HeaderVerdict verdict;
  std::unique_ptr<TransportHeader> header = std::make_unique<TransportHeader>();
  explicit Decoded(const std::vector<std::byte>& bytes) { verdict = decode_header(bytes, *header); }
  const ChunkLists& chunks() const { return header->chunks; }
};

Words read_entry(std::uint32_t position, std::uint32_t length, std::uint32_t handle = 7) {
  return {1, position, handle, length, 0, 0x1000};
}
Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const Words kNoReads{0}, kNoWrites{0}, kNoReply{0};

TEST(Header, EmptyListsAre28Bytes) {
  Decoded d(message(RDMA_MSG, {0, 0, 0}));
  EXPECT_EQ(d.verdict, HeaderVerdict::kOk);
  EXPECT_EQ(d.header->header_bytes, kMinCallHeaderBytes);
  EXPECT_EQ(d.header->xid, 0x11u);
  EXPECT_EQ(d.header->credits, 32u);
  EXPECT_TRUE(d.chunks().empty());
}
TEST(Header, TooShortForAFixedPart) {
  EXPECT_EQ(Decoded(bytes_of({1, 1, 1})).verdict, HeaderVerdict::kTooShort);
}
TEST(Header, EveryTruncationIsRefused) {
  const auto whole =
      message(RDMA_MSG, read_entry(48, 100) + Words{0, 1, 1, 9, 50, 0, 64, 0, 1, 1, 8, 60, 0, 64});
  ASSERT_EQ(Decoded(whole).verdict, HeaderVerdict::kOk);
  for (std::size_t n = 16; n < whole.size(); ++n) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(Decoded(cut).verdict, HeaderVerdict::kBadChunks) << n;
  }
}
TEST(Header, OtherVersionsAreReported) {
  auto bytes = message(RDMA_MSG, {0, 0, 0});
  store_be32(bytes.data() + 4, 2);
  EXPECT_EQ(Decoded(bytes).verdict, HeaderVerdict::kWrongVersion);
}
TEST(Header, UnknownTypesAreReported) {
  EXPECT_EQ(Decoded(message(5, {0, 0, 0})).verdict, HeaderVerdict::kUnknownType);
}
TEST(Header, DiscriminatorMustBeZeroOrOne) {
  EXPECT_EQ(Decoded(message(RDMA_MSG, {2, 0, 0})).verdict, HeaderVerdict::kBadChunks);
}
TEST(Header, TwentyByteErrorIsAccepted) {
  Decoded d(bytes_of({0x11, 1, 32, RDMA_ERROR, ERR_CHUNK}));
  EXPECT_EQ(d.verdict, HeaderVerdict::kOk);
  EXPECT_EQ(d.header->error, ERR_CHUNK);
}
TEST(Header, VersionErrorCarriesTheRange) {
  Decoded d(bytes_of({0x11, 1, 32, RDMA_ERROR, ERR_VERS, 1, 2}));
  EXPECT_EQ(d.verdict, HeaderVerdict::kOk);
  EXPECT_EQ(d.header->version_high, 2u);
}

TEST(ReadList, EntriesOfOnePositionAreOneChunk) {
  Decoded d(message(RDMA_MSG,
                    read_entry(48, 100) + read_entry(48, 20) + kNoReads + kNoWrites + kNoReply));
  ASSERT_EQ(d.verdict, HeaderVerdict::kOk);
  ASSERT_EQ(d.chunks().reads().size(), 1u);
  EXPECT_EQ(d.chunks().reads()[0].length, 120u);
  EXPECT_EQ(d.chunks().segments(d.chunks().reads()[0]).size(), 2u);
}
TEST(ReadList, PositionsMustBeMultiplesOfFour) {
  EXPECT_EQ(Decoded(message(RDMA_MSG, read_entry(50, 8) + Words{0, 0, 0})).verdict,
            HeaderVerdict::kBadChunks);
}
TEST(ReadList, PositionsMustAscend) {
  EXPECT_EQ(
      Decoded(message(RDMA_MSG, read_entry(200, 8) + read_entry(100, 8) + Words{0, 0, 0})).verdict,
      HeaderVerdict::kBadChunks);
}
TEST(ReadList, ChunksMayNotOverlap) {
  EXPECT_EQ(
      Decoded(message(RDMA_MSG, read_entry(48, 9) + read_entry(56, 8) + Words{0, 0, 0})).verdict,
      HeaderVerdict::kBadChunks);
  EXPECT_EQ(
      Decoded(message(RDMA_MSG, read_entry(48, 9) + read_entry(60, 8) + Words{0, 0, 0})).verdict,
      HeaderVerdict::kOk);
}
TEST(ReadList, LengthsMayNotWrap) {
  EXPECT_EQ(
      Decoded(message(RDMA_MSG, read_entry(48, 0xffffffff) + read_entry(48, 2) + Words{0, 0, 0}))
          .verdict,
      HeaderVerdict::kBadChunks);
}
TEST(ReadList, OffsetPlusLengthMayNotWrap) {
  EXPECT_EQ(Decoded(message(RDMA_MSG, Words{1, 48, 7, 2, 0xffffffff, 0xffffffff, 0, 0, 0})).verdict,
            HeaderVerdict::kBadChunks);
  const Words page = {1, 48, 7, 4096, 0xffffffff, 0xfffff001, 0, 0, 0};
  EXPECT_EQ(Decoded(message(RDMA_MSG, page)).verdict, HeaderVerdict::kBadChunks);
}
TEST(ReadList, TooManySegmentsAreRefused) {
  Words words;
  for (std::size_t i = 0; i < ChunkLists::kMaxReadSegments; ++i)
    words = words + read_entry(48, 1);
  EXPECT_EQ(Decoded(message(RDMA_MSG, words + Words{0, 0, 0})).verdict, HeaderVerdict::kOk);
  EXPECT_EQ(Decoded(message(RDMA_MSG, words + read_entry(48, 1) + Words{0, 0, 0})).verdict,
            HeaderVerdict::kBadChunks);
}
TEST(ReadList, TooManyChunksAreRefused) {
  Words words;
  for (std::uint32_t i = 0; i <= ChunkLists::kMaxReadChunks; ++i) {
    words = words + read_entry(48 + 8 * i, 4);
  }
  EXPECT_EQ(Decoded(message(RDMA_MSG, words + Words{0, 0, 0})).verdict, HeaderVerdict::kBadChunks);
}
TEST(ReadList, ZeroLengthSegmentsAreLegal) {
  EXPECT_EQ(Decoded(message(RDMA_MSG, read_entry(48, 0) + Words{0, 0, 0})).verdict,
            HeaderVerdict::kOk);
}

TEST(WriteList, SeveralChunksKeepTheirSegments) {
  Decoded d(message(RDMA_MSG, {0, 1, 2, 1, 10, 0, 0, 2, 20, 0, 0, 1, 1, 3, 30, 0, 0, 0, 0}));
  ASSERT_EQ(d.verdict, HeaderVerdict::kOk);
  ASSERT_EQ(d.chunks().writes().size(), 2u);
  EXPECT_EQ(d.chunks().writes()[0].length, 30u);
  EXPECT_EQ(d.chunks().segments(d.chunks().writes()[1])[0].handle, 3u);
}
TEST(WriteList, PlaceholderWithoutSegmentsIsLegal) {
  Decoded d(message(RDMA_MSG, {0, 1, 0, 0, 0}));
  EXPECT_EQ(d.verdict, HeaderVerdict::kOk);
  EXPECT_EQ(d.chunks().writes()[0].length, 0u);
}
TEST(WriteList, HugeSegmentCountIsRefusedBeforeItIsBelieved) {
  EXPECT_EQ(Decoded(message(RDMA_MSG, {0, 1, 0xffffffff, 0, 0})).verdict,
            HeaderVerdict::kBadChunks);
}
TEST(WriteList, TooManyChunksAreRefused) {
  Words words{0};
  for (std::size_t i = 0; i <= ChunkLists::kMaxWriteChunks; ++i)
    words = words + Words{1, 0};
  EXPECT_EQ(Decoded(message(RDMA_MSG, words + Words{0, 0})).verdict, HeaderVerdict::kBadChunks);
}

TEST(CallChunks, LongMessageNeedsAPositionZeroChunk) {
  Decoded d(message(RDMA_NOMSG, {0, 0, 0}));
  EXPECT_FALSE(call_chunks_sane(*d.header, 0, 1 << 20));
}
TEST(CallChunks, ShortMessageMayNotHaveAPositionZeroChunk) {
  Decoded d(message(RDMA_MSG, read_entry(0, 100) + Words{0, 0, 0}));
  EXPECT_FALSE(call_chunks_sane(*d.header, 40, 1 << 20));
}
TEST(CallChunks, PositionMustLieInsideTheMessage) {
  Decoded d(message(RDMA_MSG, read_entry(48, 100) + Words{0, 0, 0}));
  EXPECT_TRUE(call_chunks_sane(*d.header, 48, 1 << 20));
  EXPECT_FALSE(call_chunks_sane(*d.header, 44, 1 << 20));
}
TEST(CallChunks, PositionsCountInTheUnreducedStream) {
  Decoded d(message(RDMA_MSG, read_entry(48, 101) + read_entry(160, 8) + Words{0, 0, 0}));
  // 160 is 56 in what remains after 104 bytes (101 and pad) were taken out.
  EXPECT_TRUE(call_chunks_sane(*d.header, 56, 1 << 20));
  EXPECT_FALSE(call_chunks_sane(*d.header, 52, 1 << 20));
}
TEST(CallChunks, TotalIsLimited) {
  Decoded d(message(RDMA_MSG, read_entry(48, 1000) + Words{0, 0, 0}));
  EXPECT_TRUE(call_chunks_sane(*d.header, 48, 1048));
  EXPECT_FALSE(call_chunks_sane(*d.header, 48, 1047));
}
TEST(CallChunks, PositionZeroAndFurtherChunksGoTogether) {
  Decoded d(message(RDMA_NOMSG, read_entry(0, 60) + read_entry(48, 100) + Words{0, 0, 0}));
  ASSERT_EQ(d.verdict, HeaderVerdict::kOk);
  EXPECT_TRUE(call_chunks_sane(*d.header, 0, 1 << 20));
}

std::optional<std::uint32_t> candidate(const Words& lists) {
  return invalidation_candidate(Decoded(message(RDMA_MSG, lists)).chunks());
}
TEST(Invalidation, OneHandleEverywhereIsChosen) {
  EXPECT_EQ(candidate(read_entry(48, 100, 5) + Words{0, 1, 1, 5, 10, 0, 0, 0, 0}), 5u);
}
TEST(Invalidation, TwoHandlesMeanNone) {
  EXPECT_EQ(candidate(read_entry(48, 100, 5) + Words{0, 1, 1, 6, 10, 0, 0, 0, 0}), std::nullopt);
}
TEST(Invalidation, PadSegmentOfAWriteChunkDoesNotCount) {
  EXPECT_EQ(candidate({0, 1, 2, 5, 5001, 0, 0, 9, 4, 0, 0, 0, 0}), 5u);
}
TEST(Invalidation, SharedPadHandleIsNeverChosen) {
  EXPECT_EQ(candidate({0, 1, 2, 9, 5001, 0, 0, 9, 4, 0, 0, 0, 0}), std::nullopt);
}
TEST(Invalidation, NoChunksMeanNone) {
  EXPECT_EQ(candidate({0, 0, 0}), std::nullopt);
}

TEST(Encode, DecodesToTheSame) {
  ChunkLists lists;
  lists.clear();
  ASSERT_TRUE(lists.add_read_segment(48, {1, 100, 0x123456789abcdef0}));
  ASSERT_TRUE(lists.begin_write_chunk());
  ASSERT_TRUE(lists.add_write_segment({2, 200, 0x10}));
  ASSERT_TRUE(lists.add_reply_segment({3, 300, 0x20}));
  std::byte room[256];
  const std::size_t size = encode_header(room, 9, 10, RDMA_MSG, lists);
  ASSERT_GT(size, 0u);
  Decoded d(std::vector<std::byte>(room, room + size));
  ASSERT_EQ(d.verdict, HeaderVerdict::kOk);
  EXPECT_EQ(d.header->header_bytes, size);
  EXPECT_EQ(d.chunks().segments(d.chunks().reads()[0])[0], (Segment{1, 100, 0x123456789abcdef0}));
  EXPECT_EQ(d.chunks().write_segments[0], (Segment{2, 200, 0x10}));
  EXPECT_EQ(d.chunks().reply()[0], (Segment{3, 300, 0x20}));
}
TEST(Encode, SaysWhenTheRoomIsTooSmall) {
  ChunkLists lists;
  lists.clear();
  std::byte room[24];
  EXPECT_EQ(encode_header(room, 9, 10, RDMA_MSG, lists), 0u);
}

}  // namespace
}  // namespace nfsrdma
