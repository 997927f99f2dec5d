// SPDX-License-Identifier: Apache-2.0
// What a peer may send, what it brings about, and what everything else is answered with.
#include "tests/unit/rpcrdma/iwarp/engine_pair.h"
#include "tests/unit/rpcrdma/iwarp/vectors.h"

namespace nfsrdma::iwarp::test {
namespace {

EngineOptions receiver_options(bool crc = true) {
  EngineOptions options;
  options.initiator = true;
  options.crc = crc;
  options.ird = 2;
  options.ord = 2;
  return options;
}

class Receiver : public testing::Test {
 protected:
  Receiver() : rig_(receiver_options()) {
    rig_.post_receives(8, 64);
    rig_.stags.add(0xabcdef01, 0x100001000, 64, Access::kRemoteWrite);
    rig_.stags.add(0x1122aa55, 0x1000, 64, Access::kRemoteWrite);
    rig_.stags.add(0x00123456, 0, 64, Access::kRemoteWrite);
  }
  ReceiveStatus feed(const char* hex) { return rig_.feed(from_hex(hex)); }
  ReceiveStatus feed(const FpduHeader& header, ByteSpan payload = {}) {
    return rig_.feed(make_fpdu(header, payload, rig_.options.crc));
  }
  void skip_to_msn(std::uint32_t msn) {
    for (std::uint32_t i = 1; i < msn; ++i)
      ASSERT_EQ(feed(send_header(i)), ReceiveStatus::kMore);
    rig_.events.clear();
  }
  std::string region(std::uint32_t stag, std::size_t size) {
    return to_hex(ByteSpan(rig_.stags.regions.at(stag).bytes).first(size));
  }
  void expect_terminate(const std::string& code) {
    EXPECT_TRUE(rig_.engine.failed());
    EXPECT_EQ(terminate_code(rig_.engine), code);
    EXPECT_EQ(rig_.failures, 1);
  }

  EngineRig rig_;
};

using Events = std::vector<std::string>;

TEST_F(Receiver, SendWithPadding) {
  ASSERT_EQ(feed(kSendHello), ReceiveStatus::kMore);
  EXPECT_EQ(rig_.events, Events{"receive 68656c6c 6f"});
}
TEST_F(Receiver, SendWithoutPadding) {
  feed(kSend16);
  EXPECT_EQ(rig_.events, Events{"receive 00010203 04050607 08090a0b 0c0d0e0f"});
}
TEST_F(Receiver, EmptySend) {
  skip_to_msn(2);
  feed(kSendEmptyMsn2);
  EXPECT_EQ(rig_.events, Events{"receive "});
}
TEST_F(Receiver, SendWithInvalidate) {
  skip_to_msn(3);
  feed(kSendInvalidateMsn3);
  EXPECT_EQ(rig_.events,
            Events{"receive 00010203 04050607 08090a0b 0c0d0e0f invalidated 00123456"});
  EXPECT_EQ(rig_.stags.regions.count(0x00123456), 0u);
}
TEST_F(Receiver, SolicitedSend) {
  skip_to_msn(4);
  feed(kSendSolicitedMsn4);
  EXPECT_EQ(rig_.events, Events{"receive deadbeef"});
}
TEST_F(Receiver, SolicitedSendWithInvalidate) {
  skip_to_msn(5);
  feed(kSendSolicitedInvalidateMsn5);
  EXPECT_EQ(rig_.events, Events{"receive deadbeef invalidated 00123456"});
}
TEST_F(Receiver, SendInSegments) {
  skip_to_msn(2);
  feed(kSend40Msn2First);
  EXPECT_TRUE(rig_.events.empty());
  feed(kSend40Msn2Second);
  EXPECT_EQ(rig_.events, Events{"receive " + to_hex(counting(40))});
}
TEST_F(Receiver, Write) {
  feed(kWrite16);
  EXPECT_EQ(region(0xabcdef01, 16), to_hex(counting(16)));
  EXPECT_TRUE(rig_.events.empty());
}
TEST_F(Receiver, WriteNotLast) {
  feed(kWrite16NotLast);
  EXPECT_EQ(region(0xabcdef01, 16), to_hex(counting(16)));
}
TEST_F(Receiver, WriteInSegments) {
  feed(kWrite20First);
  feed(kWrite20Second);
  EXPECT_EQ(region(0x1122aa55, 20), to_hex(counting(20)));
}
TEST_F(Receiver, WritesOfAllPaddings) {
  for (const char* fpdu : {kWritePad1, kWritePad2, kWritePad3, kWritePad0}) {
    ASSERT_EQ(feed(fpdu), ReceiveStatus::kMore);
  }
  EXPECT_EQ(region(0x1122aa55, 8), "01020304 00000000");
}
TEST_F(Receiver, EmptyWriteNeedsNoStag) {
  EXPECT_EQ(feed(kWriteEmpty), ReceiveStatus::kMore);
  EXPECT_EQ(rig_.engine.receiver().fpdus(), 1u);
}
TEST_F(Receiver, PaddingIsNotLookedAt) {
  rig_.engine.receiver().set_crc(false);
  std::vector<std::byte> bytes = from_hex(kSendHello);
  bytes[25] = bytes[26] = bytes[27] = std::byte{0xff};
  EXPECT_EQ(rig_.feed(bytes), ReceiveStatus::kMore);
  EXPECT_EQ(rig_.events, Events{"receive 68656c6c 6f"});
}
TEST_F(Receiver, CrcOffIsNotLookedAt) {
  rig_.engine.receiver().set_crc(false);
  std::vector<std::byte> bytes = from_hex(kSendHello);
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(rig_.feed(bytes), ReceiveStatus::kMore);
}
TEST_F(Receiver, TerminateEndsWithoutOneOfOurs) {
  EXPECT_EQ(feed(kTerminateCrc), ReceiveStatus::kFailed);
  EXPECT_EQ(rig_.engine.terminate_received(), "Terminate: MPA: CRC error (2/0/0x02)");
  expect_terminate("none");
}
TEST_F(Receiver, TerminateWithHeadersIsTold) {
  EXPECT_EQ(feed(kTerminateReadRequest), ReceiveStatus::kFailed);
  EXPECT_EQ(rig_.engine.terminate_received(),
            "Terminate: RDMAP protection: invalid STag (0/1/0x00)");
}
TEST_F(Receiver, CrcErrorIsTerminated) {
  std::vector<std::byte> bytes = from_hex(kSendHello);
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(rig_.feed(bytes), ReceiveStatus::kFailed);
  EXPECT_EQ(to_hex(rig_.engine.terminate()), kTerminateCrc);
  EXPECT_TRUE(rig_.events.empty());
}
TEST_F(Receiver, UnknownStagIsTerminatedWithItsHeader) {
  rig_.stags.regions.erase(0xabcdef01);
  feed(kWrite16);
  EXPECT_EQ(to_hex(rig_.engine.terminate()), kTerminateInvalidStag);
}
TEST_F(Receiver, WrongDdpVersions) {
  for (std::uint8_t version : {0, 2, 3}) {
    EngineRig rig(receiver_options());
    FpduHeader header = send_header(1);
    header.ddp_control = static_cast<std::uint8_t>(kDdpLast | version);
    rig.feed(make_fpdu(header, {}, true));
    EXPECT_EQ(terminate_code(rig.engine), "1/2/06");
    EngineRig other(receiver_options());
    header = tagged(RdmapOpcode::kWrite, 1, 0);
    header.ddp_control = static_cast<std::uint8_t>(kDdpTagged | kDdpLast | version);
    other.feed(make_fpdu(header, {}, true));
    EXPECT_EQ(terminate_code(other.engine), "1/1/04");
  }
}
TEST_F(Receiver, WrongRdmapVersion) {
  FpduHeader header = send_header(1);
  header.rdmap_control = 3;
  feed(header);
  expect_terminate("0/2/05");
}
TEST_F(Receiver, OpcodesBeyondTerminate) {
  for (std::uint8_t opcode = 8; opcode < 16; ++opcode) {
    EngineRig rig(receiver_options());
    FpduHeader header = send_header(1);
    header.rdmap_control = static_cast<std::uint8_t>(kRdmapVersion | opcode);
    rig.feed(make_fpdu(header, {}, true));
    EXPECT_EQ(terminate_code(rig.engine), "0/2/06") << int{opcode};
  }
}
TEST_F(Receiver, TaggedSend) {
  feed(tagged(RdmapOpcode::kSend, 1, 0));
  expect_terminate("0/2/06");
}
TEST_F(Receiver, QueueBeyondTerminate) {
  feed(untagged(RdmapOpcode::kSend, 3, 1));
  expect_terminate("1/2/01");
}
TEST_F(Receiver, SendOnTheReadQueue) {
  feed(untagged(RdmapOpcode::kSend, kQueueReadRequest, 1));
  expect_terminate("1/2/01");
}
TEST_F(Receiver, MsnAhead) {
  feed(send_header(2));
  expect_terminate("1/2/03");
}
TEST_F(Receiver, MsnBehind) {
  feed(send_header(0));
  expect_terminate("1/2/03");
}
TEST_F(Receiver, OffsetOnTheFirstSegment) {
  feed(send_header(1, 4), counting(4));
  expect_terminate("1/2/04");
}
TEST_F(Receiver, OffsetThatLeavesAGap) {
  feed(send_header(1, 0, false), counting(8));
  feed(send_header(1, 12), counting(4));
  expect_terminate("1/2/04");
}
TEST_F(Receiver, OffsetThatOverlapsWhatCame) {
  feed(send_header(1, 0, false), counting(8));
  feed(send_header(1, 4), counting(4));
  expect_terminate("1/2/04");
}
TEST_F(Receiver, OtherKindOfSendInsideAMessage) {
  feed(send_header(1, 0, false), counting(8));
  feed(untagged(RdmapOpcode::kSendSolicited, kQueueSend, 1, 8), counting(4));
  expect_terminate("0/2/06");
}
TEST_F(Receiver, MessageLongerThanItsBuffer) {
  feed(send_header(1), counting(65));
  expect_terminate("1/2/05");
  rig_.engine.flush();
  EXPECT_EQ(rig_.receives.size(), 8u);
}
TEST_F(Receiver, MessageThatGrowsBeyondItsBuffer) {
  feed(send_header(1, 0, false), counting(64));
  feed(send_header(1, 64), counting(1));
  expect_terminate("1/2/05");
}
TEST_F(Receiver, UlpduShorterThanItsHeader) {
  rig_.feed(from_hex("000dc140 00000000 00000000 00000000 00000000"));
  expect_terminate("2/0/03");
}
TEST_F(Receiver, UntaggedUlpduShorterThanItsHeader) {
  rig_.feed(from_hex("00114143 00000000 00000000 00000001 00000000 00000000"));
  expect_terminate("2/0/03");
}
TEST_F(Receiver, ReadRequestWithPayload) {
  feed(untagged(RdmapOpcode::kReadRequest, kQueueReadRequest, 1), counting(29));
  expect_terminate("1/2/05");
}
TEST_F(Receiver, ReadRequestInSegments) {
  feed(untagged(RdmapOpcode::kReadRequest, kQueueReadRequest, 1, 0, false), counting(28));
  expect_terminate("1/2/05");
}
/// How it would be cut into FPDUs is counted before it is known whether there is so much.
TEST_F(Receiver, ReadRequestsOfAnySizeAreCheckedAgainstTheMemory) {
  for (const bool coalesce : {false, true}) {
    for (const std::uint32_t size : {65u, 0xffff0040u, 0xffff0041u, 0xffffffc1u, 0xffffffffu}) {
      EngineOptions options = receiver_options();
      options.coalesce = coalesce;
      options.tagged_payload = 65472;
      EngineRig rig(options);
      rig.stags.add(0x22222202, 0x1000, 64, Access::kRemoteRead);
      std::vector<std::byte> body(kReadRequestBody);
      store_read_request(body.data(), {1, 0, size, 0x22222202, 0x1000});
      rig.feed(make_fpdu(untagged(RdmapOpcode::kReadRequest, kQueueReadRequest, 1), body, true));
      rig.drain();
      EXPECT_EQ(terminate_code(rig.engine), "0/1/01") << size;
    }
  }
}
TEST_F(Receiver, MoreReadRequestsThanAllowed) {
  const std::vector<std::byte> body(kReadRequestBody);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    feed(untagged(RdmapOpcode::kReadRequest, kQueueReadRequest, i), body);
  }
  expect_terminate("0/2/07");
}
TEST_F(Receiver, ReadResponseWithoutRequest) {
  feed(kReadResponse);
  expect_terminate("0/2/06");
}
TEST_F(Receiver, WriteOneByteBeyondTheEnd) {
  feed(tagged(RdmapOpcode::kWrite, 0x1122aa55, 0x1000 + 60), counting(5));
  expect_terminate("1/1/01");
  EXPECT_EQ(region(0x1122aa55, 64), to_hex(std::vector<std::byte>(64)));
}
TEST_F(Receiver, WriteThatWraps) {
  feed(tagged(RdmapOpcode::kWrite, 0x1122aa55, 0xfffffffffffffff8u), counting(16));
  expect_terminate("1/1/03");
}
TEST_F(Receiver, WriteToAnotherConnectionsMemory) {
  rig_.stags.add(9, 0, 64, Access::kRemoteWrite, 99);
  feed(tagged(RdmapOpcode::kWrite, 9, 0), counting(16));
  expect_terminate("1/1/02");
}
TEST_F(Receiver, WriteToAReadSink) {
  rig_.stags.add(9, 0, 64, Access::kReadSink);
  feed(tagged(RdmapOpcode::kWrite, 9, 0), counting(16));
  expect_terminate("0/1/02");
}
TEST_F(Receiver, InvalidateOfUnknownStag) {
  FpduHeader header = untagged(RdmapOpcode::kSendInvalidate, kQueueSend, 1);
  header.rsvd_ulp = 0x77;
  feed(header);
  expect_terminate("0/2/09");
  EXPECT_TRUE(rig_.events.empty());
  rig_.engine.flush();
  EXPECT_EQ(rig_.receives.size(), 8u);
}
struct Domain final : ProtectionDomain {
  Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
    return Error{};
  }
  void deregister(MemoryRegion&) override {}
};

class ReadResponseTest : public Receiver {
 protected:
  ReadResponseTest()
      : sink_(rig_.stags.add(0x11111101, 0x2000, 16, Access::kReadSink)),
        region_(domain_, sink_, 0, 0x11111101, 0x2000, 0) {
    Sge sge{sink_.data(), 16, 0};
    WorkRequest request;
    request.wr_id = 5;
    request.opcode = WorkOpcode::kRead;
    request.sges = {&sge, 1};
    request.read_sink = &region_;
    request_ = request;
    std::size_t posted = 0;
    EXPECT_TRUE(rig_.engine.post({&request_, 1}, &posted).ok());
  }
  Domain domain_;
  std::vector<std::byte>& sink_;
  MemoryRegion region_;
  WorkRequest request_;
};

TEST_F(ReadResponseTest, FillsTheSink) {
  rig_.drain();
  feed(kReadResponse);
  EXPECT_EQ(sink_, counting(16));
  EXPECT_EQ(rig_.events, Events{"work 5 ok"});
}
TEST_F(ReadResponseTest, BeforeItsRequestWasSentIsUnexpected) {
  feed(kReadResponse);
  expect_terminate("0/2/06");
}
TEST_F(ReadResponseTest, InSegments) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kReadResponse, 0x11111101, 0x2000, false), counting(8));
  EXPECT_TRUE(rig_.events.empty());
  feed(tagged(RdmapOpcode::kReadResponse, 0x11111101, 0x2008), counting(8, 8));
  EXPECT_EQ(sink_, counting(16));
  EXPECT_EQ(rig_.events, Events{"work 5 ok"});
}
TEST_F(ReadResponseTest, TooShortFailsTheRead) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kReadResponse, 0x11111101, 0x2000), counting(8));
  expect_terminate("1/1/01");
  rig_.engine.flush();
  EXPECT_EQ(rig_.events, Events{"work 5 failed"});
}
TEST_F(ReadResponseTest, TooLong) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kReadResponse, 0x11111101, 0x2000), counting(17));
  expect_terminate("1/1/01");
  EXPECT_EQ(sink_, std::vector<std::byte>(16));
}
TEST_F(ReadResponseTest, AtAnotherOffset) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kReadResponse, 0x11111101, 0x2001), counting(15));
  expect_terminate("1/1/01");
}
TEST_F(ReadResponseTest, SegmentBehindAGap) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kReadResponse, 0x11111101, 0x2004, false), counting(8));
  expect_terminate("1/1/01");
  EXPECT_EQ(sink_, std::vector<std::byte>(16));
}
TEST_F(ReadResponseTest, ToAnotherStag) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kReadResponse, 0x1122aa55, 0x1000), counting(16));
  expect_terminate("1/1/00");
}
TEST_F(ReadResponseTest, ByWriteIsRefused) {
  rig_.drain();
  feed(tagged(RdmapOpcode::kWrite, 0x11111101, 0x2000), counting(16));
  expect_terminate("0/1/02");
}
TEST_F(ReadResponseTest, AfterTheSinkIsGone) {
  rig_.drain();
  rig_.stags.regions.erase(0x11111101);
  feed(kReadResponse);
  expect_terminate("1/1/00");
}

TEST_F(Receiver, SendWithoutBufferWaitsAndGoesOn) {
  EngineRig rig(receiver_options());
  std::vector<std::byte> bytes = from_hex(kSendHello);
  const std::vector<std::byte> more = from_hex(kSend40Msn2First);
  bytes.insert(bytes.end(), more.begin(), more.end());
  EXPECT_EQ(rig.feed(bytes), ReceiveStatus::kWait);
  EXPECT_EQ(rig.feed(from_hex(kSend40Msn2Second)), ReceiveStatus::kWait);
  rig.post_receives(1, 64);
  EXPECT_EQ(rig.engine.receiver().resume(), ReceiveStatus::kWait);
  EXPECT_EQ(rig.events, Events{"receive 68656c6c 6f"});
  rig.post_receives(1, 64);
  EXPECT_EQ(rig.engine.receiver().resume(), ReceiveStatus::kMore);
  EXPECT_EQ(rig.events.size(), 2u);
}
TEST_F(Receiver, SendAsRtrUsesNoBufferAndNoCompletion) {
  EngineOptions options = receiver_options();
  options.initiator = false;
  options.expected_rtr = RtrKind::kSend;
  EngineRig rig(options);
  EXPECT_EQ(rig.feed(make_fpdu(send_header(1), {}, true)), ReceiveStatus::kMore);
  EXPECT_EQ(rig.first_fpdus, 1);
  EXPECT_TRUE(rig.events.empty());
  rig.post_receives(1, 64);
  rig.feed(make_fpdu(send_header(2), as_bytes("ok!!"), true));
  EXPECT_EQ(rig.events, Events{"receive 6f6b2121"});
}
TEST_F(Receiver, ReadRequestGoneMidwayEndsTheConnection) {
  rig_.stags.add(0x22222202, 0x100003000, 16, Access::kRemoteRead);
  feed(kReadRequest);
  rig_.engine.fill(*rig_.transmit);
  rig_.engine.region_gone(0x22222202);
  expect_terminate("none");
  EXPECT_TRUE(rig_.drain().empty());
}
TEST_F(Receiver, WriteTargetGoneMidwayIsSkipped) {
  const std::vector<std::byte> bytes = from_hex(kWrite16);
  rig_.feed(ByteSpan(bytes).first(20));
  rig_.engine.region_gone(0xabcdef01);
  EXPECT_EQ(rig_.feed(ByteSpan(bytes).subspan(20)), ReceiveStatus::kMore);
  EXPECT_EQ(region(0xabcdef01, 16), "00010203 00000000 00000000 00000000");
}

/// A stream with everything in it, and what it brings about.
std::vector<std::byte> mixed_stream() {
  std::vector<std::byte> stream;
  for (const char* hex : {kSendHello, kWrite20First, kWrite20Second, kSend40Msn2First, kWritePad1,
                          kSend40Msn2Second, kSendInvalidateMsn3, kReadRequest, kWriteEmpty,
                          kSendSolicitedMsn4, kWrite16, kTerminateLocal}) {
    const std::vector<std::byte> fpdu = from_hex(hex);
    stream.insert(stream.end(), fpdu.begin(), fpdu.end());
  }
  return stream;
}
void prepare(EngineRig& rig) {
  rig.post_receives(8, 64);
  rig.stags.add(0xabcdef01, 0x100001000, 64, Access::kRemoteWrite);
  rig.stags.add(0x1122aa55, 0x1000, 64, Access::kRemoteWrite);
  rig.stags.add(0x00123456, 0, 64, Access::kRemoteWrite);
  rig.stags.add(0x22222202, 0x100003000, 64, Access::kRemoteRead);
}
std::string outcome(EngineRig& rig) {
  std::string text;
  for (const std::string& event : rig.events)
    text += event + "\n";
  for (auto& [stag, region] : rig.stags.regions)
    text += to_hex(region.bytes) + "\n";
  return text + rig.engine.terminate_received();
}

TEST(ReceiverSplits, EverySplitInTwoGivesTheSameEvents) {
  const std::vector<std::byte> stream = mixed_stream();
  EngineRig whole(receiver_options());
  prepare(whole);
  whole.feed(stream);
  const std::string expected = outcome(whole);
  EXPECT_EQ(whole.events.size(), 4u);
  for (std::size_t cut = 1; cut < stream.size(); ++cut) {
    EngineRig rig(receiver_options());
    prepare(rig);
    rig.feed(ByteSpan(stream).first(cut));
    rig.feed(ByteSpan(stream).subspan(cut));
    ASSERT_EQ(outcome(rig), expected) << cut;
  }
}

TEST(ReceiverSplits, PiecesOfEverySizeGiveTheSameEvents) {
  const std::vector<std::byte> stream = mixed_stream();
  EngineRig whole(receiver_options());
  prepare(whole);
  whole.feed(stream);
  for (std::size_t step = 1; step < 120; ++step) {
    EngineRig rig(receiver_options());
    prepare(rig);
    rig.feed_in_steps(stream, step);
    ASSERT_EQ(outcome(rig), outcome(whole)) << step;
  }
}

TEST(ReceiverBitFlips, EveryFlippedBitIsNoticedBeforeDelivery) {
  // With a CRC no flipped bit can pass for another message.
  for (const char* hex : {kSendHello, kSend16, kWrite16, kWritePad3}) {
    const std::vector<std::byte> good = from_hex(hex);
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::vector<std::byte> bytes = good;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      EngineRig rig(receiver_options());
      prepare(rig);
      rig.feed(bytes);
      EXPECT_TRUE(rig.events.empty()) << hex << " bit " << bit;
      // A longer length makes it wait for more; everything else fails.
      EXPECT_TRUE(rig.engine.failed() || !rig.engine.receiver().at_boundary()) << bit;
      EXPECT_LE(rig.failures, 1);
    }
  }
}

TEST(Terminate, SiwsBitOrderIsRecognised) {
  EXPECT_EQ(describe_terminate(from_hex("11020100")),
            "Terminate: DDP tagged: STag belongs to another stream (1/1/0x02, siw's bit order)");
  EXPECT_EQ(describe_terminate(from_hex("21020100")),
            "Terminate: DDP untagged: no buffer for the message (1/2/0x02, siw's bit order)");
  EXPECT_EQ(describe_terminate(from_hex("12020000")),
            "Terminate: DDP untagged: no buffer for the message (1/2/0x02)");
}

TEST(Terminate, TooShortIsNoTrouble) {
  EXPECT_EQ(describe_terminate({}), "Terminate without a code");
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
