// SPDX-License-Identifier: Apache-2.0
// Terminate messages (RFC 5040 section 4.8): the codes, how one is built and how a received one is
// told to people. siw on little-endian hosts swaps the bit fields of the first and third byte; the
// printer notices.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/iwarp/ddp_wire.h"
#include "rpcrdma/iwarp/rdmap_wire.h"

namespace nfsrdma::iwarp {

struct TerminateCode {
  std::uint8_t layer = 0;  // 0 RDMAP, 1 DDP, 2 MPA
  std::uint8_t type = 0;
  std::uint8_t code = 0;
  bool operator==(const TerminateCode&) const = default;
};

inline constexpr TerminateCode kTermRdmapLocal{0, 0, 0x00};
inline constexpr TerminateCode kTermRdmapInvalidStag{0, 1, 0x00};
inline constexpr TerminateCode kTermRdmapBounds{0, 1, 0x01};
inline constexpr TerminateCode kTermRdmapAccess{0, 1, 0x02};
inline constexpr TerminateCode kTermRdmapStream{0, 1, 0x03};
inline constexpr TerminateCode kTermRdmapOffsetWrap{0, 1, 0x04};
inline constexpr TerminateCode kTermRdmapVersion{0, 2, 0x05};
inline constexpr TerminateCode kTermRdmapOpcode{0, 2, 0x06};
inline constexpr TerminateCode kTermRdmapStreamFatal{0, 2, 0x07};
inline constexpr TerminateCode kTermRdmapInvalidate{0, 2, 0x09};
inline constexpr TerminateCode kTermDdpInvalidStag{1, 1, 0x00};
inline constexpr TerminateCode kTermDdpBounds{1, 1, 0x01};
inline constexpr TerminateCode kTermDdpStream{1, 1, 0x02};
inline constexpr TerminateCode kTermDdpOffsetWrap{1, 1, 0x03};
inline constexpr TerminateCode kTermDdpTaggedVersion{1, 1, 0x04};
inline constexpr TerminateCode kTermDdpInvalidQueue{1, 2, 0x01};
inline constexpr TerminateCode kTermDdpNoBuffer{1, 2, 0x02};
inline constexpr TerminateCode kTermDdpMsn{1, 2, 0x03};
inline constexpr TerminateCode kTermDdpMessageOffset{1, 2, 0x04};
inline constexpr TerminateCode kTermDdpTooLong{1, 2, 0x05};
inline constexpr TerminateCode kTermDdpUntaggedVersion{1, 2, 0x06};
inline constexpr TerminateCode kTermMpaCrc{2, 0, 0x02};
inline constexpr TerminateCode kTermMpaLength{2, 0, 0x03};
inline constexpr TerminateCode kTermMpaInsufficientIrd{2, 0, 0x06};
inline constexpr TerminateCode kTermMpaNoRtr{2, 0, 0x07};

/// "DDP untagged: no buffer for the message". Static text.
const char* terminate_text(TerminateCode code);

/// Header 20, control 4, length 2, DDP header 18, Read Request 28, CRC 4 (and no padding).
inline constexpr std::size_t kMaxTerminateFpdu = 76;
/// What may follow the untagged header.
inline constexpr std::size_t kMaxTerminateBody = 52;

/// Builds the whole FPDU into `out`; returns its size. `header` (the segment to blame) and
/// `read_request` may be null.
std::size_t store_terminate(std::array<std::byte, kMaxTerminateFpdu>& out, TerminateCode code,
                            const FpduHeader* header, const ReadRequestBody* read_request,
                            bool crc);

/// One line about a received Terminate's body.
std::string describe_terminate(ByteSpan body);

}  // namespace nfsrdma::iwarp
