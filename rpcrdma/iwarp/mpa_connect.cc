// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/mpa_connect.h"

#include <algorithm>

namespace nfsrdma::iwarp {
namespace {

constexpr std::size_t kWords = 4;
constexpr std::array<std::byte, 8> kOwnBlock{std::byte{0x6e}, std::byte{0x72}, std::byte{0x64},
                                             std::byte{0x6d},  // "nrdm"
                                             std::byte{0x01},  // version of the block
                                             std::byte{0x00}, std::byte{0x00}, std::byte{0x00}};

bool ends_with_own_block(ByteSpan data) {
  // The version and what follows it may change; the magic is enough.
  return data.size() >= kOwnBlock.size() &&
         std::memcmp(data.data() + data.size() - kOwnBlock.size(), kOwnBlock.data(), 5) == 0;
}

std::uint16_t ird_word(const MpaFrame& frame) {
  return static_cast<std::uint16_t>((frame.peer_to_peer ? kMpaIrdPeerToPeer : 0) |
                                    (frame.rtr_send ? kMpaIrdRtrSend : 0) |
                                    (frame.ird & kMpaDepthMask));
}
std::uint16_t ord_word(const MpaFrame& frame) {
  return static_cast<std::uint16_t>((frame.rtr_write ? kMpaOrdRtrWrite : 0) |
                                    (frame.rtr_read ? kMpaOrdRtrRead : 0) |
                                    (frame.ord & kMpaDepthMask));
}

void load_words(const std::byte* raw, MpaFrame* frame) {
  const std::uint16_t ird = load_be16(raw);
  const std::uint16_t ord = load_be16(raw + 2);
  frame->peer_to_peer = (ird & kMpaIrdPeerToPeer) != 0;
  frame->rtr_send = (ird & kMpaIrdRtrSend) != 0;
  frame->ird = ird & kMpaDepthMask;
  frame->rtr_write = (ord & kMpaOrdRtrWrite) != 0;
  frame->rtr_read = (ord & kMpaOrdRtrRead) != 0;
  frame->ord = ord & kMpaDepthMask;
}

/// Calls of ONC RPC over TCP begin with a record mark: last fragment, a short length, then the xid
/// and the message type CALL.
bool looks_like_record_mark(ByteSpan bytes) {
  if (bytes.size() < 4) return false;
  const std::uint32_t mark = load_be32(bytes.data());
  if ((mark & 0x80000000u) == 0 || (mark & 0x7fffffffu) > (1u << 24)) return false;
  return bytes.size() < 12 || load_be32(bytes.data() + 8) <= 1;
}

}  // namespace

std::size_t encode_mpa_frame(const MpaFrame& frame, MpaFrameBytes& out) {
  const std::size_t words = frame.enhanced ? kWords : 0;
  const std::size_t block = frame.own_peer ? kOwnBlock.size() : 0;
  const std::size_t data = words + frame.private_data.size() + block;
  if (frame.private_data.size() > kMpaMaxPrivateData || data > kMpaMaxPrivateData) return 0;
  std::memcpy(out.data(), frame.reply ? kMpaReplyKey : kMpaRequestKey, kMpaKeySize);
  out[16] = static_cast<std::byte>(
      (frame.markers ? kMpaFlagMarkers : 0) | (frame.crc ? kMpaFlagCrc : 0) |
      (frame.rejected ? kMpaFlagRejected : 0) | (frame.enhanced ? kMpaFlagEnhanced : 0));
  out[17] = static_cast<std::byte>(frame.revision);
  store_be16(out.data() + 18, static_cast<std::uint16_t>(data));
  std::byte* p = out.data() + kMpaFrameHeader;
  if (frame.enhanced) {
    store_be16(p, ird_word(frame));
    store_be16(p + 2, ord_word(frame));
    p += kWords;
  }
  if (!frame.private_data.empty()) {
    std::memcpy(p, frame.private_data.data(), frame.private_data.size());
    p += frame.private_data.size();
  }
  if (frame.own_peer) std::memcpy(p, kOwnBlock.data(), kOwnBlock.size());
  return kMpaFrameHeader + data;
}

const char* mpa_parse_text(MpaParse parse) {
  switch (parse) {
    case MpaParse::kNeedMore:
      return "MPA frame incomplete";
    case MpaParse::kDone:
      return "MPA frame";
    case MpaParse::kBadKey:
      return "no MPA frame";
    case MpaParse::kRecordMark:
      return "an NFS client over plain TCP";
    case MpaParse::kBadLength:
      return "MPA private data of a wrong length";
    case MpaParse::kBadRevision:
      return "unknown MPA revision";
  }
  return "MPA frame";
}

MpaParse decode_mpa_frame(ByteSpan bytes, bool expect_reply, std::size_t* need, MpaFrame* frame) {
  const char* key = expect_reply ? kMpaReplyKey : kMpaRequestKey;
  const std::size_t key_bytes = std::min(bytes.size(), kMpaKeySize);
  if (key_bytes > 0 && std::memcmp(bytes.data(), key, key_bytes) != 0) {
    return looks_like_record_mark(bytes) ? MpaParse::kRecordMark : MpaParse::kBadKey;
  }
  *need = kMpaFrameHeader;
  if (bytes.size() < kMpaFrameHeader) return MpaParse::kNeedMore;
  const auto flags = static_cast<std::uint8_t>(bytes[16]);
  const auto revision = static_cast<std::uint8_t>(bytes[17]);
  const std::size_t length = load_be16(bytes.data() + 18);
  if (revision < kMpaRevision1 || revision > kMpaRevision2) return MpaParse::kBadRevision;
  if (length > kMpaMaxPrivateData) return MpaParse::kBadLength;
  // S means something from revision 2 on only.
  const bool enhanced = (flags & kMpaFlagEnhanced) != 0 && revision == kMpaRevision2;
  if (enhanced && length < kWords) return MpaParse::kBadLength;
  *need = kMpaFrameHeader + length;
  if (bytes.size() < *need) return MpaParse::kNeedMore;

  *frame = {};
  frame->reply = expect_reply;
  frame->markers = (flags & kMpaFlagMarkers) != 0;
  frame->crc = (flags & kMpaFlagCrc) != 0;
  frame->rejected = (flags & kMpaFlagRejected) != 0 && expect_reply;
  frame->enhanced = enhanced;
  frame->revision = revision;
  ByteSpan data = bytes.subspan(kMpaFrameHeader, length);
  if (enhanced) {
    load_words(data.data(), frame);
    data = data.subspan(kWords);
  }
  frame->own_peer = ends_with_own_block(data);
  if (frame->own_peer) data = data.first(data.size() - kOwnBlock.size());
  frame->private_data = data;
  return MpaParse::kDone;
}

std::uint32_t peer_inbound_reads(const MpaFrame& request) {
  // Revision 1 does not tell; one is the only safe guess.
  if (!request.enhanced) return 1;
  return std::min<std::uint32_t>(request.ird, kMpaMaxDepth);
}

const char* request_fault(const MpaFrame& request) {
  return request.markers ? "the peer wants MPA markers, which are not supported" : nullptr;
}

MpaAgreement answer_request(const MpaFrame& request, const MpaLimits& limits, MpaFrame* reply) {
  MpaAgreement agreed;
  agreed.crc = request.crc || limits.require_crc;
  agreed.own_peer = request.own_peer;
  agreed.revision = request.revision;
  agreed.ord = std::min<std::uint32_t>(peer_inbound_reads(request), limits.ord);
  *reply = {};
  reply->reply = true;
  reply->revision = request.revision;
  reply->enhanced = request.enhanced;
  reply->crc = agreed.crc;
  reply->own_peer = request.own_peer;
  if (!request.enhanced) {
    agreed.ird = limits.ird;
    return agreed;
  }
  agreed.ird = std::min<std::uint32_t>(request.ord, limits.ird);
  if (request.peer_to_peer) {
    // Exactly one bit: cxgb4 takes two for a mismatch.
    reply->peer_to_peer = true;
    if (request.rtr_write || (!request.rtr_read && !request.rtr_send)) {
      agreed.rtr = RtrKind::kWrite;
      reply->rtr_write = true;
    } else if (request.rtr_read) {
      agreed.rtr = RtrKind::kRead;
      reply->rtr_read = true;
      agreed.ird = std::max<std::uint32_t>(agreed.ird, 1);
    } else {
      agreed.rtr = RtrKind::kSend;
      reply->rtr_send = true;
    }
  }
  // "No automatic negotiation" is answered in kind.
  reply->ird = static_cast<std::uint16_t>(request.ord == kMpaDepthUnspecified ? kMpaDepthUnspecified
                                                                              : agreed.ird);
  reply->ord = static_cast<std::uint16_t>(request.ird == kMpaDepthUnspecified ? kMpaDepthUnspecified
                                                                              : agreed.ord);
  return agreed;
}

MpaFrame reject_request(const MpaFrame& request) {
  MpaFrame reply;
  reply.reply = true;
  reply.rejected = true;
  reply.revision = request.revision;
  reply.enhanced = request.enhanced;
  return reply;
}

MpaAttempt next_attempt(MpaAttempt attempt) {
  return static_cast<MpaAttempt>((static_cast<int>(attempt) + 1) % kMpaAttempts);
}

MpaFrame make_request(MpaAttempt attempt, const MpaLimits& limits) {
  MpaFrame request;
  request.crc = limits.require_crc;
  request.own_peer = true;
  request.ird = std::min(limits.ird, kMpaMaxDepth);
  if (attempt == MpaAttempt::kRevision1) {
    // The frame has no words for it, but the peer may read all the same (at least once at a time,
    // wire.md 0.1(13)); we never do.
    request.revision = kMpaRevision1;
    return request;
  }
  request.enhanced = true;
  request.ord = std::min(limits.ord, kMpaMaxDepth);
  if (attempt == MpaAttempt::kPeerToPeer) {
    request.peer_to_peer = true;
    request.rtr_read = true;
    request.ord = std::max<std::uint16_t>(request.ord, 1);
  }
  return request;
}

Result<MpaAgreement> conclude_reply(const MpaFrame& request, const MpaFrame& reply,
                                    const MpaLimits& limits) {
  if (reply.rejected) return Error{Errc::kRefused, 0, "the peer rejected the connection"};
  if (reply.markers) return Error{Errc::kProtocol, 0, "the peer wants MPA markers"};
  MpaAgreement agreed;
  agreed.crc = request.crc || reply.crc;
  agreed.own_peer = reply.own_peer;
  agreed.revision = reply.revision;
  if (!reply.enhanced) {
    // An old peer, or one that does not negotiate: it may read as we offered, we do not.
    agreed.ird = limits.ird;
    return agreed;
  }
  if (reply.ord != kMpaDepthUnspecified && reply.ord > kMpaMaxDepth) {
    return Error{Errc::kProtocol, 0, terminate_text(kTermMpaInsufficientIrd)};
  }
  const std::uint32_t wanted = reply.ord == kMpaDepthUnspecified ? 0 : reply.ord;
  agreed.ird = std::max<std::uint32_t>(request.ird, wanted);
  agreed.ord = std::min<std::uint32_t>(request.ord, reply.ird);
  if (request.peer_to_peer && reply.peer_to_peer) {
    // Whatever it chose is fine with us, offered or not (cxgb4 names its module's type).
    agreed.rtr = reply.rtr_read    ? RtrKind::kRead
                 : reply.rtr_write ? RtrKind::kWrite
                 : reply.rtr_send  ? RtrKind::kSend
                                   : RtrKind::kWrite;
    if (agreed.rtr == RtrKind::kRead) agreed.ord = std::max<std::uint32_t>(agreed.ord, 1);
  }
  return agreed;
}

}  // namespace nfsrdma::iwarp
