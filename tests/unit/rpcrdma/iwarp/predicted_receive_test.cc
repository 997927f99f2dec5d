// SPDX-License-Identifier: Apache-2.0
// Predicted scatter: large tagged messages reach their target without a copy, and a wrong guess
// never costs a byte that was placed before.
#include <random>

#include "tests/unit/rpcrdma/iwarp/engine_pair.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr std::uint32_t kStag = 0x5501;
constexpr std::uint64_t kBase = 0x7000;

EngineOptions options(bool crc) {
  EngineOptions out;
  out.initiator = true;
  out.crc = crc;
  return out;
}

void append(std::vector<std::byte>& stream, const std::vector<std::byte>& more) {
  stream.insert(stream.end(), more.begin(), more.end());
}

/// `data` as one Write at `at`, cut into FPDUs of `piece` bytes.
void append_write(std::vector<std::byte>& stream, ByteSpan data, std::uint64_t at,
                  std::size_t piece, bool crc, std::uint32_t stag = kStag) {
  for (std::size_t done = 0; done < data.size(); done += piece) {
    const std::size_t size = std::min(piece, data.size() - done);
    append(stream, make_fpdu(tagged(RdmapOpcode::kWrite, stag, kBase + at + done,
                                    done + size == data.size()),
                             data.subspan(done, size), crc));
  }
}

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes)
    b = static_cast<std::byte>(random());
  return bytes;
}

class Predicted : public testing::TestWithParam<bool> {
 protected:
  Predicted() : rig_(options(GetParam())) { rig_.post_receives(64, 256); }
  EngineRig rig_;
};

TEST_P(Predicted, OneMebibyteGoesStraightToItsTarget) {
  const std::vector<std::byte> data = random_bytes(1 << 20, 1);
  std::vector<std::byte>& target = rig_.stags.add(kStag, kBase, data.size(), Access::kRemoteWrite);
  std::vector<std::byte> stream;
  append_write(stream, data, 0, 65472, GetParam());
  append(stream, make_fpdu(send_header(1), as_bytes("done"), GetParam()));
  // The first read cannot know what comes.
  rig_.feed(ByteSpan(stream).first(100));
  rig_.feed(ByteSpan(stream).subspan(100));
  EXPECT_EQ(target, data);
  EXPECT_EQ(rig_.events.size(), 1u);
  EXPECT_EQ(rig_.engine.receiver().gathered_bytes(), 0u);
  EXPECT_GE(rig_.engine.receiver().direct_bytes(), data.size() - 100);
}

TEST_P(Predicted, SiwSizedFpdusToo) {
  const std::vector<std::byte> data = random_bytes(300'000, 2);
  std::vector<std::byte>& target = rig_.stags.add(kStag, kBase, data.size(), Access::kRemoteWrite);
  std::vector<std::byte> stream;
  append_write(stream, data, 0, 1428, GetParam());
  rig_.feed(ByteSpan(stream).first(1000));
  rig_.feed(ByteSpan(stream).subspan(1000));
  EXPECT_EQ(target, data);
  EXPECT_EQ(rig_.engine.receiver().gathered_bytes(), 0u);
}

TEST_P(Predicted, LargestFpdusOfTheLengthField) {
  constexpr std::size_t kLargest = 65535 + kMpaLengthSize - kTaggedHeader;
  const std::vector<std::byte> data = random_bytes(3 * kLargest, 5);
  std::vector<std::byte>& target = rig_.stags.add(kStag, kBase, data.size(), Access::kRemoteWrite);
  std::vector<std::byte> stream;
  append_write(stream, data, 0, kLargest, GetParam());
  append(stream, make_fpdu(send_header(1), as_bytes("done"), GetParam()));
  ASSERT_EQ(load_be16(stream.data()), 65535);
  // Segments of a small size, as they come from TCP.
  rig_.feed_in_steps(stream, 524);
  EXPECT_EQ(target, data);
  EXPECT_EQ(rig_.events, std::vector<std::string>{"receive 646f6e65"});
}

TEST_P(Predicted, SmallerFpdusThanBeforeAreGathered) {
  const std::vector<std::byte> data = random_bytes(200'000, 3);
  std::vector<std::byte>& target = rig_.stags.add(kStag, kBase, data.size(), Access::kRemoteWrite);
  std::vector<std::byte> stream;
  // One message whose FPDUs change their size in the middle.
  std::size_t at = 0;
  for (std::size_t size :
       {4096u, 4096u, 4096u, 1000u, 30'000u, 30'000u, 30'000u, 96'712u - 34'288u, 34'288u}) {
    append(stream,
           make_fpdu(tagged(RdmapOpcode::kWrite, kStag, kBase + at, at + size == data.size()),
                     ByteSpan(data).subspan(at, size), GetParam()));
    at += size;
  }
  ASSERT_EQ(at, data.size());
  rig_.feed(ByteSpan(stream).first(50));
  rig_.feed(ByteSpan(stream).subspan(50));
  EXPECT_FALSE(rig_.engine.failed());
  EXPECT_EQ(target, data);
  EXPECT_GT(rig_.engine.receiver().gathered_bytes(), 0u);
}

TEST_P(Predicted, WriteThatEndsEarlyIsFollowedCorrectly) {
  const std::vector<std::byte> data = random_bytes(20'000, 4);
  std::vector<std::byte>& target = rig_.stags.add(kStag, kBase, 1 << 20, Access::kRemoteWrite);
  std::vector<std::byte> stream;
  append_write(stream, data, 0, 4096, GetParam());
  for (std::uint32_t msn = 1; msn <= 30; ++msn) {
    append(stream, make_fpdu(send_header(msn), counting(200, msn), GetParam()));
  }
  rig_.feed(ByteSpan(stream).first(50));
  rig_.feed(ByteSpan(stream).subspan(50));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), target.begin()));
  ASSERT_EQ(rig_.events.size(), 30u);
  EXPECT_EQ(rig_.events[29], "receive " + to_hex(counting(200, 30)));
}

TEST_P(Predicted, DataPlacedBeforeInTheSameRegionIsNotGuessedOver) {
  std::vector<std::byte>& target = rig_.stags.add(kStag, kBase, 100'000, Access::kRemoteWrite);
  const std::vector<std::byte> tail = random_bytes(50'000, 5);
  const std::vector<std::byte> head = random_bytes(20'000, 6);
  std::vector<std::byte> stream;
  append_write(stream, tail, 50'000, 4096, GetParam());
  append_write(stream, head, 0, 4096, GetParam());
  for (std::uint32_t msn = 1; msn <= 40; ++msn) {
    append(stream, make_fpdu(send_header(msn), counting(200), GetParam()));
  }
  for (std::size_t at = 0; at < stream.size(); at += 7001) {
    rig_.feed(ByteSpan(stream).subspan(at, std::min<std::size_t>(7001, stream.size() - at)));
  }
  EXPECT_TRUE(std::equal(head.begin(), head.end(), target.begin()));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), target.begin() + 50'000));
}

TEST_P(Predicted, StarvedSendBehindAWrongGuessLosesNothing) {
  EngineRig rig(options(GetParam()));
  const std::vector<std::byte> data = random_bytes(20'000, 7);
  std::vector<std::byte>& target = rig.stags.add(kStag, kBase, 1 << 20, Access::kRemoteWrite);
  std::vector<std::byte> stream;
  append_write(stream, data, 0, 4096, GetParam());
  append(stream, make_fpdu(send_header(1), counting(200), GetParam()));
  append(stream, make_fpdu(send_header(2), counting(100), GetParam()));
  append_write(stream, data, 30'000, 4096, GetParam());
  rig.feed(ByteSpan(stream).first(50));
  EXPECT_EQ(rig.feed(ByteSpan(stream).subspan(50)), ReceiveStatus::kWait);
  rig.post_receives(2, 256);
  EXPECT_EQ(rig.engine.receiver().resume(), ReceiveStatus::kMore);
  EXPECT_EQ(rig.events.size(), 2u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), target.begin()));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), target.begin() + 30'000));
}

TEST_P(Predicted, RandomStreamsInRandomPiecesArriveWhole) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](std::size_t low, std::size_t high) {
      return low + random() % (high - low + 1);
    };
    EngineRig rig(options(GetParam()));
    rig.post_receives(200, 512);
    std::vector<std::byte> stream;
    std::map<std::uint32_t, std::vector<std::pair<std::size_t, std::vector<std::byte>>>> expected;
    std::uint32_t msn = 0;
    for (std::uint32_t i = 0; i < 6; ++i) {
      const std::uint32_t stag = 0x100 * (i + 1);
      const std::size_t size = pick(1, 150'000);
      const std::size_t slack = pick(0, 1) * pick(0, 50'000);
      rig.stags.add(stag, kBase, size + slack, Access::kRemoteWrite);
      const std::vector<std::byte> data = random_bytes(size, seed * 10 + i);
      const std::size_t first = pick(0, size);
      const std::size_t piece = pick(0, 1) != 0 ? pick(1, 70) * 60 : pick(1, 65'000);
      if (size / piece > 400) continue;
      append_write(stream, ByteSpan(data).first(first), 0, piece, GetParam(), stag);
      if (pick(0, 2) == 0) {
        append(stream, make_fpdu(send_header(++msn), counting(pick(0, 500)), GetParam()));
      }
      append_write(stream, ByteSpan(data).subspan(first), first, piece, GetParam(), stag);
      append(stream, make_fpdu(send_header(++msn), counting(pick(0, 500)), GetParam()));
      expected[stag].emplace_back(0, data);
    }
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = std::min(stream.size() - at, pick(1, 200'000));
      ASSERT_EQ(rig.feed(ByteSpan(stream).subspan(at, size)), ReceiveStatus::kMore) << seed;
      at += size;
    }
    EXPECT_EQ(rig.events.size(), msn);
    for (auto& [stag, pieces] : expected) {
      const std::vector<std::byte>& target = rig.stags.regions.at(stag).bytes;
      for (auto& [at, data] : pieces) {
        ASSERT_TRUE(std::equal(data.begin(), data.end(), target.begin() + static_cast<long>(at)))
            << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Crc, Predicted, testing::Bool(),
                         [](const auto& crc) { return crc.param ? "on" : "off"; });

}  // namespace
}  // namespace nfsrdma::iwarp::test
