// SPDX-License-Identifier: Apache-2.0
// MPA on the wire (RFC 5044, RFC 6581): the start-up frame's fields and the FPDU around a DDP
// segment. Without markers:
//
//   0..1  ULPDU length   2..  DDP segment   pad to four bytes   CRC32c, least significant byte
//   first
#pragma once

#include <cstddef>
#include <cstdint>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma::iwarp {

inline constexpr std::size_t kMpaKeySize = 16;
inline constexpr char kMpaRequestKey[] = "MPA ID Req Frame";
inline constexpr char kMpaReplyKey[] = "MPA ID Rep Frame";
inline constexpr std::size_t kMpaFrameHeader = 20;
inline constexpr std::size_t kMpaMaxPrivateData = 512;
/// What siw and cxgb4 take; the IRD and ORD words count.
inline constexpr std::size_t kMpaSafePrivateData = 256;
inline constexpr std::size_t kMpaMaxFrame = kMpaFrameHeader + kMpaMaxPrivateData;

inline constexpr std::uint8_t kMpaFlagMarkers = 0x80;
inline constexpr std::uint8_t kMpaFlagCrc = 0x40;
inline constexpr std::uint8_t kMpaFlagRejected = 0x20;
inline constexpr std::uint8_t kMpaFlagEnhanced = 0x10;

inline constexpr std::uint8_t kMpaRevision1 = 1;
inline constexpr std::uint8_t kMpaRevision2 = 2;

// The two words of RFC 6581.
inline constexpr std::uint16_t kMpaIrdPeerToPeer = 0x8000;  // A
inline constexpr std::uint16_t kMpaIrdRtrSend = 0x4000;     // B
inline constexpr std::uint16_t kMpaOrdRtrWrite = 0x8000;    // C
inline constexpr std::uint16_t kMpaOrdRtrRead = 0x4000;     // D
inline constexpr std::uint16_t kMpaDepthMask = 0x3fff;
/// "No automatic negotiation".
inline constexpr std::uint16_t kMpaDepthUnspecified = 0x3fff;
/// siw treats more as an error.
inline constexpr std::uint16_t kMpaMaxDepth = 128;

inline constexpr std::size_t kMpaLengthSize = 2;
inline constexpr std::size_t kMpaCrcSize = 4;
inline constexpr std::size_t kMaxUlpdu = 0xffff;
inline constexpr std::size_t kMaxTrailer = 3 + kMpaCrcSize;

/// Bytes of padding and CRC after `front` bytes (length field and DDP segment).
constexpr std::size_t fpdu_trailer(std::size_t front) {
  return pad4(front) + kMpaCrcSize;
}

}  // namespace nfsrdma::iwarp
