// SPDX-License-Identifier: Apache-2.0
// MPA start-up (RFC 5044 section 7.1, RFC 6581): the Request and Reply frames and what each side
// makes of the other's. Pure.
//
// Private data of ours ends with a block of eight bytes that says "this software": between two such
// peers FPDUs are large and share system calls. The block is put on and taken off here; the layer
// above never sees it. Linux reads only what is in front of it.
#pragma once

#include <array>
#include <cstdint>

#include "rpcrdma/base/result.h"
#include "rpcrdma/iwarp/engine.h"
#include "rpcrdma/iwarp/mpa_wire.h"

namespace nfsrdma::iwarp {

struct MpaFrame {
  bool reply = false;
  bool markers = false;
  bool crc = false;
  bool rejected = false;
  bool enhanced = false;
  std::uint8_t revision = kMpaRevision2;
  // Only with `enhanced`:
  bool peer_to_peer = false;  // A
  bool rtr_send = false;      // B
  bool rtr_write = false;     // C
  bool rtr_read = false;      // D
  std::uint16_t ird = 0;      // of a request of ours also without: what we let the peer read
  std::uint16_t ord = 0;
  bool own_peer = false;  // our block is there
  ByteSpan private_data;  // of the layer above, without words and block
};

using MpaFrameBytes = std::array<std::byte, kMpaMaxFrame>;

/// Size of the encoded frame; 0 when the private data is too long.
std::size_t encode_mpa_frame(const MpaFrame& frame, MpaFrameBytes& out);

enum class MpaParse : std::uint8_t {
  kNeedMore,    // read on, up to *need bytes in all
  kDone,        // *frame is filled; its private data points into the bytes
  kBadKey,      // not MPA
  kRecordMark,  // not MPA: looks like RPC over TCP
  kBadLength,   // private data beyond the limit or below what the flags ask for
  kBadRevision,
};
const char* mpa_parse_text(MpaParse parse);

/// Looks at the bytes so far of the frame that the peer sends first. Never asks for bytes beyond
/// the frame: an FPDU may follow.
MpaParse decode_mpa_frame(ByteSpan bytes, bool expect_reply, std::size_t* need, MpaFrame* frame);

struct MpaLimits {
  bool require_crc = false;
  std::uint16_t ird = 32;
  std::uint16_t ord = 16;
};

/// What both sides agreed on.
struct MpaAgreement {
  bool crc = false;
  bool own_peer = false;
  std::uint8_t revision = kMpaRevision2;
  RtrKind rtr = RtrKind::kNone;
  std::uint32_t ird = 0;
  std::uint32_t ord = 0;
};

/// RDMA Reads that the sender of `request` lets us have outstanding.
std::uint32_t peer_inbound_reads(const MpaFrame& request);

/// Null when the request can be served, else why it must be rejected.
const char* request_fault(const MpaFrame& request);

/// The responder's side. `reply` lacks only its private data.
MpaAgreement answer_request(const MpaFrame& request, const MpaLimits& limits, MpaFrame* reply);

/// The reply that rejects `request`.
MpaFrame reject_request(const MpaFrame& request);

enum class MpaAttempt : std::uint8_t {
  kPlain,       // revision 2, the initiator's first message starts the stream
  kPeerToPeer,  // revision 2, A=1 with a Read as RTR (irdma insists)
  kRevision1,
};
inline constexpr int kMpaAttempts = 3;

/// The kind to try behind `attempt`: in the order above, and round.
MpaAttempt next_attempt(MpaAttempt attempt);

/// The initiator's request. Lacks only its private data.
MpaFrame make_request(MpaAttempt attempt, const MpaLimits& limits);

/// The initiator's side. kRefused: rejected; kProtocol: cannot go on.
Result<MpaAgreement> conclude_reply(const MpaFrame& request, const MpaFrame& reply,
                                    const MpaLimits& limits);

}  // namespace nfsrdma::iwarp
