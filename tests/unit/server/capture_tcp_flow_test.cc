// SPDX-License-Identifier: Apache-2.0
// Frames of a TCP connection that are made up: checksums, sequence numbers, what is cut.
#include <gtest/gtest.h>

#include "captured_frame.h"
#include "server/capture/pieces.h"
#include "server/capture/tcp_flow.h"

namespace nfsrdma {
namespace {

using From = TcpFlow::From;
using test::CapturedFrame;
using test::some_bytes;

constexpr std::uint8_t kSyn = 2, kSynAck = 0x12, kAck = 0x10, kData = 0x18, kFinAck = 0x11;

TEST(InternetChecksumTest, TheExampleOfTheRfcHoweverItIsCut) {
  // RFC 1071, section 3: these sum up to 0xddf2.
  const std::string words("\x00\x01\xf2\x03\xf4\xf5\xf6\xf7", 8);
  for (std::size_t first = 0; first <= 8; ++first) {
    for (std::size_t second = first; second <= 8; ++second) {
      InternetChecksum checksum;
      checksum.add(as_bytes(words).first(first));
      checksum.add(as_bytes(words).subspan(first, second - first));
      checksum.add(as_bytes(words).subspan(second));
      EXPECT_EQ(checksum.value(), 0xffff ^ 0xddf2) << first << " " << second;
    }
  }
}

TEST(PieceCursorTest, GoesThroughEmptyAndCutPieces) {
  const std::string a = "abc", none, b = "defg";
  const ByteSpan pieces[] = {as_bytes(a), as_bytes(none), as_bytes(b)};
  PieceCursor cursor(pieces);
  auto take = [&cursor](std::size_t bytes) {
    std::vector<ByteSpan> out;
    cursor.take(bytes, out);
    std::string text;
    for (const ByteSpan& piece : out)
      text += as_text(piece);
    return text;
  };
  EXPECT_EQ(take(2), "ab");
  EXPECT_EQ(take(0), "");
  EXPECT_EQ(take(3), "cde");
  EXPECT_EQ(take(9), "fg");
  EXPECT_EQ(take(1), "");
  EXPECT_EQ(total_size(pieces), 7u);
}

class TcpFlowTest : public testing::TestWithParam<bool> {
 protected:
  static SocketAddress address(int last, std::uint16_t port) {
    const std::string host = (GetParam() ? "2001:db8::" : "192.0.2.") + std::to_string(last);
    return SocketAddress::parse(host, port).value();
  }
  void segment(From from, const std::string& data, std::size_t kept = ~std::size_t{0}) {
    // In two pieces, of which the first is odd.
    const std::size_t cut = std::min<std::size_t>(data.size(), 3);
    const ByteSpan pieces[] = {as_bytes(data).first(cut), as_bytes(data).subspan(cut)};
    flow_.segment(from, pieces, std::min(kept, data.size()));
  }
  test::RecordingSink sink_;
  TcpFlow flow_{address(7, 700), address(1, 20049), 3, sink_};
};

TEST_P(TcpFlowTest, SequenceNumbersFollowFromTheHandshakeToTheEnd) {
  flow_.open("made up");
  segment(From::kClient, some_bytes(100));
  segment(From::kServer, some_bytes(33));
  segment(From::kServer, some_bytes(1));
  segment(From::kClient, some_bytes(5));
  flow_.close("over");
  const auto& frames = sink_.frames;
  ASSERT_EQ(frames.size(), 10u);
  const std::uint8_t flags[] = {kSyn,  kSynAck, kAck,    kData,   kData,
                                kData, kData,   kFinAck, kFinAck, kAck};
  std::uint32_t next[2] = {frames[0].sequence(), frames[1].sequence()};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const CapturedFrame& frame = frames[i];
    SCOPED_TRACE(i);
    frame.check();
    EXPECT_EQ(frame.flags(), flags[i]);
    EXPECT_EQ(frame.is_v6(), GetParam());
    EXPECT_EQ(frame.source_port(), frame.outbound ? 20049 : 700);
    EXPECT_EQ(frame.target_port(), frame.outbound ? 700 : 20049);
    const int side = frame.outbound ? 1 : 0;
    EXPECT_EQ(frame.sequence(), next[side]);
    if (i == 0) {
      EXPECT_EQ(frame.acknowledged(), 0u);
    } else {
      EXPECT_EQ(frame.acknowledged(), next[1 - side]);
    }
    const bool counts = (frame.flags() & 3) != 0;  // SYN and FIN
    next[side] += static_cast<std::uint32_t>(frame.payload().size()) + (counts ? 1 : 0);
  }
  EXPECT_EQ(frames[3].payload(), some_bytes(100));
  EXPECT_EQ(frames[0].comment, "made up");
  EXPECT_EQ(frames[2].comment, "made up");
  EXPECT_EQ(frames[3].comment, "");
  EXPECT_EQ(frames[9].comment, "over");
}

TEST_P(TcpFlowTest, WhatIsCutCountsAllTheSame) {
  segment(From::kServer, some_bytes(100), 4);
  segment(From::kServer, some_bytes(7), 0);
  segment(From::kServer, some_bytes(9));
  const auto& frames = sink_.frames;
  EXPECT_EQ(frames[0].payload(), some_bytes(4));
  EXPECT_EQ(frames[0].payload_bytes(), 100u);
  EXPECT_EQ(frames[1].payload(), "");
  EXPECT_EQ(frames[1].payload_bytes(), 7u);
  EXPECT_EQ(frames[1].sequence(), frames[0].sequence() + 100);
  EXPECT_EQ(frames[2].sequence(), frames[1].sequence() + 7);
  frames[2].check();
  // The checksum of one that was cut is that of the whole.
  CapturedFrame whole = frames[0];
  whole.bytes += some_bytes(100).substr(4);
  whole.check();
}

TEST_P(TcpFlowTest, AStreamIsCutIntoSegments) {
  const std::string data = some_bytes(2 * TcpFlow::kMostPayload + 11);
  const ByteSpan piece = as_bytes(data);
  flow_.stream(From::kClient, {&piece, 1}, data.size());
  ASSERT_EQ(sink_.frames.size(), 3u);
  std::string all;
  for (const CapturedFrame& frame : sink_.frames) {
    frame.check();
    EXPECT_EQ(frame.sequence(), sink_.frames[0].sequence() + all.size());
    all += frame.payload();
  }
  EXPECT_EQ(all, data);

  sink_.frames.clear();
  flow_.stream(From::kClient, {&piece, 1}, TcpFlow::kMostPayload + 2);
  ASSERT_EQ(sink_.frames.size(), 3u);
  EXPECT_EQ(sink_.frames[0].payload().size(), TcpFlow::kMostPayload);
  EXPECT_EQ(sink_.frames[1].payload().size(), 2u);
  EXPECT_EQ(sink_.frames[1].payload_bytes(), TcpFlow::kMostPayload);
  EXPECT_EQ(sink_.frames[2].payload().size(), 0u);
  EXPECT_EQ(sink_.frames[2].payload_bytes(), 11u);
}

TEST_P(TcpFlowTest, AConnectionOfTheSameAddressesBeginsElsewhere) {
  flow_.open("");
  TcpFlow second(address(7, 700), address(1, 20049), 4, sink_);
  second.open("");
  EXPECT_NE(sink_.frames[0].sequence(), sink_.frames[3].sequence());
  EXPECT_NE(sink_.frames[1].sequence(), sink_.frames[4].sequence());
}

INSTANTIATE_TEST_SUITE_P(Families, TcpFlowTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "IPv6" : "IPv4"; });

}  // namespace
}  // namespace nfsrdma
