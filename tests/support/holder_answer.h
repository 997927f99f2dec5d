// SPDX-License-Identifier: Apache-2.0
// What the holder of a write delegation answers to CB_GETATTR.
#pragma once

#include <vector>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::test {

/// obj_attributes of change and size, behind the operation's status.
inline std::vector<std::byte> holder_answer(std::uint64_t change, std::uint64_t size) {
  const auto half = [](std::uint64_t value, int shift) {
    return static_cast<std::uint32_t>(value >> shift);
  };
  return testing::words(
      {1, 0x18, 16, half(change, 32), half(change, 0), half(size, 32), half(size, 0)});
}

}  // namespace nfsrdma::test
