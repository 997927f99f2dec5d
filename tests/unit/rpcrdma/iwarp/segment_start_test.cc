// SPDX-License-Identifier: Apache-2.0
// siw loses its place when a header is cut by the end of a TCP segment, and takes a checksum that
// is cut for a wrong one. So towards it every FPDU begins a segment, what must be whole is whole,
// and start-up frames travel alone. Looked at in the very segments, with a peer that announces a
// small maximum segment size, one that reads slowly, and one whose path becomes narrower.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "rpcrdma/iwarp/socket.h"
#include "rpcrdma/iwarp/tcp_driver.h"
#include "tests/unit/rpcrdma/iwarp/loopback_capture.h"
#include "tests/unit/rpcrdma/iwarp/raw_peer.h"
#include "tests/unit/rpcrdma/iwarp/vectors.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr std::size_t kReply = 32;
/// What Linux adds to a header when the peer knows timestamps.
constexpr std::uint32_t kTimestamps = 12;
constexpr std::size_t kReadRequest = kUntaggedHeader + kReadRequestBody;

struct SeenFpdu {
  std::size_t at;
  std::size_t size;
  FpduHeader header;
};

class SegmentStart : public RawPeerTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(capture_.start(1500), "") << "why segments cannot be looked at here";
    start();
    listen();
    ours_.private_data = from_hex("f6ab0e18 01010303");
    ours_.outbound_reads = 32;
    ours_.send_depth = 512;
  }
  struct PeerOptions {
    int segment = 0;
    int receive_buffer = 0;
    const char* request = kLinuxRequest;
  };
  /// A Linux client that says hello, so that we may speak.
  void dial_as(const PeerOptions& options, const char* hello) {
    peer_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (options.segment != 0) {
      ::setsockopt(peer_.get(), IPPROTO_TCP, TCP_MAXSEG, &options.segment, sizeof(int));
    }
    if (options.receive_buffer != 0) {
      ::setsockopt(peer_.get(), SOL_SOCKET, SO_RCVBUF, &options.receive_buffer, sizeof(int));
    }
    ASSERT_EQ(::connect(peer_.get(), listener_->address().data(), listener_->address().length()),
              0);
    say(peer_, options.request);
    hear(peer_, kReply);
    say(peer_, hello);
    ASSERT_TRUE(until([&] { return ours_.established == 1; }));
  }
  void dial_as(const PeerOptions& options) { dial_as(options, kEmptyWriteNoCrc); }

  void post_when_there_is_room(const std::function<bool()>& post) {
    bool posted = false;
    ASSERT_TRUE(until([&] { return posted = posted || post(); }));
  }
  void post_send(std::size_t size) {
    const Sge sge = ours_.text(std::string(size, 's'));
    post_when_there_is_room([&] { return ours_.send(1, sge).ok(); });
  }
  void post_write(std::size_t size) {
    const Sge sge = ours_.text(std::string(size, 'w'));
    WorkRequest request;
    request.wr_id = 2;
    request.opcode = WorkOpcode::kWrite;
    request.sges = {&sge, 1};
    request.remote_handle = 0x1234;
    post_when_there_is_room([&] { return ours_.post(request).ok(); });
  }
  void post_read() {
    if (sink_.bytes().empty()) sink_ = ours_.expose(sink_bytes_, Access::kReadSink);
    const Sge sge{sink_.bytes().data(), 64, sink_.lkey()};
    WorkRequest request;
    request.wr_id = 3;
    request.opcode = WorkOpcode::kRead;
    request.sges = {&sge, 1};
    request.read_sink = &sink_;
    request.remote_handle = 0x4321;
    ASSERT_TRUE(ours_.post(request).ok());
  }
  void post_mixed_work() {
    for (std::size_t i = 0; i < 24; ++i) {
      post_write(100 + i * 997);
      for (std::size_t n = 0; n < 6; ++n)
        post_send(1 + (i * 97 + n * 61) % 470);
      post_read();
      post_write(1 + i);
    }
  }
  int our_fd() { return static_cast<IwarpQueuePair&>(*ours_.queue_pair).fd(); }
  void limit_our_send_buffer(int size) {
    ::setsockopt(our_fd(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  }
  /// What the peer would still take, once everything sent is acknowledged.
  std::size_t peers_window() {
    int unacknowledged = 1;
    until([&] { return ::ioctl(our_fd(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0; });
    EXPECT_EQ(unacknowledged, 0);
    tcp_info info{};
    socklen_t length = sizeof info;
    EXPECT_EQ(::getsockopt(our_fd(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    return info.tcpi_snd_wnd;
  }
  /// Sends until the peer, which does not read, would take the front of a Read Request and no more.
  void close_window_inside_a_read_request() {
    for (std::size_t window = peers_window(); window >= kReadRequest; window = peers_window()) {
      const std::size_t total =
          std::clamp<std::size_t>((window - 28) & ~std::size_t{3}, 28, kMaxSend);
      post_send(total - kUntaggedHeader - kMpaCrcSize);
      ++expected_completions_;
      turn();
    }
  }

  /// Reads, `step` bytes a turn, until everything is done; answers Reads meanwhile.
  void read_to_the_end(std::size_t step) {
    std::vector<char> buffer(step);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool more = true;
    while ((more || ours_.done.size() < expected_completions_) &&
           std::chrono::steady_clock::now() < end) {
      more = ::recv(peer_.get(), buffer.data(), step, MSG_DONTWAIT) > 0;
      answer_reads();
      loop_->turn(std::chrono::milliseconds(more ? 0 : 1));
    }
    ASSERT_EQ(ours_.done.size(), expected_completions_);
  }
  void answer_reads() {
    const std::vector<SeenFpdu> fpdus = complete_fpdus();
    for (; answered_ < fpdus.size(); ++answered_) {
      const SeenFpdu& fpdu = fpdus[answered_];
      if (!is_read_request(fpdu)) continue;
      const ReadRequestBody body =
          load_read_request(stream().bytes.data() + fpdu.at + kUntaggedHeader);
      say(peer_,
          to_hex(make_fpdu(tagged(RdmapOpcode::kReadResponse, body.sink_stag, body.sink_offset),
                           counting(body.size), ours_.queue_pair->info().crc)));
    }
  }

  /// What we sent, FPDU by FPDU; ours begin behind the MPA Reply.
  std::vector<SeenFpdu> seen() {
    std::vector<SeenFpdu> fpdus = complete_fpdus();
    EXPECT_FALSE(fpdus.empty());
    const std::size_t end = fpdus.empty() ? kReply : fpdus.back().at + fpdus.back().size;
    EXPECT_EQ(end, stream().bytes.size()) << "the stream ends inside an FPDU";
    return fpdus;
  }
  std::vector<SeenFpdu> complete_fpdus() {
    capture_.look();
    const SegmentedStream& stream = this->stream();
    std::vector<SeenFpdu> fpdus;
    std::size_t at = kReply;
    while (at + kTaggedHeader <= stream.bytes.size()) {
      SeenFpdu fpdu{at, 0, load_fpdu_header(stream.bytes.data() + at)};
      const std::size_t front = kMpaLengthSize + fpdu.header.ulpdu_length;
      fpdu.size = front + fpdu_trailer(front);
      if (at + fpdu.size > stream.bytes.size()) break;
      fpdus.push_back(fpdu);
      at += fpdu.size;
    }
    return fpdus;
  }
  const SegmentedStream& stream() { return capture_.from_port(listener_->address().port()); }

  static bool is_read_request(const SeenFpdu& fpdu) {
    return !fpdu.header.tagged() && fpdu.header.queue == kQueueReadRequest;
  }
  static constexpr std::size_t kMaxSend = 524;
  static constexpr char kEmptyWriteNoCrc[] = "000ec140 00000000 00000000 00000000 00000000";
  LoopbackCapture capture_;
  UniqueFd peer_;
  std::vector<std::byte> sink_bytes_ = std::vector<std::byte>(64);
  MemoryRegion sink_;
  std::size_t expected_completions_ = 24 * 9;
  std::size_t answered_ = 0;
};

TEST_F(SegmentStart, ReplyTravelsAloneAndWhole) {
  dial_as({});
  post_send(40);
  ASSERT_TRUE(until([&] { return ours_.done.size() == 1; }));
  const std::vector<SeenFpdu> fpdus = seen();
  ASSERT_EQ(fpdus.size(), 1u);
  EXPECT_EQ(stream().segments.front().size, kReply);
}

TEST_F(SegmentStart, HoldsWithSmallSegments) {
  constexpr int kSegment = 536;
  dial_as({kSegment});
  post_mixed_work();
  read_to_the_end(65536);
  std::size_t largest = 0;
  for (const SeenFpdu& fpdu : seen()) {
    ASSERT_TRUE(stream().starts_segment(fpdu.at)) << fpdu.at;
    largest = std::max(largest, fpdu.size);
    if (fpdu.header.tagged()) continue;
    ASSERT_LE(fpdu.size, kSegment - kTimestamps);
    ASSERT_TRUE(stream().in_one_segment(fpdu.at, fpdu.size)) << fpdu.at;
  }
  // Large tagged ones all the same: siw takes them, and each saves it 44 headers.
  EXPECT_GT(largest, 20'000u);
}

TEST_F(SegmentStart, HoldsWithAReceiverThatReadsSlowly) {
  dial_as({536, 8192});
  limit_our_send_buffer(8192);
  post_mixed_work();
  read_to_the_end(1000);
  const std::vector<SeenFpdu> fpdus = seen();
  EXPECT_GE(fpdus.size(), expected_completions_);
  for (const SeenFpdu& fpdu : fpdus) {
    ASSERT_TRUE(stream().starts_segment(fpdu.at)) << fpdu.at;
    if (is_read_request(fpdu)) {
      ASSERT_TRUE(stream().in_one_segment(fpdu.at, kReadRequest)) << fpdu.at;
    }
  }
}

TEST_F(SegmentStart, ReadRequestWaitsForAWindowThatTakesIt) {
  dial_as({536, 8192});
  expected_completions_ = 0;
  close_window_inside_a_read_request();
  ASSERT_GT(peers_window(), 16u) << "siw takes a header that is cut before";
  ASSERT_LT(peers_window(), kReadRequest);
  post_read();
  post_send(40);
  expected_completions_ += 2;
  // The kernel's first probe into a small window comes after 200 ms, and takes what fits.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < end)
    turn();
  read_to_the_end(65536);
  const std::vector<SeenFpdu> fpdus = seen();
  ASSERT_EQ(std::count_if(fpdus.begin(), fpdus.end(), is_read_request), 1);
  const SeenFpdu& read = *std::find_if(fpdus.begin(), fpdus.end(), is_read_request);
  EXPECT_TRUE(stream().in_one_segment(read.at, kReadRequest));
  EXPECT_NE(read.at, fpdus.back().at) << "what was posted behind it overtook it";
}

TEST_F(SegmentStart, WithCrcNoFpduIsCut) {
  dial_as({536, 0, "4d504120 49442052 65712046 72616d65 5002000c 00800000 f6ab0e18 01010303"},
          kWriteEmpty);
  post_mixed_work();
  read_to_the_end(65536);
  const std::vector<SeenFpdu> fpdus = seen();
  EXPECT_GT(fpdus.size(), 500u);
  for (const SeenFpdu& fpdu : fpdus) {
    ASSERT_TRUE(stream().starts_segment(fpdu.at)) << fpdu.at;
    ASSERT_TRUE(stream().in_one_segment(fpdu.at, fpdu.size)) << fpdu.at;
  }
}

TEST_F(SegmentStart, HoldsWhenThePathBecomesNarrower) {
  dial_as({});
  expected_completions_ = 1200;
  for (int i = 0; i < 600; ++i)
    post_send(16);
  capture_.set_mtu(700);
  // The size of a segment is asked for every now and then.
  for (int i = 0; i < 600; ++i)
    post_send(16);
  read_to_the_end(65536);
  const std::size_t before = seen().back().at;
  post_send(1300);
  post_write(3000);
  expected_completions_ += 2;
  read_to_the_end(65536);
  for (const SeenFpdu& fpdu : seen()) {
    ASSERT_TRUE(stream().starts_segment(fpdu.at)) << fpdu.at;
    if (fpdu.at <= before || fpdu.header.tagged()) continue;
    ASSERT_LE(fpdu.size, 700u);
    ASSERT_TRUE(stream().in_one_segment(fpdu.at, fpdu.size)) << fpdu.at;
  }
}

TEST_F(SegmentStart, TerminateIsOneSegment) {
  dial_as({536});
  for (int i = 0; i < 20; ++i)
    post_send(100);
  ASSERT_TRUE(until([&] { return ours_.done.size() == 20; }));
  // A Write to memory that nobody exposed.
  say(peer_, "000fc140 1122aa55 00000000 00001000 01000000 00000000");
  ASSERT_TRUE(until([&] { return ours_.disconnected == 1; }));
  const SeenFpdu last = seen().back();
  EXPECT_EQ(last.header.queue, kQueueTerminate);
  EXPECT_TRUE(stream().starts_segment(last.at));
  EXPECT_TRUE(stream().in_one_segment(last.at, last.size));
}

TEST(ReadRequestRoom, OurBufferCountsToo) {
  SocketAddress address;
  const UniqueFd listener = nfsrdma::test::listen_on_loopback(&address);
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int small = 8192, on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  ASSERT_EQ(::connect(fd.get(), address.data(), address.length()), 0);
  EXPECT_TRUE(sent_in_one_piece(fd.get(), 0));
  // The window stays open: the kernel holds this back, for 200 ms.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
  const std::vector<char> much(12'000);
  bool in_one_piece = true;
  int held = 0;
  for (int i = 0; i < 3 && held == 0; ++i) {
    EXPECT_GT(::send(fd.get(), much.data(), much.size(), MSG_DONTWAIT), 0);
    in_one_piece = sent_in_one_piece(fd.get(), 0);
    ASSERT_EQ(::ioctl(fd.get(), SIOCOUTQNSD, &held), 0);
  }
  EXPECT_GT(held, 0);
  EXPECT_FALSE(in_one_piece);
}

class RequestSegment : public RawPeerTest {};

TEST_F(RequestSegment, RequestTravelsAloneAndWhole) {
  LoopbackCapture capture;
  ASSERT_EQ(capture.start(1500), "") << "why segments cannot be looked at here";
  start();
  ours_.private_data = from_hex("f6ab0e18 01010303");
  UniqueFd listener = raw_listen();
  connect();
  UniqueFd fd = raw_accept(listener);
  hear(fd, 40);
  // Nothing follows before the Reply: siw takes more bytes than the frame has for an error.
  EXPECT_TRUE(hears_nothing(fd));
  sockaddr_in from{};
  socklen_t length = sizeof from;
  ASSERT_EQ(::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&from), &length), 0);
  capture.look();
  const SegmentedStream& stream = capture.from_port(ntohs(from.sin_port));
  ASSERT_EQ(stream.segments.size(), 1u);
  EXPECT_EQ(stream.segments.front().size, 40u);
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
