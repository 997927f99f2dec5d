// SPDX-License-Identifier: Apache-2.0
// CRC32c as MPA uses it (RFC 5044 section 4.4): running state, so that the pieces of an FPDU can
// be added as they arrive.
#pragma once

#include <cstdint>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma::iwarp {

class Crc32c {
 public:
  void reset() { state_ = 0xffffffffu; }
  void add(const std::byte* data, std::size_t size);
  void add(ByteSpan bytes) { add(bytes.data(), bytes.size()); }
  /// The standard value; store_le32 puts it on the wire.
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffffu;
};

}  // namespace nfsrdma::iwarp
