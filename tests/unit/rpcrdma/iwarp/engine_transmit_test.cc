// SPDX-License-Identifier: Apache-2.0
// Work requests become exactly the FPDUs that they must become.
#include "tests/unit/rpcrdma/iwarp/engine_pair.h"
#include "tests/unit/rpcrdma/iwarp/vectors.h"

namespace nfsrdma::iwarp::test {
namespace {

EngineOptions sender(bool crc = true) {
  EngineOptions options;
  options.initiator = true;
  options.crc = crc;
  options.ord = 4;
  options.ird = 4;
  return options;
}

class Sender : public testing::Test {
 protected:
  explicit Sender(const EngineOptions& options = sender()) : rig_(options) {}

  Result<void> post(WorkOpcode opcode, ByteSpan bytes, std::uint32_t handle = 0,
                    std::uint64_t offset = 0, const MemoryRegion* sink = nullptr) {
    kept_.emplace_back(bytes.begin(), bytes.end());
    Sge sge{kept_.back().data(), static_cast<std::uint32_t>(bytes.size()), 0};
    if (sink != nullptr) sge.address = sink->bytes().data();
    WorkRequest request;
    request.wr_id = ++id_;
    request.opcode = opcode;
    request.sges = {&sge, 1};
    request.remote_handle = handle;
    request.remote_offset = offset;
    request.read_sink = sink;
    std::size_t posted = 0;
    return rig_.engine.post({&request, 1}, &posted);
  }
  std::string drained() { return to_hex(rig_.drain()); }
  void skip_to_msn(std::uint32_t msn) {
    for (std::uint32_t i = 1; i < msn; ++i)
      ASSERT_TRUE(post(WorkOpcode::kSend, {}).ok());
    rig_.drain();
  }

  EngineRig rig_;
  std::uint64_t id_ = 0;
  std::deque<std::vector<std::byte>> kept_;
};

TEST_F(Sender, SendWithPadding) {
  ASSERT_TRUE(post(WorkOpcode::kSend, as_bytes("hello")).ok());
  EXPECT_EQ(drained(), kSendHello);
}
TEST_F(Sender, SendWithoutPadding) {
  ASSERT_TRUE(post(WorkOpcode::kSend, counting(16)).ok());
  EXPECT_EQ(drained(), kSend16);
}
TEST_F(Sender, EmptySend) {
  skip_to_msn(2);
  ASSERT_TRUE(post(WorkOpcode::kSend, {}).ok());
  EXPECT_EQ(drained(), kSendEmptyMsn2);
}
TEST_F(Sender, SendWithInvalidate) {
  skip_to_msn(3);
  ASSERT_TRUE(post(WorkOpcode::kSendWithInvalidate, counting(16), 0x00123456).ok());
  EXPECT_EQ(drained(), kSendInvalidateMsn3);
}
TEST_F(Sender, Write) {
  ASSERT_TRUE(post(WorkOpcode::kWrite, counting(16), 0xabcdef01, 0x100001000).ok());
  EXPECT_EQ(drained(), kWrite16);
}
TEST_F(Sender, WritesOfAllPaddings) {
  const std::vector<std::byte> data = counting(4, 1);
  const char* expected[] = {kWritePad1, kWritePad2, kWritePad3, kWritePad0};
  for (std::size_t size = 1; size <= 4; ++size) {
    ASSERT_TRUE(post(WorkOpcode::kWrite, ByteSpan(data).first(size), 0x1122aa55, 0x1000).ok());
    EXPECT_EQ(drained(), expected[size - 1]);
  }
}
TEST_F(Sender, Nudge) {
  rig_.engine.post_nudge();
  EXPECT_EQ(drained(), kWriteEmpty);
  EXPECT_TRUE(rig_.events.empty());
}
TEST_F(Sender, WriteInSegments) {
  rig_.engine.set_payload_sizes(16, 24);
  ASSERT_TRUE(post(WorkOpcode::kWrite, counting(20), 0x1122aa55, 0x1000).ok());
  EXPECT_EQ(drained(), std::string(kWrite20First) + " " + kWrite20Second);
}
TEST_F(Sender, SendInSegments) {
  skip_to_msn(2);
  rig_.engine.set_payload_sizes(16, 24);
  ASSERT_TRUE(post(WorkOpcode::kSend, counting(40)).ok());
  EXPECT_EQ(drained(), std::string(kSend40Msn2First) + " " + kSend40Msn2Second);
}
TEST_F(Sender, ReadRequest) {
  struct Domain final : ProtectionDomain {
    Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
      return Error{};
    }
    void deregister(MemoryRegion&) override {}
  } domain;
  std::vector<std::byte> sink(16);
  const MemoryRegion region(domain, sink, 0, 0x11111101, 0x2000, 0);
  ASSERT_TRUE(post(WorkOpcode::kRead, counting(16), 0x22222202, 0x100003000, &region).ok());
  EXPECT_EQ(drained(), kReadRequest);
}
TEST_F(Sender, ReadAsRtr) {
  rig_.engine.post_rtr(RtrKind::kRead);
  EXPECT_EQ(drained(), kReadRequestEmpty);
  EXPECT_EQ(rig_.rtrs, 0);
  rig_.feed(from_hex(kReadResponseEmpty));
  EXPECT_EQ(rig_.rtrs, 1);
}
TEST_F(Sender, WriteAsRtr) {
  rig_.engine.post_rtr(RtrKind::kWrite);
  EXPECT_EQ(drained(), kWriteEmpty);
  EXPECT_EQ(rig_.rtrs, 1);
}
TEST_F(Sender, SendAfterSendAsRtrHasMsn2) {
  rig_.engine.post_rtr(RtrKind::kSend);
  rig_.drain();
  ASSERT_TRUE(post(WorkOpcode::kSend, {}).ok());
  EXPECT_EQ(drained(), kSendEmptyMsn2);
}
TEST_F(Sender, ReadResponse) {
  rig_.stags.add(0x22222202, 0x100003000, 16, Access::kRemoteRead) = counting(16);
  rig_.stags.regions[0x22222202].entry.base = rig_.stags.regions[0x22222202].bytes.data();
  ASSERT_EQ(rig_.feed(from_hex(kReadRequest)), ReceiveStatus::kMore);
  EXPECT_EQ(drained(), kReadResponse);
}
TEST_F(Sender, EmptyReadResponse) {
  ASSERT_EQ(rig_.feed(from_hex(kReadRequestEmpty)), ReceiveStatus::kMore);
  EXPECT_EQ(drained(), kReadResponseEmpty);
}
TEST_F(Sender, ReadRequestForUnknownMemoryIsTerminated) {
  ASSERT_EQ(rig_.feed(from_hex(kReadRequest)), ReceiveStatus::kMore);
  EXPECT_EQ(drained(), "");
  EXPECT_EQ(to_hex(rig_.engine.terminate()), kTerminateReadRequest);
}
TEST_F(Sender, CrcOffLeavesZeros) {
  EngineRig plain(sender(false));
  WorkRequest request;
  std::size_t posted = 0;
  ASSERT_TRUE(plain.engine.post({&request, 1}, &posted).ok());
  EXPECT_EQ(to_hex(plain.drain()), "00124143 00000000 00000000 00000001 00000000 00000000");
}
TEST_F(Sender, ResponderIsSilentUntilTheFirstFpdu) {
  EngineOptions options = sender();
  options.initiator = false;
  EngineRig responder(options);
  responder.post_receives(1, 100);
  WorkRequest request;
  std::size_t posted = 0;
  ASSERT_TRUE(responder.engine.post({&request, 1}, &posted).ok());
  EXPECT_TRUE(responder.drain().empty());
  responder.feed(from_hex(kSendHello));
  EXPECT_FALSE(responder.drain().empty());
  EXPECT_EQ(responder.first_fpdus, 1);
}
TEST_F(Sender, ShortWritesOfAnySizeGiveTheSameStream) {
  const auto work = [](EngineRig& rig, std::vector<std::byte>& data) {
    rig.engine.set_payload_sizes(100, 60);
    Sge sge{data.data(), 777, 0};
    WorkRequest request;
    request.opcode = WorkOpcode::kWrite;
    request.sges = {&sge, 1};
    request.remote_handle = 5;
    std::size_t posted = 0;
    ASSERT_TRUE(rig.engine.post({&request, 1}, &posted).ok());
    request.opcode = WorkOpcode::kSend;
    ASSERT_TRUE(rig.engine.post({&request, 1}, &posted).ok());
  };
  std::vector<std::byte> data = counting(777);
  EngineRig whole(sender());
  work(whole, data);
  const std::vector<std::byte> expected = whole.drain();
  for (std::size_t most = 1; most < 200; ++most) {
    EngineRig rig(sender());
    work(rig, data);
    ASSERT_EQ(rig.drain(most), expected) << most;
    ASSERT_EQ(rig.events.size(), 2u);
  }
}
TEST_F(Sender, CoalescedMessagesOfOneSizeAreCutEqually) {
  EngineOptions options = sender(false);
  options.coalesce = true;
  options.tagged_payload = 65472;
  EngineRig rig(options);
  std::vector<std::byte> data(1 << 20);
  Sge sge{data.data(), static_cast<std::uint32_t>(data.size()), 0};
  WorkRequest request;
  request.opcode = WorkOpcode::kWrite;
  request.sges = {&sge, 1};
  std::size_t posted = 0;
  ASSERT_TRUE(rig.engine.post({&request, 1}, &posted).ok());
  rig.engine.fill(*rig.transmit);
  ASSERT_GT(rig.transmit->fpdu_count, 1u);
  // Header, payload, then trailer and next header in one piece.
  EXPECT_EQ(rig.transmit->iov_count, 2 * rig.transmit->fpdu_count + 1);
  const std::vector<std::byte> stream = rig.drain();
  std::vector<std::size_t> sizes;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t front = kMpaLengthSize + load_be16(stream.data() + at);
    sizes.push_back(front - kTaggedHeader);
    at += front + fpdu_trailer(front);
  }
  ASSERT_EQ(sizes.size(), 17u);
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i)
    EXPECT_EQ(sizes[i], sizes[0]);
  EXPECT_LE(sizes.back(), sizes[0]);
}
TEST_F(Sender, ReadsBeyondOrdWaitAndSendsPassThem) {
  struct Domain final : ProtectionDomain {
    Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
      return Error{};
    }
    void deregister(MemoryRegion&) override {}
  } domain;
  std::vector<std::byte> sink(16);
  const MemoryRegion region(domain, sink, 0, 1, 0, 0);
  EngineOptions options = sender();
  options.ord = 1;
  EngineRig rig(options);
  Sge sge{sink.data(), 16, 0};
  WorkRequest read;
  read.opcode = WorkOpcode::kRead;
  read.sges = {&sge, 1};
  read.read_sink = &region;
  WorkRequest send;
  const WorkRequest chain[] = {read, read, send};
  std::size_t posted = 0;
  ASSERT_TRUE(rig.engine.post(chain, &posted).ok());
  EXPECT_EQ(rig.drain().size(), 52u + 24u);
}
TEST_F(Sender, ReadIsUnderWayUntilTheLastByteOfItsResponse) {
  struct Domain final : ProtectionDomain {
    Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
      return Error{};
    }
    void deregister(MemoryRegion&) override {}
  } domain;
  EngineOptions options = sender(false);
  options.ord = 1;
  EngineRig rig(options);
  std::vector<std::byte>& sink = rig.stags.add(1, 0, 16, Access::kReadSink);
  const MemoryRegion region(domain, sink, 0, 1, 0, 0);
  Sge sge{sink.data(), 16, 0};
  WorkRequest read;
  read.opcode = WorkOpcode::kRead;
  read.sges = {&sge, 1};
  read.read_sink = &region;
  const WorkRequest chain[] = {read, read};
  std::size_t posted = 0;
  ASSERT_TRUE(rig.engine.post(chain, &posted).ok());
  EXPECT_EQ(rig.drain().size(), 52u);
  rig.feed(make_fpdu(tagged(RdmapOpcode::kReadResponse, 1, 0, false), counting(12), false));
  EXPECT_TRUE(rig.drain().empty());
  rig.feed(make_fpdu(tagged(RdmapOpcode::kReadResponse, 1, 12), counting(4, 12), false));
  EXPECT_EQ(rig.drain().size(), 52u);
}
TEST_F(Sender, TerminateIsNotPutInsideAnFpdu) {
  ASSERT_TRUE(post(WorkOpcode::kWrite, counting(100), 1, 0).ok());
  rig_.engine.fill(*rig_.transmit);
  rig_.engine.on_sent(50);
  rig_.feed(from_hex(kWrite16));
  ASSERT_TRUE(rig_.engine.failed());
  EXPECT_TRUE(rig_.engine.terminate().empty());
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
