// SPDX-License-Identifier: Apache-2.0
// RDMAP on the wire (RFC 5040): opcodes and the Read Request's body.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma::iwarp {

inline constexpr std::uint8_t kRdmapVersionMask = 0xc0;
inline constexpr std::uint8_t kRdmapVersion = 0x40;
inline constexpr std::uint8_t kRdmapOpcodeMask = 0x0f;

enum class RdmapOpcode : std::uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
};

inline bool is_send(RdmapOpcode opcode) {
  return opcode >= RdmapOpcode::kSend && opcode <= RdmapOpcode::kSendSolicitedInvalidate;
}
inline bool invalidates(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kSendInvalidate || opcode == RdmapOpcode::kSendSolicitedInvalidate;
}

/// What follows the untagged header of a Read Request.
struct ReadRequestBody {
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_offset = 0;
  std::uint32_t size = 0;
  std::uint32_t source_stag = 0;
  std::uint64_t source_offset = 0;
};
inline constexpr std::size_t kReadRequestBody = 28;

inline ReadRequestBody load_read_request(const std::byte* raw) {
  return {load_be32(raw), load_be64(raw + 4), load_be32(raw + 12), load_be32(raw + 16),
          load_be64(raw + 20)};
}
inline void store_read_request(std::byte* raw, const ReadRequestBody& body) {
  store_be32(raw, body.sink_stag);
  store_be64(raw + 4, body.sink_offset);
  store_be32(raw + 12, body.size);
  store_be32(raw + 16, body.source_stag);
  store_be64(raw + 20, body.source_offset);
}

}  // namespace nfsrdma::iwarp
