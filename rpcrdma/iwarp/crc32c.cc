// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace nfsrdma::iwarp {

void Crc32c::add(const std::byte* data, std::size_t size) {
  // ISA-L takes the length as int and, for history's sake, the data as not const.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  auto* p = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data));
  while (size > 0) {
    std::size_t piece = std::min(size, kMost);
    state_ = crc32_iscsi(p, static_cast<int>(piece), state_);
    p += piece;
    size -= piece;
  }
}

}  // namespace nfsrdma::iwarp
