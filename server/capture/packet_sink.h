// SPDX-License-Identifier: Apache-2.0
// PacketSink: where the frames of a capture go as they are made. On one thread.
#pragma once

#include <span>
#include <string_view>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// A frame of `original_length` bytes, of which `pieces` are kept; sent by us (`outbound`) or by
  /// the client.
  virtual void packet(bool outbound, std::span<const ByteSpan> pieces, std::size_t original_length,
                      std::string_view comment) = 0;
};

}  // namespace nfsrdma
