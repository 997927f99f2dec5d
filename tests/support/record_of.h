// SPDX-License-Identifier: Apache-2.0
// RPC over TCP: a message as a record (RFC 5531 11).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/record_mark.h"

namespace nfsrdma::test {

/// In fragments of at most that many bytes.
inline std::vector<std::byte> record_of(ByteSpan message, std::size_t fragment = SIZE_MAX) {
  std::vector<std::byte> record;
  do {
    const ByteSpan part = message.first(std::min(fragment, message.size()));
    message = message.subspan(part.size());
    std::byte mark[kRecordMarkBytes];
    store_be32(mark,
               (message.empty() ? kLastFragment : 0) | static_cast<std::uint32_t>(part.size()));
    record.insert(record.end(), mark, mark + kRecordMarkBytes);
    record.insert(record.end(), part.begin(), part.end());
  } while (!message.empty());
  return record;
}

}  // namespace nfsrdma::test
