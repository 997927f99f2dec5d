// SPDX-License-Identifier: Apache-2.0
// Vendor numbers of the drivers that need to be told apart.
#pragma once

#include <cstdint>

namespace nfsrdma::verbs {

inline constexpr std::uint32_t kSiwVendor = 0x626d74;
inline constexpr std::uint32_t kRxeVendor = 0xffffff;
inline constexpr std::uint32_t kOmniPathVendor = 0x001175;  // True Scale too (hfi1, qib)

}  // namespace nfsrdma::verbs
