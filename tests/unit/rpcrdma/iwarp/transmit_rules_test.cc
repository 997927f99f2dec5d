// SPDX-License-Identifier: Apache-2.0
// What siw takes for granted in a stream, looked for in streams of random work, sent in random
// pieces: whole messages back to back, no empty piece of a longer message, contiguous offsets,
// responses in the order and size of their requests, no more Reads than the peer has room for.
#include <deque>
#include <random>

#include "tests/unit/rpcrdma/iwarp/engine_pair.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr std::uint32_t kSourceStag = 0x7701;
constexpr std::size_t kSourceSize = 4096;
constexpr std::uint32_t kOrd = 3;

struct NoDomain final : ProtectionDomain {
  Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
    return Error{};
  }
  void deregister(MemoryRegion&) override {}
};

/// Looks at one FPDU after the other as siw does.
class StrictPeer {
 public:
  struct Expected {  // a Read Request that we made
    std::uint32_t stag = 0;
    std::uint64_t offset = 0;
    std::uint32_t size = 0;
  };
  std::deque<Expected> requested;         // by us, not answered yet
  std::deque<ReadRequestBody> to_answer;  // by the engine, not answered yet
  std::size_t messages = 0;
  std::size_t most_reads = 0;

  void take(ByteSpan bytes) {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    while (pending_.size() >= kFpduPeek) {
      const std::size_t front = kMpaLengthSize + load_be16(pending_.data());
      if (pending_.size() < kMaxFpduHeader || pending_.size() < front + fpdu_trailer(front)) return;
      const FpduHeader header = load_fpdu_header(pending_.data());
      ASSERT_GE(front, header.size());
      look_at(header);
      if (testing::Test::HasFatalFailure()) return;
      pending_.erase(pending_.begin(),
                     pending_.begin() + static_cast<long>(front + fpdu_trailer(front)));
    }
  }
  bool between_messages() const { return !open_ && pending_.empty(); }

 private:
  void look_at(const FpduHeader& header) {
    ASSERT_EQ(header.ddp_version(), kDdpVersion);
    ASSERT_EQ(header.rdmap_control & kRdmapVersionMask, kRdmapVersion);
    const unsigned opcode = header.rdmap_control & kRdmapOpcodeMask;
    ASSERT_LE(opcode, static_cast<unsigned>(RdmapOpcode::kTerminate));
    const std::uint32_t payload = header.payload();
    ASSERT_TRUE(payload > 0 || header.last()) << "an empty piece that is not the last";
    if (open_) {
      ASSERT_EQ(header.rdmap_control, first_.rdmap_control) << "another message inside a message";
      ASSERT_EQ(header.tagged(), first_.tagged());
    } else {
      first_ = header;
      so_far_ = 0;
    }
    if (header.tagged()) {
      ASSERT_EQ(header.stag, first_.stag);
      ASSERT_EQ(header.offset, first_.offset + so_far_);
    } else {
      std::uint32_t& msn = header.queue == kQueueSend ? send_msn_ : read_msn_;
      ASSERT_LE(header.queue, kQueueReadRequest);
      ASSERT_EQ(header.msn, msn);
      ASSERT_EQ(header.message_offset, so_far_);
      if (header.last()) ++msn;
    }
    so_far_ += payload;
    if (header.rdmap_control == (kRdmapVersion | static_cast<int>(RdmapOpcode::kReadRequest))) {
      ASSERT_TRUE(header.last());
      ASSERT_EQ(payload, kReadRequestBody);
      to_answer.push_back(load_read_request(pending_.data() + kUntaggedHeader));
      most_reads = std::max(most_reads, to_answer.size());
    }
    if (header.rdmap_control == (kRdmapVersion | static_cast<int>(RdmapOpcode::kReadResponse))) {
      ASSERT_FALSE(requested.empty());
      ASSERT_EQ(first_.stag, requested.front().stag);
      ASSERT_EQ(first_.offset, requested.front().offset);
      ASSERT_LE(so_far_, requested.front().size);
      if (header.last()) {
        ASSERT_EQ(so_far_, requested.front().size);
        requested.pop_front();
      }
    }
    open_ = !header.last();
    if (header.last()) ++messages;
  }

  std::vector<std::byte> pending_;
  bool open_ = false;
  FpduHeader first_;
  std::uint32_t so_far_ = 0;
  std::uint32_t send_msn_ = 1;
  std::uint32_t read_msn_ = 1;
};

class TransmitRules : public testing::TestWithParam<unsigned> {
 protected:
  TransmitRules() : random_(GetParam()), rig_(options()), data_(counting(5000)), sink_(3000) {
    rig_.stags.add(kSourceStag, 0, kSourceSize, Access::kRemoteRead);
    rig_.stags.add(1, 0, sink_.size(), Access::kReadSink);
    rig_.engine.set_payload_sizes(128, 92);
  }
  static EngineOptions options() {
    EngineOptions out;
    out.initiator = true;
    out.ord = kOrd;
    out.ird = 4;
    return out;
  }
  std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  void post_something() {
    Sge sge{data_.data(), below(4) == 0 ? 128 * below(5) : below(1000), 0};
    WorkRequest request;
    request.sges = {&sge, 1};
    switch (below(4)) {
      case 0:
        request.opcode = WorkOpcode::kSend;
        break;
      case 1:
        request.opcode = WorkOpcode::kSendWithInvalidate;
        request.remote_handle = 0x99;
        break;
      case 2:
        request.opcode = WorkOpcode::kWrite;
        request.remote_handle = below(1000) + 2;
        request.remote_offset = random_();
        break;
      default:
        request.opcode = WorkOpcode::kRead;
        request.read_sink = &region_;
        sge = {sink_.data(), 1 + below(sink_.size()), 0};
        break;
    }
    std::size_t posted = 0;
    [[maybe_unused]] Result<void> full = rig_.engine.post({&request, 1}, &posted);
  }
  void ask_for_a_read() {
    if (peer_.requested.size() == 4) return;
    const ReadRequestBody body{0x1000 + next_request_, random_(), below(700), kSourceStag, 0};
    std::vector<std::byte> raw(kReadRequestBody);
    store_read_request(raw.data(), body);
    peer_.requested.push_back({body.sink_stag, body.sink_offset, body.size});
    const auto fpdu = make_fpdu(
        untagged(RdmapOpcode::kReadRequest, kQueueReadRequest, next_request_++), raw, false);
    ASSERT_EQ(rig_.feed(fpdu), ReceiveStatus::kMore);
  }
  void answer_a_read() {
    if (peer_.to_answer.empty()) return;
    const ReadRequestBody request = peer_.to_answer.front();
    const std::uint32_t first = below(request.size + 1);
    if (first > 0) {
      rig_.feed(make_fpdu(
          tagged(RdmapOpcode::kReadResponse, request.sink_stag, request.sink_offset, false),
          counting(first), false));
      // Its place is free when the last byte has come, not before.
      drain_some();
    }
    peer_.to_answer.pop_front();
    rig_.feed(make_fpdu(
        tagged(RdmapOpcode::kReadResponse, request.sink_stag, request.sink_offset + first),
        counting(request.size - first), false));
  }
  void drain_some() {
    rig_.engine.fill(*rig_.transmit);
    if (rig_.transmit->fpdu_count == 0) return;
    // As much as a socket that is nearly full takes.
    std::size_t left = 1 + below(rig_.transmit->bytes);
    std::vector<std::byte> out;
    for (std::size_t i = 0; left > 0; ++i) {
      const iovec& piece = rig_.transmit->iov[i];
      const std::size_t n = std::min(left, piece.iov_len);
      const auto* base = static_cast<const std::byte*>(piece.iov_base);
      out.insert(out.end(), base, base + n);
      left -= n;
    }
    rig_.engine.on_sent(out.size());
    peer_.take(out);
  }

  std::mt19937 random_;
  EngineRig rig_;
  std::vector<std::byte> data_;
  std::vector<std::byte> sink_;
  NoDomain domain_;
  MemoryRegion region_{domain_, sink_, 0, 1, 0, 0};
  StrictPeer peer_;
  std::uint32_t next_request_ = 1;
};

TEST_P(TransmitRules, HoldInStreamsOfRandomWork) {
  for (int step = 0; step < 3000; ++step) {
    switch (below(5)) {
      case 0:
        post_something();
        break;
      case 1:
        ask_for_a_read();
        break;
      case 2:
        answer_a_read();
        break;
      default:
        drain_some();
        break;
    }
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "step " << step;
    ASSERT_FALSE(rig_.engine.failed()) << rig_.engine.failure().where;
  }
  for (int i = 0; i < 10'000 && rig_.engine.has_work(); ++i) {
    drain_some();
    answer_a_read();
  }
  for (int i = 0; i < 1000; ++i)
    drain_some();
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  EXPECT_TRUE(peer_.between_messages());
  EXPECT_TRUE(peer_.requested.empty());
  EXPECT_GT(peer_.messages, 300u);
  EXPECT_EQ(peer_.most_reads, kOrd);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TransmitRules, testing::Range(1u, 9u));

}  // namespace
}  // namespace nfsrdma::iwarp::test
