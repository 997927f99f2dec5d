// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/write_behind.h"

#include <gtest/gtest.h>

#include <string>

namespace nfsrdma {
namespace {

constexpr std::uint32_t kWriteSize = 16;
constexpr std::uint64_t kBoot1 = 111, kBoot2 = 222;

CallerRef writer() {
  static const CallerRef ref = std::make_shared<const Caller>(Caller{1000, 1000, {}});
  return ref;
}
CallerRef other_writer() {
  static const CallerRef ref = std::make_shared<const Caller>(Caller{1001, 1001, {}});
  return ref;
}

class WriteBehindTest : public testing::Test {
 protected:
  void write(std::uint64_t offset, std::string_view text) {
    behind_.write(offset, as_bytes(text), writer());
  }
  /// "offset:text" of the next WRITE, or "none".
  std::string next(bool all, WriteBehind::FlightRef* flight = nullptr) {
    auto found = behind_.next(all);
    if (!found) return "none";
    if (flight != nullptr) *flight = *found;
    const Extent& extent = (*found)->extent;
    return std::to_string(extent.offset) + ":" + std::string(as_text(extent.bytes()));
  }
  WriteBehind::FlightRef fly() {
    WriteBehind::FlightRef flight;
    EXPECT_NE(next(true, &flight), "none");
    return flight;
  }
  /// Sends everything and has it answered UNSTABLE.
  void write_out(std::uint64_t verifier) {
    while (auto flight = behind_.next(true)) {
      behind_.written(*flight, (*flight)->extent.length, false, verifier);
    }
  }

  WriteBehind behind_{kWriteSize};
};

TEST_F(WriteBehindTest, JoinsSequentialWrites) {
  write(0, "abcd");
  write(4, "efgh");
  EXPECT_EQ(next(true), "0:abcdefgh");
}

TEST_F(WriteBehindTest, WhatTouchesIsSentTogetherInWhateverOrderItWasWritten) {
  write(12, "mnop");
  write(4, "efgh");
  write(20, "uv");
  write(8, "ijkl");
  EXPECT_EQ(next(true), "4:efghijklmnop");
  EXPECT_EQ(next(true), "20:uv");
  EXPECT_EQ(next(true), "none");
}

TEST_F(WriteBehindTest, WhatIsSentTogetherFitsIntoOneWrite) {
  write(12, "mnop");
  write(8, "ijkl");
  write(4, "efgh");
  write(0, "abcd");
  write(16, "q");
  EXPECT_EQ(next(true), "0:abcdefghijkl") << "the last of 13 to 17 was appended to one of 4";
  EXPECT_EQ(next(true), "12:mnopq");
}

TEST_F(WriteBehindTest, WhatIsSentTogetherIsOneWritersAndNotUnderWay) {
  write(0, "abcd");
  behind_.write(4, as_bytes("EFGH"), other_writer());
  write(8, "ijkl");
  EXPECT_EQ(next(true), "0:abcd");
  EXPECT_EQ(next(true), "4:EFGH");
  WriteBehind::FlightRef old;
  EXPECT_EQ(next(true, &old), "8:ijkl");
  write(8, "new!");
  write(4, "efgh");
  EXPECT_EQ(next(true), "none") << "both are under way";
  behind_.written(old, 4, false, kBoot1);
  EXPECT_EQ(next(true), "8:new!") << "the one in front still is";
}

TEST_F(WriteBehindTest, ScatteredPiecesTakeNoMoreMemoryThanTheyHave) {
  for (std::uint64_t offset = 0; offset < 100; offset += 10)
    write(offset, "abc");
  while (auto flight = behind_.next(true)) {
    EXPECT_EQ((*flight)->extent.block->capacity(), 3u);
  }
}

TEST_F(WriteBehindTest, KeepsAnIncompleteWriteUntilAFlush) {
  write(0, "abcd");
  EXPECT_EQ(next(false), "none");
}

TEST_F(WriteBehindTest, SendsAWholeWriteAtOnce) {
  write(0, "0123456789");
  write(10, "abcdefghij");
  EXPECT_EQ(next(false), "0:0123456789abcdef");
  EXPECT_EQ(next(false), "none");
  EXPECT_EQ(next(true), "16:ghij");
}

TEST_F(WriteBehindTest, CutsALargeWrite) {
  write(5, "0123456789abcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(next(true), "5:0123456789abcdef");
  EXPECT_EQ(next(true), "21:ghijklmnopqrstuv");
  EXPECT_EQ(next(true), "37:wxyz");
}

TEST_F(WriteBehindTest, OverwritesDirtyDataInPlace) {
  write(0, "abcdefgh");
  write(2, "XY");
  EXPECT_EQ(next(true), "0:abXYefgh");
}

TEST_F(WriteBehindTest, NewerDataReplacesThePartThatItCovers) {
  write(4, "abcd");
  write(2, "XXXX");
  EXPECT_EQ(next(true), "2:XXXXcd");
  EXPECT_EQ(next(true), "none");
}

TEST_F(WriteBehindTest, DoesNotJoinDataOfDifferentWriters) {
  write(0, "abcd");
  behind_.write(4, as_bytes("efgh"), other_writer());
  EXPECT_EQ(next(true), "0:abcd");
  EXPECT_EQ(next(true), "4:efgh");
}

TEST_F(WriteBehindTest, DoesNotSendARangeTwiceAtATime) {
  write(0, "aaaa");
  auto first = fly();
  write(0, "bbbb");
  EXPECT_EQ(next(true), "none");
  behind_.written(first, 4, false, kBoot1);
  EXPECT_EQ(next(true), "0:bbbb");
}

TEST_F(WriteBehindTest, DataInFlightDoesNotChange) {
  write(0, "aaaa");
  auto first = fly();
  write(0, "bbbb");
  EXPECT_EQ(as_text(first->extent.bytes()), "aaaa");
}

TEST_F(WriteBehindTest, AdoptsABlockWithoutCopying) {
  BlockRef block = std::make_shared<DataBlock>(64);
  std::memcpy(block->data() + 8, "0123456789abcdefgh", 18);
  behind_.adopt(100, block, 8, 18, writer());
  WriteBehind::FlightRef flight;
  EXPECT_EQ(next(true, &flight), "100:0123456789abcdef");
  EXPECT_EQ(flight->extent.bytes().data(), block->data() + 8);
  EXPECT_EQ(next(true), "116:gh");
}

TEST_F(WriteBehindTest, AppendingToAnAdoptedBlockDoesNotTouchIt) {
  BlockRef block = std::make_shared<DataBlock>(64);
  std::memcpy(block->data(), "abcdefgh", 8);
  behind_.adopt(0, block, 0, 4, writer());
  write(4, "XYZ");
  EXPECT_EQ(next(true), "0:abcdXYZ");
  EXPECT_EQ(std::memcmp(block->data(), "abcdefgh", 8), 0);
}

TEST_F(WriteBehindTest, KeepsUnstableDataUntilCommitted) {
  write(0, "abcd");
  write_out(kBoot1);
  EXPECT_TRUE(behind_.clean());
  EXPECT_FALSE(behind_.stable());
  EXPECT_TRUE(behind_.committed(behind_.commit_mark(), kBoot1));
  EXPECT_TRUE(behind_.stable());
}

TEST_F(WriteBehindTest, AFileSyncAnswerNeedsNoCommit) {
  write(0, "abcd");
  behind_.written(fly(), 4, true, kBoot1);
  EXPECT_TRUE(behind_.stable());
}

TEST_F(WriteBehindTest, RewritesWhatARestartedServerLost) {
  write(0, "abcd");
  write_out(kBoot1);
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_EQ(next(true), "0:abcd");
}

/// Another verifier says that it restarted, before any COMMIT does.
TEST_F(WriteBehindTest, AWriteOfTheNextLifePutsWhatIsUnstableInDoubt) {
  write(0, "abcd");
  write_out(kBoot1);
  write(8, "ijkl");
  write_out(kBoot1);
  EXPECT_FALSE(behind_.in_doubt());
  EXPECT_EQ(behind_.pending_end(), 0u);
  write(0, "ABCD");
  write_out(kBoot2);
  EXPECT_TRUE(behind_.in_doubt());
  EXPECT_TRUE(behind_.in_doubt(10, 1));
  EXPECT_FALSE(behind_.in_doubt(4, 4));
  EXPECT_EQ(behind_.pending_end(), 12u);
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_FALSE(behind_.in_doubt());
  EXPECT_EQ(next(true), "8:ijkl");
}

/// The one that was under way tells of nothing that came behind it.
TEST_F(WriteBehindTest, ACommitFromBeforeADoubtDoesNotEndIt) {
  write(0, "abcd");
  write_out(kBoot1);
  const std::uint64_t mark = behind_.commit_mark();
  write(8, "ijkl");
  write_out(kBoot1);
  behind_.doubt();
  EXPECT_TRUE(behind_.committed(mark, kBoot1));
  EXPECT_TRUE(behind_.in_doubt());
  EXPECT_TRUE(behind_.committed(behind_.commit_mark(), kBoot1));
  EXPECT_FALSE(behind_.in_doubt());
}

TEST_F(WriteBehindTest, RewritesOnlyWhatWasWrittenBeforeTheRestart) {
  write(0, "abcd");
  write_out(kBoot1);
  write(4, "efgh");
  write_out(kBoot2);
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_EQ(next(true), "0:abcd");
  EXPECT_EQ(next(true), "none");
}

TEST_F(WriteBehindTest, ACommitDoesNotCoverWhatCameAfterIt) {
  write(0, "abcd");
  write_out(kBoot1);
  const std::uint64_t mark = behind_.commit_mark();
  write(4, "efgh");
  write_out(kBoot1);
  EXPECT_TRUE(behind_.committed(mark, kBoot1));
  EXPECT_EQ(behind_.unstable_bytes(), 4u);
}

TEST_F(WriteBehindTest, ARewriteNeverOverwritesNewerDirtyData) {
  write(0, "aaaaaaaa");
  write_out(kBoot1);
  write(2, "NEW");
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_EQ(next(true), "0:aaNEWaaa");
  EXPECT_EQ(next(true), "none");
}

TEST_F(WriteBehindTest, ARewriteNeverOverwritesNewerDataInFlight) {
  write(0, "aaaa");
  write_out(kBoot1);
  write(0, "bbbb");
  auto newer = fly();
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_EQ(next(true), "none");
  behind_.written(newer, 4, false, kBoot2);
  EXPECT_TRUE(behind_.committed(behind_.commit_mark(), kBoot2));
}

TEST_F(WriteBehindTest, NewerUnstableDataReplacesOlder) {
  write(0, "aaaa");
  write_out(kBoot1);
  write(0, "bb");
  write_out(kBoot1);
  EXPECT_EQ(behind_.unstable_bytes(), 4u);
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_EQ(next(true), "0:bbaa");
  EXPECT_EQ(next(true), "none");
}

TEST_F(WriteBehindTest, AShortWriteLeavesTheRestDirty) {
  write(0, "abcdefgh");
  behind_.written(fly(), 3, false, kBoot1);
  EXPECT_EQ(next(true), "3:defgh");
}

TEST_F(WriteBehindTest, AReturnedWriteIsDirtyBelowNewerData) {
  write(0, "aaaa");
  auto flight = fly();
  write(1, "bb");
  behind_.returned(flight);
  EXPECT_EQ(next(true), "0:abba");
  EXPECT_EQ(next(true), "none");
}

TEST_F(WriteBehindTest, ARefusedWriteIsGone) {
  write(0, "aaaa");
  behind_.refused(fly());
  EXPECT_TRUE(behind_.stable());
}

TEST_F(WriteBehindTest, TruncationForgetsUnstableDataBehindTheEnd) {
  write(0, "abcdefgh");
  write_out(kBoot1);
  behind_.truncated(3);
  EXPECT_FALSE(behind_.committed(behind_.commit_mark(), kBoot2));
  EXPECT_EQ(next(true), "0:abc");
}

TEST_F(WriteBehindTest, PendingCoversDirtyAndInFlight) {
  write(0, "aaaa");
  auto flight = fly();
  write(10, "bb");
  EXPECT_TRUE(behind_.pending(3, 1));
  EXPECT_FALSE(behind_.pending(4, 6));
  EXPECT_TRUE(behind_.pending(4, 7));
  EXPECT_EQ(behind_.pending_end(), 12u);
  behind_.written(flight, 4, false, kBoot1);
  EXPECT_FALSE(behind_.pending(0, 10));
}

TEST_F(WriteBehindTest, ManyScatteredPiecesAreSentWithoutAFlush) {
  for (std::uint64_t i = 0; i < 16; ++i)
    write(i * 100, "abcd");
  EXPECT_EQ(next(false), "0:abcd");
}

TEST_F(WriteBehindTest, ASmallFileIsASingleWrite) {
  write(0, "abcd");
  EXPECT_TRUE(behind_.single_write());
  write(100, "x");
  EXPECT_FALSE(behind_.single_write());
}

}  // namespace
}  // namespace nfsrdma
