// SPDX-License-Identifier: Apache-2.0
// What one connection's tap writes, and what is done about who reads too slowly.
#include "server/capture/capture_tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "captured_frame.h"
#include "fake_call.h"
#include "server/capture/shard_capture.h"

namespace nfsrdma {
namespace {

using test::CapturedFrame;
using test::some_bytes;
using ::testing::HasSubstr;

template <typename T>
T number_at(const std::string& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Takes the packet blocks of a batch apart.
std::vector<CapturedFrame> frames_of(const std::string& blocks) {
  std::vector<CapturedFrame> frames;
  for (std::size_t at = 0; at < blocks.size();) {
    const auto length = number_at<std::uint32_t>(blocks, at + 4);
    EXPECT_EQ(number_at<std::uint32_t>(blocks, at), 6u);
    const auto kept = number_at<std::uint32_t>(blocks, at + 20);
    CapturedFrame frame;
    frame.original_length = number_at<std::uint32_t>(blocks, at + 24);
    frame.bytes = blocks.substr(at + 28, kept);
    const std::size_t flags = at + 28 + (kept + 3) / 4 * 4;
    frame.outbound = number_at<std::uint32_t>(blocks, flags + 4) == 2;
    if (number_at<std::uint16_t>(blocks, flags + 8) == 1) {
      frame.comment = blocks.substr(flags + 12, number_at<std::uint16_t>(blocks, flags + 10));
    }
    frames.push_back(std::move(frame));
    at += length;
  }
  return frames;
}

class CaptureTapTest : public testing::Test {
 protected:
  CaptureTapTest() {
    connection_.id = 12;
    connection_.transport = TransportKind::kVerbs;
    connection_.device = "mlx5_0";
    connection_.local = SocketAddress::parse("192.0.2.1", 20049).value();
    connection_.peer = SocketAddress::parse("192.0.2.7", 5000).value();
    connection_.inline_send = 4096;
    connection_.inline_recv = 8192;
    connection_.remote_invalidation = true;
  }
  void tap(std::uint64_t snap = CaptureFilter::kAll, bool fresh = false) {
    tap_ = std::make_unique<CaptureTap>(connection_, fresh, snap, buffer_);
  }
  /// Since last asked.
  std::vector<CapturedFrame> frames() {
    buffer_.flush();
    std::vector<CapturedFrame> all;
    for (const auto& batch : batches_) {
      for (CapturedFrame& frame : frames_of(batch->blocks))
        all.push_back(std::move(frame));
    }
    batches_.clear();
    return all;
  }
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::shared_ptr<CaptureRoom> under_way_ = std::make_shared<CaptureRoom>(0);
  std::vector<std::shared_ptr<const CaptureBatch>> batches_;
  CaptureBuffer buffer_{*loop_, under_way_, [this](std::shared_ptr<const CaptureBatch> batch) {
                          batches_.push_back(std::move(batch));
                        }};
  ConnectionInfo connection_;
  std::unique_ptr<CaptureTap> tap_;
};

TEST_F(CaptureTapTest, WhatWasBeforeIsMadeUpAndSaysSo) {
  tap();
  const auto made_up = frames();
  ASSERT_EQ(made_up.size(), 5u);  // TCP's three and MPA's two
  for (const CapturedFrame& frame : made_up) {
    frame.check();
    EXPECT_EQ(frame.comment, "connection 12 over verbs (mlx5_0); made up: the capture began later");
  }
  // What the client may send is what we take, and the other way round.
  EXPECT_EQ(made_up[3].payload().substr(24), std::string("\1\1\7\3"));
  EXPECT_EQ(made_up[4].payload().substr(24), std::string("\1\1\3\7"));

  tap(CaptureFilter::kAll, true);
  EXPECT_THAT(frames()[0].comment, HasSubstr("made up: stands for its set-up"));
}

TEST_F(CaptureTapTest, AddressesAreTheRealOnesAsFarAsTheyAreKnown) {
  EXPECT_EQ(captured_client(connection_).text(), "192.0.2.7:5000");
  EXPECT_EQ(captured_server(connection_).text(), "192.0.2.1:20049");
  connection_.peer = SocketAddress::parse("192.0.2.7", 0).value();
  connection_.local = SocketAddress::parse("192.0.2.1", 0).value();
  EXPECT_EQ(captured_client(connection_).text(), "192.0.2.7:49164");
  EXPECT_EQ(captured_server(connection_).text(), "192.0.2.1:20049");
  connection_.transport = TransportKind::kTcp;
  EXPECT_EQ(captured_server(connection_).text(), "192.0.2.1:2049");
  connection_.peer = SocketAddress::parse("::ffff:192.0.2.9", 6).value();
  EXPECT_EQ(captured_client(connection_).text(), "192.0.2.9:6");
  connection_.peer = SocketAddress::parse("2001:db8::9", 6).value();
  connection_.local = {};
  EXPECT_EQ(captured_server(connection_).text(), "[::]:2049");
  connection_.peer = {};
  EXPECT_EQ(captured_client(connection_).text(), "0.0.0.0:49164");
}

TEST_F(CaptureTapTest, MessagesAndTransfersGoTheirWays) {
  tap();
  frames();
  const std::string call = some_bytes(100), reply = some_bytes(60), data = some_bytes(5000);
  tap_->on_receive(as_bytes(call));
  const ByteSpan halves[] = {as_bytes(data).first(4000), as_bytes(data).subspan(4000)};
  tap_->on_write(0x11, 0x22, halves);
  const ByteSpan message = as_bytes(reply);
  tap_->on_send({&message, 1}, 0x11);
  tap_->close();
  const auto all = frames();
  ASSERT_EQ(all.size(), 6u);
  for (const CapturedFrame& frame : all)
    frame.check();
  EXPECT_FALSE(all[0].outbound);
  EXPECT_EQ(all[0].payload().substr(20, 100), call);
  EXPECT_TRUE(all[1].outbound);
  EXPECT_EQ(all[1].payload().substr(16, 5000), data);
  EXPECT_EQ(all[2].payload().substr(3, 5), std::string("\x44\0\0\0\x11", 5));
  EXPECT_EQ(all[2].payload().substr(20, 60), reply);
  EXPECT_EQ(all[3].comment, "made up: the connection ended");
}

TEST_F(CaptureTapTest, EachReadIsAnsweredUnderAHandleOfItsOwn) {
  tap();
  frames();
  std::string sink = some_bytes(300);
  const auto* room = as_bytes(sink).data();
  tap_->on_read(room, 0x51, 1000, 100);
  tap_->on_read(room + 200, 0x52, 2000, 100);  // not yet done below
  tap_->on_read(room + 100, 0x51, 1100, 100);
  const auto asked = frames();
  ASSERT_EQ(asked.size(), 3u);
  std::map<std::string, std::size_t> handles;
  for (const CapturedFrame& frame : asked)
    ++handles[frame.payload().substr(20, 4)];
  EXPECT_EQ(handles.size(), 3u);

  tap_->on_read_done({room, 200});
  const auto answered = frames();
  ASSERT_EQ(answered.size(), 2u);
  EXPECT_EQ(answered[0].payload().substr(4, 4), asked[0].payload().substr(20, 4));
  EXPECT_EQ(answered[0].payload().substr(16, 100), sink.substr(0, 100));
  EXPECT_EQ(answered[1].payload().substr(4, 4), asked[2].payload().substr(20, 4));
  EXPECT_EQ(answered[1].payload().substr(16, 100), sink.substr(100, 100));

  tap_->on_read_done({room, 200});
  EXPECT_EQ(frames().size(), 0u) << "only once";
  tap_->on_read_done({room + 200, 100});
  EXPECT_EQ(frames().size(), 1u);
}

TEST_F(CaptureTapTest, AReadThatWasAskedForBeforeIsNotAnswered) {
  tap();
  frames();
  const std::string sink = some_bytes(10);
  tap_->on_read_done(as_bytes(sink));
  EXPECT_EQ(frames().size(), 0u);
}

TEST_F(CaptureTapTest, OnTcpARecordHasItsMark) {
  connection_.transport = TransportKind::kTcp;
  tap();
  EXPECT_EQ(frames().size(), 3u) << "no MPA";
  const std::string message = some_bytes(70);
  tap_->on_receive(as_bytes(message));
  const ByteSpan pieces[] = {as_bytes(message).first(4), as_bytes(message).subspan(4)};
  tap_->on_send(pieces, std::nullopt);
  const auto all = frames();
  ASSERT_EQ(all.size(), 2u);
  for (const CapturedFrame& frame : all)
    EXPECT_EQ(frame.payload(), std::string("\x80\0\0\x46", 4) + message);
}

TEST_F(CaptureTapTest, SnapSparesDataAndNotMessages) {
  tap(8);
  frames();
  const std::string data = some_bytes(3000);
  const ByteSpan piece = as_bytes(data);
  tap_->on_receive(piece);
  tap_->on_write(1, 2, {&piece, 1});
  tap_->on_read(piece.data(), 1, 0, 3000);
  tap_->on_read_done(piece);
  const auto all = frames();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].bytes.size(), all[0].original_length);
  EXPECT_EQ(all[1].payload().size(), 16u + 8);
  EXPECT_EQ(all[1].payload_bytes(), 16u + 3000 + 4);
  EXPECT_EQ(all[2].bytes.size(), all[2].original_length);
  EXPECT_EQ(all[3].payload().size(), 16u + 8);

  connection_.transport = TransportKind::kTcp;
  tap(8);
  frames();
  tap_->on_receive(piece);
  const auto record = frames();
  EXPECT_EQ(record[0].payload().size(), 1024u);
  EXPECT_EQ(record[0].payload_bytes(), 3004u);
}

TEST_F(CaptureTapTest, WhatNobodyTakesIsLostInWholeMessages) {
  tap();
  frames();
  const std::string data = some_bytes(200'000);
  const ByteSpan piece = as_bytes(data);
  const std::size_t segments = 7;
  for (int i = 0; i < 400; ++i)
    tap_->on_write(1, 2, {&piece, 1});
  // What waits may exceed the bound by the message that reached it, and what the buffer has.
  std::size_t waiting = 0, kept = 0;
  for (const auto& batch : batches_) {
    waiting += batch->blocks.capacity();
    kept += batch->packets;
    EXPECT_LE(batch->blocks.size(), CaptureBuffer::kBatch + 40'000);
  }
  EXPECT_GE(waiting, CaptureBuffer::kMostUnderWay);
  EXPECT_LE(waiting, CaptureBuffer::kMostUnderWay + 2 * CaptureBuffer::kBatch);
  buffer_.flush();
  kept = 0;
  std::uint64_t lost = 0;
  for (const auto& batch : batches_) {
    kept += batch->packets;
    lost += batch->lost;
  }
  EXPECT_EQ(kept + lost, 400 * segments);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost % segments, 0u);
  // Sequence numbers went on, so that the gap is seen.
  const std::uint32_t last = frames_of(batches_[batches_.size() - 2]->blocks).back().sequence();
  batches_.clear();
  EXPECT_EQ(under_way_->load(), 0u);
  tap_->on_write(1, 2, {&piece, 1});
  const auto after = frames();
  ASSERT_EQ(after.size(), segments);
  EXPECT_GT(after[0].sequence() - last, lost / segments * 200'000);
}

TEST_F(CaptureTapTest, FewFramesGoSoon) {
  tap();
  for (int i = 0; i < 100 && batches_.empty(); ++i)
    loop_->turn(std::chrono::milliseconds(100));
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0]->packets, 5u);
}

class ShardCaptureTest : public CaptureTapTest {
 protected:
  ShardCapture::Order order(const std::string& request) {
    ShardCapture::Order out;
    std::string problem;
    EXPECT_TRUE(CaptureFilter::parse(*JsonValue::parse(request), &out.filter, &problem)) << problem;
    out.under_way = under_way_;
    out.sink = [this](std::shared_ptr<const CaptureBatch> batch) {
      batches_.push_back(std::move(batch));
    };
    return out;
  }
  bool taps(const std::string& request, test::FakeConnection& connection) {
    ShardCapture capture(*loop_, order(request));
    capture.add(connection, true);
    const bool tapped = connection.tap != nullptr;
    connection.tap.reset();
    return tapped;
  }
  BufferPool pool_{*loop_, std::size_t{8} << 20};
};

TEST_F(ShardCaptureTest, OnlyWhatIsWantedIsTapped) {
  test::FakeConnection connection(*loop_, pool_, "192.0.2.7", 5000);
  EXPECT_TRUE(taps("{}", connection));
  EXPECT_TRUE(taps(R"({"client":"192.0.2.7"})", connection));
  EXPECT_FALSE(taps(R"({"client":"192.0.2.8"})", connection));
  EXPECT_TRUE(taps(R"({"fabric":"tcp"})", connection));
  EXPECT_FALSE(taps(R"({"fabric":"iwarp"})", connection));
  connection.kind = TransportKind::kIwarp;
  EXPECT_TRUE(taps(R"({"fabric":"iwarp","client":"192.0.2.7"})", connection));
}

TEST_F(ShardCaptureTest, TheTapEndsWithItsConnection) {
  ShardCapture capture(*loop_, order("{}"));
  test::FakeConnection connection(*loop_, pool_, "192.0.2.7", 5000);
  capture.add(connection, false);
  capture.flush();
  batches_.clear();
  capture.closed(connection);
  EXPECT_EQ(connection.tap, nullptr);
  capture.flush();
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0]->packets, 3u) << "FIN, FIN, ACK";
  capture.closed(connection);  // one that is not tapped
}

TEST(CaptureFilterTest, WhatItCannotBeIsSaid) {
  auto problem_of = [](const std::string& request) {
    CaptureFilter filter;
    std::string problem;
    EXPECT_FALSE(CaptureFilter::parse(*JsonValue::parse(request), &filter, &problem));
    return problem;
  };
  EXPECT_EQ(problem_of(R"({"client":"host.example"})"),
            "client: 'host.example' is no numeric address");
  EXPECT_EQ(problem_of(R"({"fabric":"token-ring"})"),
            "fabric: 'token-ring' is none of verbs, iwarp, tcp");
}

TEST(CaptureFilterTest, SnapOfNothingIsNotAll) {
  CaptureFilter filter;
  std::string problem;
  ASSERT_TRUE(CaptureFilter::parse(*JsonValue::parse(R"({"snap":0})"), &filter, &problem));
  EXPECT_EQ(filter.snap, 0u);
  CaptureFilter other;
  ASSERT_TRUE(CaptureFilter::parse(*JsonValue::parse("{}"), &other, &problem));
  EXPECT_EQ(other.snap, CaptureFilter::kAll);
}

}  // namespace
}  // namespace nfsrdma
