// SPDX-License-Identifier: Apache-2.0
// MPA start-up frames and negotiation, with the frames of Linux and of hardware as bytes.
#include "rpcrdma/iwarp/mpa_connect.h"

#include "tests/unit/rpcrdma/iwarp/engine_pair.h"

namespace nfsrdma::iwarp::test {
namespace {

constexpr char kRequestKeyHex[] = "4d504120 49442052 65712046 72616d65 ";
constexpr char kReplyKeyHex[] = "4d504120 49442052 65702046 72616d65 ";
constexpr char kPrivateHex[] = "f6ab0e18 01010303";

std::vector<std::byte> request_bytes(const std::string& rest) {
  return from_hex(kRequestKeyHex + rest);
}

MpaParse decode(const std::vector<std::byte>& bytes, bool reply, MpaFrame* frame) {
  std::size_t need = 0;
  return decode_mpa_frame(bytes, reply, &need, frame);
}

std::string encode(const MpaFrame& frame) {
  MpaFrameBytes out;
  return to_hex({out.data(), encode_mpa_frame(frame, out)});
}

/// Decodes a request and encodes our reply to it.
std::string reply_to(const std::string& rest, const MpaLimits& limits,
                     MpaAgreement* agreed = nullptr, ByteSpan private_data = {}) {
  const std::vector<std::byte> bytes = request_bytes(rest);
  MpaFrame request;
  EXPECT_EQ(decode(bytes, false, &request), MpaParse::kDone);
  MpaFrame reply;
  const MpaAgreement result = answer_request(request, limits, &reply);
  if (agreed != nullptr) *agreed = result;
  reply.private_data = private_data;
  return encode(reply);
}

TEST(MpaRequest, LinuxClientOverSiwIsUnderstood) {
  const std::vector<std::byte> bytes =
      request_bytes(std::string("1002000c 00800000 ") + kPrivateHex);
  ASSERT_EQ(bytes.size(), 32u);
  MpaFrame frame;
  ASSERT_EQ(decode(bytes, false, &frame), MpaParse::kDone);
  EXPECT_TRUE(frame.enhanced);
  EXPECT_FALSE(frame.crc || frame.markers || frame.peer_to_peer || frame.own_peer);
  EXPECT_EQ(frame.ird, 128);
  EXPECT_EQ(frame.ord, 0);
  EXPECT_EQ(to_hex(frame.private_data), kPrivateHex);
}

TEST(MpaReply, ToLinuxClientIsByteExact) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to(std::string("1002000c 00800000 ") + kPrivateHex, {false, 0, 32}, &agreed,
                     from_hex(kPrivateHex)),
            std::string(kReplyKeyHex) + "1002000c 00000020 " + kPrivateHex);
  EXPECT_EQ(agreed.ord, 32u);
  EXPECT_EQ(agreed.rtr, RtrKind::kNone);
}

TEST(MpaReply, WithoutPrivateDataStillHasTheWords) {
  // siw dereferences private data that is not there.
  EXPECT_EQ(reply_to("10020004 00800000", {false, 0, 32}),
            std::string(kReplyKeyHex) + "10020004 00000020");
}

TEST(MpaReply, OrdNeverExceedsThePeersIrd) {
  MpaAgreement agreed;
  reply_to("10020004 00030000", {false, 0, 32}, &agreed);
  EXPECT_EQ(agreed.ord, 3u);
}

TEST(MpaReply, OrdNeverExceedsWhatSiwTakes) {
  MpaAgreement agreed;
  reply_to("10020004 0fff0000", {false, 0, 500}, &agreed);
  EXPECT_EQ(agreed.ord, 128u);
}

TEST(MpaReply, PeerThatAllowsNoReadsIsAccepted) {
  MpaAgreement agreed;
  reply_to("10020004 00000000", {false, 0, 32}, &agreed);
  EXPECT_EQ(agreed.ord, 0u);
}

TEST(MpaReply, PeerToPeerWithReadOnly) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to(std::string("5002000c 80104001 ") + kPrivateHex, {false, 32, 32}, &agreed,
                     from_hex(kPrivateHex)),
            std::string(kReplyKeyHex) + "5002000c 80014010 " + kPrivateHex);
  EXPECT_EQ(agreed.rtr, RtrKind::kRead);
  EXPECT_TRUE(agreed.crc);
}

TEST(MpaReply, IrdmaOffersWriteAndReadAndGetsExactlyOne) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to("50020004 8020c001", {false, 32, 16}, &agreed),
            std::string(kReplyKeyHex) + "50020004 80018010");
  EXPECT_EQ(agreed.rtr, RtrKind::kWrite);
}

TEST(MpaReply, ChelsioOffersReadAndGetsRead) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to(std::string("5002000c 80204001 ") + kPrivateHex, {false, 32, 16}, &agreed),
            std::string(kReplyKeyHex) + "50020004 80014010");
  EXPECT_EQ(agreed.rtr, RtrKind::kRead);
}

TEST(MpaReply, ReadAsRtrNeedsRoomForOneRead) {
  MpaAgreement agreed;
  reply_to("10020004 80204000", {false, 0, 16}, &agreed);
  EXPECT_EQ(agreed.ird, 1u);
}

TEST(MpaReply, SendIsTheLastChoice) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to("10020004 c0200001", {false, 32, 16}, &agreed),
            std::string(kReplyKeyHex) + "10020004 c0010010");
  EXPECT_EQ(agreed.rtr, RtrKind::kSend);
}

TEST(MpaReply, PeerToPeerWithoutOptionsGetsWrite) {
  MpaAgreement agreed;
  reply_to("10020004 80200001", {false, 32, 16}, &agreed);
  EXPECT_EQ(agreed.rtr, RtrKind::kWrite);
}

TEST(MpaReply, UnspecifiedDepthIsAnsweredInKind) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to("10020004 3fff3fff", {false, 8, 16}, &agreed),
            std::string(kReplyKeyHex) + "10020004 3fff3fff");
  EXPECT_EQ(agreed.ord, 16u);
  EXPECT_EQ(agreed.ird, 8u);
}

TEST(MpaReply, CrcIsEchoed) {
  MpaAgreement agreed;
  reply_to("50020004 00800000", {false, 0, 32}, &agreed);
  EXPECT_TRUE(agreed.crc);
}

TEST(MpaReply, CrcCanBeRequired) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to("10020004 00800000", {true, 0, 32}, &agreed),
            std::string(kReplyKeyHex) + "50020004 00000020");
  EXPECT_TRUE(agreed.crc);
}

TEST(MpaReply, Revision1GetsRevision1WithOneRead) {
  MpaAgreement agreed;
  EXPECT_EQ(reply_to(std::string("00010008 ") + kPrivateHex, {false, 0, 32}, &agreed,
                     from_hex(kPrivateHex)),
            std::string(kReplyKeyHex) + "00010008 " + kPrivateHex);
  EXPECT_EQ(agreed.ord, 1u);
}

TEST(MpaReply, Revision2WithoutEnhancementStaysPlain) {
  EXPECT_EQ(reply_to("00020000", {false, 0, 32}), std::string(kReplyKeyHex) + "00020000");
}

TEST(MpaReply, EnhancementMeansNothingInRevision1) {
  MpaFrame frame;
  ASSERT_EQ(decode(request_bytes("10010000"), false, &frame), MpaParse::kDone);
  EXPECT_FALSE(frame.enhanced);
}

TEST(MpaReject, Enhanced) {
  MpaFrame request;
  ASSERT_EQ(decode(request_bytes("10020004 00800000"), false, &request), MpaParse::kDone);
  EXPECT_EQ(encode(reject_request(request)), std::string(kReplyKeyHex) + "30020004 00000000");
}

TEST(MpaReject, Revision1) {
  MpaFrame request;
  ASSERT_EQ(decode(request_bytes("00010000"), false, &request), MpaParse::kDone);
  EXPECT_EQ(encode(reject_request(request)), std::string(kReplyKeyHex) + "20010000");
}

TEST(MpaReject, MarkersAreAFault) {
  MpaFrame request;
  ASSERT_EQ(decode(request_bytes("90020004 00800000"), false, &request), MpaParse::kDone);
  EXPECT_NE(request_fault(request), nullptr);
}

TEST(MpaDecode, NeverAsksForMoreThanTheFrame) {
  const std::vector<std::byte> bytes =
      request_bytes(std::string("1002000c 00800000 ") + kPrivateHex);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    std::size_t need = 0;
    MpaFrame frame;
    ASSERT_EQ(decode_mpa_frame({bytes.data(), n}, false, &need, &frame), MpaParse::kNeedMore);
    ASSERT_GT(need, n);
    ASSERT_LE(need, n < 20 ? 20u : 32u);
  }
}

TEST(MpaDecode, WrongKeyIsSeenAtTheFirstByte) {
  MpaFrame frame;
  EXPECT_EQ(decode(from_hex("4e"), false, &frame), MpaParse::kBadKey);
}

TEST(MpaDecode, RequestInsteadOfReplyIsRefused) {
  MpaFrame frame;
  EXPECT_EQ(decode(request_bytes("10020004 00800000"), true, &frame), MpaParse::kBadKey);
}

TEST(MpaDecode, RecordMarkOfRpcOverTcpIsRecognised) {
  MpaFrame frame;
  EXPECT_EQ(decode(from_hex("80000028 12345678 00000000 00000002"), false, &frame),
            MpaParse::kRecordMark);
}

TEST(MpaDecode, RevisionsBeyondTwoAndZeroAreRefused) {
  MpaFrame frame;
  EXPECT_EQ(decode(request_bytes("10030004 00800000"), false, &frame), MpaParse::kBadRevision);
  EXPECT_EQ(decode(request_bytes("00000000"), false, &frame), MpaParse::kBadRevision);
}

TEST(MpaDecode, PrivateDataBeyond512IsRefusedAtOnce) {
  MpaFrame frame;
  EXPECT_EQ(decode(request_bytes("10020201"), false, &frame), MpaParse::kBadLength);
}

TEST(MpaDecode, EnhancedWithoutWordsIsRefused) {
  MpaFrame frame;
  EXPECT_EQ(decode(request_bytes("10020003 000000"), false, &frame), MpaParse::kBadLength);
}

TEST(MpaOwnBlock, IsTakenOffBeforeTheLayerAboveSeesIt) {
  MpaFrame sent = make_request(MpaAttempt::kPlain, {false, 16, 1});
  const std::vector<std::byte> data = from_hex(kPrivateHex);
  sent.private_data = data;
  MpaFrameBytes out;
  const std::size_t size = encode_mpa_frame(sent, out);
  EXPECT_EQ(size, 40u);
  MpaFrame got;
  const std::vector<std::byte> bytes(out.begin(), out.begin() + static_cast<long>(size));
  ASSERT_EQ(decode(bytes, false, &got), MpaParse::kDone);
  EXPECT_TRUE(got.own_peer);
  EXPECT_EQ(to_hex(got.private_data), kPrivateHex);
}

TEST(MpaOwnBlock, LeavesTheLinuxPartInFront) {
  MpaFrame sent = make_request(MpaAttempt::kPlain, {false, 16, 1});
  const std::vector<std::byte> data = from_hex(kPrivateHex);
  sent.private_data = data;
  EXPECT_EQ(encode(sent).substr(0, 71),
            std::string(kRequestKeyHex) + "10020014 00100001 " + kPrivateHex);
}

TEST(MpaInitiator, PeerToPeerRequestIsByteExact) {
  MpaFrame request = make_request(MpaAttempt::kPeerToPeer, {true, 16, 1});
  request.own_peer = false;
  const std::vector<std::byte> data = from_hex(kPrivateHex);
  request.private_data = data;
  EXPECT_EQ(encode(request), std::string(kRequestKeyHex) + "5002000c 80104001 " + kPrivateHex);
}

Result<MpaAgreement> conclude(MpaAttempt attempt, const std::string& reply_rest,
                              const MpaLimits& limits = {false, 16, 1}) {
  const std::vector<std::byte> bytes = from_hex(kReplyKeyHex + reply_rest);
  MpaFrame reply;
  EXPECT_EQ(decode(bytes, true, &reply), MpaParse::kDone);
  return conclude_reply(make_request(attempt, limits), reply, limits);
}

TEST(MpaInitiator, KnfsdsReplyGivesItSixteenReads) {
  auto agreed = conclude(MpaAttempt::kPlain, "1002000c 00000010 f6ab0e18 01000303");
  ASSERT_TRUE(agreed.ok());
  EXPECT_EQ(agreed->ird, 16u);
  EXPECT_EQ(agreed->ord, 0u);
  EXPECT_FALSE(agreed->crc || agreed->own_peer);
}

TEST(MpaInitiator, RejectIsRefused) {
  auto agreed = conclude(MpaAttempt::kPlain, "30020004 00000000");
  ASSERT_FALSE(agreed.ok());
  EXPECT_EQ(agreed.error().code, Errc::kRefused);
}

TEST(MpaInitiator, PeerThatReadsMoreThanWeOfferedRaisesOurIrd) {
  auto agreed = conclude(MpaAttempt::kPlain, "10020004 00000040");
  ASSERT_TRUE(agreed.ok());
  EXPECT_EQ(agreed->ird, 64u);
}

TEST(MpaInitiator, PeerThatReadsBeyondTheHardLimitIsRefused) {
  auto agreed = conclude(MpaAttempt::kPlain, "10020004 00000081");
  ASSERT_FALSE(agreed.ok());
  EXPECT_EQ(agreed.error().code, Errc::kProtocol);
}

TEST(MpaInitiator, MarkersAreRefused) {
  EXPECT_FALSE(conclude(MpaAttempt::kPlain, "90020004 00000010").ok());
}

TEST(MpaInitiator, TakesTheRtrThatThePeerChose) {
  EXPECT_EQ(conclude(MpaAttempt::kPeerToPeer, "10020004 80014010")->rtr, RtrKind::kRead);
  EXPECT_EQ(conclude(MpaAttempt::kPeerToPeer, "10020004 80018010")->rtr, RtrKind::kWrite);
  EXPECT_EQ(conclude(MpaAttempt::kPeerToPeer, "10020004 c0010010")->rtr, RtrKind::kSend);
}

TEST(MpaInitiator, RtrBitsMeanNothingWhenWeDidNotAsk) {
  EXPECT_EQ(conclude(MpaAttempt::kPlain, "10020004 80014010")->rtr, RtrKind::kNone);
}

TEST(MpaInitiator, PlainReplyToAnEnhancedRequestIsTolerated) {
  auto agreed = conclude(MpaAttempt::kPlain, "00010000");
  ASSERT_TRUE(agreed.ok());
  EXPECT_EQ(agreed->ord, 0u);
}

TEST(MpaInitiator, Revision1LetsThePeerReadAndDoesNotItself) {
  auto agreed = conclude(MpaAttempt::kRevision1, "00010000", {false, 16, 8});
  ASSERT_TRUE(agreed.ok());
  EXPECT_EQ(agreed->ird, 16u);
  EXPECT_EQ(agreed->ord, 0u);
  // As a connector has it: of the request itself.
  const MpaFrame request = make_request(MpaAttempt::kRevision1, {false, 200, 8});
  EXPECT_EQ(request.ird, 128);
  EXPECT_EQ(request.ord, 0);
  EXPECT_EQ(encode(request), std::string(kRequestKeyHex) + "00010008 6e72646d 01000000");
}

TEST(MpaInitiator, PeersCrcIsObeyed) {
  EXPECT_TRUE(conclude(MpaAttempt::kPlain, "50020004 00000010")->crc);
}

}  // namespace
}  // namespace nfsrdma::iwarp::test
