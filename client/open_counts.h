// SPDX-License-Identifier: Apache-2.0
// OpenCounts: for what one file is open, and how often.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "client/nfs_types.h"

namespace nfsrdma {

class OpenCounts {
 public:
  /// `access`: access_bits::kRead and kModify, at least one of them.
  void add(std::uint32_t access) { ++opens_[place_of(access)]; }
  void remove(std::uint32_t access) {
    std::size_t& opens = opens_[place_of(access)];
    if (opens > 0) --opens;
  }
  /// All that somebody has it open for; 0: nobody.
  std::uint32_t access() const {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kKinds.size(); ++i)
      if (opens_[i] > 0) sum |= kKinds[i];
    return sum;
  }

 private:
  static constexpr std::array<std::uint32_t, 3> kKinds{access_bits::kRead, access_bits::kModify,
                                                       access_bits::kRead | access_bits::kModify};

  static std::size_t place_of(std::uint32_t access) {
    const auto* found = std::find(kKinds.begin(), kKinds.end(), access);
    return found == kKinds.end() ? 0 : static_cast<std::size_t>(found - kKinds.begin());
  }

  std::array<std::size_t, kKinds.size()> opens_{};  // by kKinds
};

}  // namespace nfsrdma
