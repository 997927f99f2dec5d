// SPDX-License-Identifier: Apache-2.0
// DDP segment headers (RFC 5041) as they stand at the start of an FPDU, i.e. with MPA's length in
// front:
//
//   tagged    0 length | 2 control | 4 STag | 8 tagged offset | 16 payload
//   untagged  0 length | 2 control | 4 RsvdULP | 8 queue | 12 MSN | 16 message offset | 20 payload
#pragma once

#include <cstddef>
#include <cstdint>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/iwarp/mpa_wire.h"

namespace nfsrdma::iwarp {

inline constexpr std::uint8_t kDdpTagged = 0x80;
inline constexpr std::uint8_t kDdpLast = 0x40;
inline constexpr std::uint8_t kDdpVersionMask = 0x03;
inline constexpr std::uint8_t kDdpVersion = 1;

inline constexpr std::size_t kTaggedHeader = 16;
inline constexpr std::size_t kUntaggedHeader = 20;
inline constexpr std::size_t kMaxFpduHeader = kUntaggedHeader;
/// Enough of a header to know which kind it is.
inline constexpr std::size_t kFpduPeek = 4;

inline constexpr std::uint32_t kQueueSend = 0;
inline constexpr std::uint32_t kQueueReadRequest = 1;
inline constexpr std::uint32_t kQueueTerminate = 2;

/// Largest payloads that a 16-bit ULPDU length allows, cut down to a multiple of 64.
inline constexpr std::size_t kMaxTaggedPayload = 65472;
inline constexpr std::size_t kMaxUntaggedPayload = 65472;

/// One DDP segment's header, decoded. Nothing in it is trusted yet.
struct FpduHeader {
  std::uint16_t ulpdu_length = 0;
  std::uint8_t ddp_control = 0;
  std::uint8_t rdmap_control = 0;
  // tagged
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;
  // untagged
  std::uint32_t rsvd_ulp = 0;
  std::uint32_t queue = 0;
  std::uint32_t msn = 0;
  std::uint32_t message_offset = 0;

  bool tagged() const { return (ddp_control & kDdpTagged) != 0; }
  bool last() const { return (ddp_control & kDdpLast) != 0; }
  std::uint8_t ddp_version() const { return ddp_control & kDdpVersionMask; }
  std::size_t size() const { return tagged() ? kTaggedHeader : kUntaggedHeader; }
  /// Only when ulpdu_length covers the header.
  std::uint32_t payload() const {
    return static_cast<std::uint32_t>(kMpaLengthSize + ulpdu_length - size());
  }
};

inline std::size_t fpdu_header_size(std::uint8_t ddp_control) {
  return (ddp_control & kDdpTagged) != 0 ? kTaggedHeader : kUntaggedHeader;
}

/// `raw` holds fpdu_header_size() bytes.
inline FpduHeader load_fpdu_header(const std::byte* raw) {
  FpduHeader header;
  header.ulpdu_length = load_be16(raw);
  header.ddp_control = static_cast<std::uint8_t>(raw[2]);
  header.rdmap_control = static_cast<std::uint8_t>(raw[3]);
  if (header.tagged()) {
    header.stag = load_be32(raw + 4);
    header.offset = load_be64(raw + 8);
  } else {
    header.rsvd_ulp = load_be32(raw + 4);
    header.queue = load_be32(raw + 8);
    header.msn = load_be32(raw + 12);
    header.message_offset = load_be32(raw + 16);
  }
  return header;
}

/// Writes header.size() bytes; returns how many.
inline std::size_t store_fpdu_header(std::byte* raw, const FpduHeader& header) {
  store_be16(raw, header.ulpdu_length);
  raw[2] = static_cast<std::byte>(header.ddp_control);
  raw[3] = static_cast<std::byte>(header.rdmap_control);
  if (header.tagged()) {
    store_be32(raw + 4, header.stag);
    store_be64(raw + 8, header.offset);
  } else {
    store_be32(raw + 4, header.rsvd_ulp);
    store_be32(raw + 8, header.queue);
    store_be32(raw + 12, header.msn);
    store_be32(raw + 16, header.message_offset);
  }
  return header.size();
}

}  // namespace nfsrdma::iwarp
