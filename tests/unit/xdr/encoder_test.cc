// SPDX-License-Identifier: Apache-2.0
#include "xdr/encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/xdr_bytes.h"
#include "xdr/flatten.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::words;

std::vector<std::byte> written(const Encoder& encoder) {
  return {encoder.bytes().begin(), encoder.bytes().end()};
}

class EncoderTest : public ::testing::Test {
 protected:
  EncoderTest() { room_.fill(std::byte{0xee}); }
  std::array<std::byte, 64> room_;
  Encoder encoder_{room_};
};

TEST_F(EncoderTest, NumbersAreBigEndian) {
  encoder_.u32(0x01020304);
  encoder_.u64(0x05060708090a0b0c);
  encoder_.boolean(true);
  EXPECT_EQ(written(encoder_), words({0x01020304, 0x05060708, 0x090a0b0c, 1}));
}

TEST_F(EncoderTest, PadsAreZero) {
  encoder_.string("hello");
  EXPECT_EQ(written(encoder_), words({5, 0x68656c6c, 0x6f000000}));
}

TEST_F(EncoderTest, NothingIsWrittenBehindTheRoom) {
  Encoder small{std::span(room_).first(7)};
  small.u64(1);
  EXPECT_TRUE(small.overflowed());
  EXPECT_TRUE(
      std::all_of(room_.begin(), room_.end(), [](std::byte b) { return b == std::byte{0xee}; }));
}

TEST_F(EncoderTest, NothingFollowsAnOverflow) {
  Encoder small{std::span(room_).first(7)};
  small.u64(1);
  small.u32(2);
  EXPECT_EQ(small.size(), 0u);
  EXPECT_TRUE(small.overflowed());
}

TEST_F(EncoderTest, TheRoomMayBeFilledToTheLastByte) {
  Encoder small{std::span(room_).first(8)};
  small.u64(1);
  EXPECT_FALSE(small.overflowed());
  EXPECT_EQ(small.room(), 0u);
}

TEST_F(EncoderTest, RewindForgetsWhatCameAfterTheMark) {
  encoder_.u32(1);
  std::size_t mark = encoder_.mark();
  encoder_.u32(2);
  encoder_.rewind(mark);
  encoder_.u32(3);
  EXPECT_EQ(written(encoder_), words({1, 3}));
}

TEST_F(EncoderTest, RewindTakesAnOverflowBack) {
  Encoder small{std::span(room_).first(8)};
  small.u32(1);
  std::size_t mark = small.mark();
  small.u64(2);
  ASSERT_TRUE(small.overflowed());
  small.rewind(mark);
  EXPECT_FALSE(small.overflowed());
  small.u32(3);
  EXPECT_EQ(written(small), words({1, 3}));
}

TEST_F(EncoderTest, AMarkTakenAfterAnOverflowDoesNotClearIt) {
  Encoder small{std::span(room_).first(4)};
  small.u64(1);
  std::size_t mark = small.mark();
  small.u32(2);
  small.rewind(mark);
  EXPECT_TRUE(small.overflowed());
}

TEST_F(EncoderTest, PatchReplacesOneWord) {
  encoder_.u32(1);
  std::size_t mark = encoder_.mark();
  encoder_.u32(2);
  encoder_.u32(3);
  encoder_.patch_u32(mark, 9);
  EXPECT_EQ(written(encoder_), words({1, 9, 3}));
}

TEST_F(EncoderTest, PatchAfterAnOverflowWritesNothing) {
  Encoder small{std::span(room_).first(4)};
  small.u64(1);
  small.patch_u32(small.mark(), 9);
  EXPECT_EQ(room_[0], std::byte{0xee});
}

TEST_F(EncoderTest, PayloadGoesByReference) {
  auto data = words({0x68656c6c, 0x6f000000});
  encoder_.u32(1);
  encoder_.payload(std::span(data).first(5));
  encoder_.u32(9);
  EXPECT_EQ(written(encoder_), words({1, 5, 9}));
  ASSERT_EQ(encoder_.payloads().size(), 1u);
  EXPECT_EQ(encoder_.payloads()[0].head_bytes, 8u);
  EXPECT_EQ(encoder_.payloads()[0].bytes.data(), data.data());
  EXPECT_EQ(encoder_.payloads()[0].bytes.size(), 5u);
}

TEST_F(EncoderTest, RewindForgetsPayloadsAfterTheMark) {
  auto data = words({1});
  encoder_.payload(data);
  std::size_t mark = encoder_.mark();
  encoder_.payload(data);
  encoder_.rewind(mark);
  EXPECT_EQ(encoder_.payloads().size(), 1u);
}

TEST_F(EncoderTest, APayloadWhoseLengthDoesNotFitIsNotRecorded) {
  auto data = words({1});
  Encoder small{std::span(room_).first(3)};
  small.payload(data);
  EXPECT_TRUE(small.overflowed());
  EXPECT_TRUE(small.payloads().empty());
}

TEST(EncoderPayloads, OneTooManyIsCopiedInLine) {
  std::array<std::byte, 256> room;
  Encoder encoder(room);
  auto data = words({7});
  for (std::size_t i = 0; i <= Encoder::kMaxPayloads; ++i)
    encoder.payload(data);
  EXPECT_EQ(encoder.payloads().size(), Encoder::kMaxPayloads);
  EXPECT_EQ(encoder.size(), (Encoder::kMaxPayloads + 2) * 4);
}

TEST_F(EncoderTest, FlattenPutsPayloadsWithPadsBehindTheirLengths) {
  auto data = words({0x68656c6c, 0x6fffffff});
  encoder_.u32(1);
  encoder_.payload(std::span(data).first(5));
  encoder_.u32(9);
  std::array<std::byte, 20> flat;
  ASSERT_EQ(flatten(encoder_, flat), 20u);
  EXPECT_EQ(std::vector(flat.begin(), flat.end()), words({1, 5, 0x68656c6c, 0x6f000000, 9}));
}

TEST_F(EncoderTest, FlattenIntoTooLittleRoomGivesNothing) {
  auto data = words({1});
  encoder_.payload(data);
  std::array<std::byte, 7> flat;
  EXPECT_EQ(flatten(encoder_, flat), 0u);
}

}  // namespace
}  // namespace nfsrdma::xdr
