// SPDX-License-Identifier: Apache-2.0
// MPA, DDP and RDMAP around what crosses an RDMA connection, byte by byte as the RFCs have it.
#include <gtest/gtest.h>

#include "captured_frame.h"
#include "server/capture/mpa_flow.h"

namespace nfsrdma {
namespace {

using From = MpaFlow::From;
using test::some_bytes;

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values)
    out += static_cast<char>(value);
  return out;
}

class MpaFlowTest : public testing::Test {
 protected:
  void send(From from, const std::string& message, std::optional<std::uint32_t> invalidated = {}) {
    const ByteSpan piece = as_bytes(message);
    flow_.send(from, {&piece, 1}, invalidated);
  }
  void write(std::uint32_t handle, std::uint64_t offset, const std::string& data,
             std::size_t kept = ~std::size_t{0}) {
    const ByteSpan piece = as_bytes(data);
    flow_.write(handle, offset, {&piece, 1}, kept);
  }
  std::string payload(std::size_t frame) const { return sink_.frames.at(frame).payload(); }

  test::RecordingSink sink_;
  TcpFlow tcp_{SocketAddress::parse("192.0.2.7", 700).value(),
               SocketAddress::parse("192.0.2.1", 20049).value(), 1, sink_};
  MpaFlow flow_{tcp_};
};

TEST_F(MpaFlowTest, RequestAndReplyAskForNeitherMarkersNorCrc) {
  flow_.open({4096, 8192, true}, {8192, 4096, false}, "made up");
  ASSERT_EQ(sink_.frames.size(), 2u);
  EXPECT_FALSE(sink_.frames[0].outbound);
  EXPECT_EQ(payload(0), "MPA ID Req Frame" + bytes({0, 1, 0, 8,              // flags, revision
                                                    0xf6, 0xab, 0x0e, 0x18,  // RFC 8797
                                                    1, 1, 3, 7}));
  EXPECT_TRUE(sink_.frames[1].outbound);
  EXPECT_EQ(payload(1),
            "MPA ID Rep Frame" + bytes({0, 1, 0, 8, 0xf6, 0xab, 0x0e, 0x18, 1, 0, 7, 3}));
  EXPECT_EQ(sink_.frames[1].comment, "made up");
}

TEST_F(MpaFlowTest, ASendIsOneSegmentOfQueueZero) {
  send(From::kClient, "hello");
  EXPECT_EQ(payload(0), bytes({0,    23,                            // DDP header and data
                               0x41, 0x43, 0,   0,   0,   0,        // last, Send
                               0,    0,    0,   0,   0,   0, 0, 1,  // queue, message
                               0,    0,    0,   0,                  // offset in it
                               'h',  'e',  'l', 'l', 'o',           //
                               0,    0,    0,   0,   0,   0, 0}));  // padding, CRC
  sink_.frames[0].check();
}

TEST_F(MpaFlowTest, EachSideCountsItsOwnMessages) {
  send(From::kClient, "aaaa");
  send(From::kServer, "bbbb");
  send(From::kClient, "cccc");
  EXPECT_EQ(payload(1).substr(12, 4), bytes({0, 0, 0, 1}));
  EXPECT_EQ(payload(2).substr(12, 4), bytes({0, 0, 0, 2}));
  EXPECT_TRUE(sink_.frames[1].outbound);
}

TEST_F(MpaFlowTest, ASendThatInvalidatesNamesTheHandle) {
  send(From::kServer, "abcd", 0x01020304);
  EXPECT_EQ(payload(0).substr(2, 6), bytes({0x41, 0x44, 1, 2, 3, 4}));
}

TEST_F(MpaFlowTest, ALongSendGoesOnInTheNextSegment) {
  const std::string message = some_bytes(MpaFlow::kSegmentPayload + 5);
  send(From::kClient, message);
  ASSERT_EQ(sink_.frames.size(), 2u);
  EXPECT_EQ(payload(0)[2], 0x01) << "not the last";
  EXPECT_EQ(payload(1)[2], 0x41);
  EXPECT_EQ(payload(1).substr(12, 8), bytes({0, 0, 0, 1, 0, 0, 0x7f, 0xe0}));
  EXPECT_EQ(payload(0).substr(20, MpaFlow::kSegmentPayload) + payload(1).substr(20, 5), message);
}

TEST_F(MpaFlowTest, AWriteIsTagged) {
  write(0xaabbccdd, 0x1122334455667788, "abcdef");
  EXPECT_EQ(payload(0), bytes({0,    20,                                        // length
                               0xc1, 0x40, 0xaa, 0xbb, 0xcc, 0xdd,              // last, Write
                               0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,  //
                               'a',  'b',  'c',  'd',  'e',  'f',  0,    0,    0, 0, 0, 0}));
  EXPECT_TRUE(sink_.frames[0].outbound);
}

TEST_F(MpaFlowTest, ALongWriteGoesOnAtItsOffset) {
  const std::string data = some_bytes(2 * MpaFlow::kSegmentPayload + 1);
  write(7, 0xfffffff0, data);
  ASSERT_EQ(sink_.frames.size(), 3u);
  std::string all;
  for (std::size_t i = 0; i < 3; ++i) {
    sink_.frames[i].check();
    const std::string segment = payload(i);
    const std::size_t size = load_be16(as_bytes(segment).data()) - std::size_t{14};
    EXPECT_EQ(load_be64(as_bytes(segment).data() + 8), 0xfffffff0 + all.size());
    EXPECT_EQ(static_cast<std::uint8_t>(segment[2]), i == 2 ? 0xc1 : 0x81);
    EXPECT_EQ(segment.size() % 4, 0u);
    all += segment.substr(16, size);
  }
  EXPECT_EQ(all, data);
}

TEST_F(MpaFlowTest, OfAWriteTheFirstBytesAreKept) {
  const std::string data = some_bytes(MpaFlow::kSegmentPayload + 100);
  write(7, 0, data, 10);
  ASSERT_EQ(sink_.frames.size(), 2u);
  EXPECT_EQ(payload(0).size(), 16u + 10);
  EXPECT_EQ(payload(0).substr(16), data.substr(0, 10));
  EXPECT_EQ(sink_.frames[0].payload_bytes(), 16 + MpaFlow::kSegmentPayload + 4);
  EXPECT_EQ(payload(1).size(), 16u);
  EXPECT_EQ(sink_.frames[1].payload_bytes(), 16u + 100 + 4);
  write(7, 0, "abcd", 4);
  EXPECT_EQ(sink_.frames[2].bytes.size(), sink_.frames[2].original_length) << "nothing to cut";
}

TEST_F(MpaFlowTest, AReadRequestAndItsResponse) {
  flow_.read_request({0x01020304, 0x10, 6, 0x0a0b0c0d, 0x20});
  EXPECT_TRUE(sink_.frames[0].outbound);
  EXPECT_EQ(payload(0), bytes({0,  46, 0x41, 0x41, 0, 0, 0, 0,                 // Read Request
                               0,  0,  0,    1,    0, 0, 0, 1, 0, 0, 0, 0,     // queue one
                               1,  2,  3,    4,    0, 0, 0, 0, 0, 0, 0, 0x10,  // sink
                               0,  0,  0,    6,                                // bytes
                               10, 11, 12,   13,   0, 0, 0, 0, 0, 0, 0, 0x20,  // source
                               0,  0,  0,    0}));
  const std::string data = "abcdef";
  flow_.read_response(0x01020304, 0x10, as_bytes(data), 6);
  EXPECT_FALSE(sink_.frames[1].outbound);
  EXPECT_EQ(payload(1), bytes({0,   20,  0xc1, 0x42, 1,   2,   3, 4, 0, 0, 0, 0, 0, 0, 0, 0x10,  //
                               'a', 'b', 'c',  'd',  'e', 'f', 0, 0, 0, 0, 0, 0}));
  flow_.read_request({5, 0, 6, 6, 0});
  EXPECT_EQ(payload(2).substr(12, 4), bytes({0, 0, 0, 2}));
}

}  // namespace
}  // namespace nfsrdma
