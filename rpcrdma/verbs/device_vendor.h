// SPDX-License-Identifier: Apache-2.0
// Vendor numbers of the drivers that need to be told apart.
#pragma once

#include <cstdint>

namespace nfsrdma::verbs {

inline constexpr std::uint32_t kSiwVendor = 0x626d74;
inline constexpr std::uint32_t kRxeVendor = 0xffffff;
inline constexpr std::uint32_t kOmniPathVendor = 0x001175;  // True Scale too (hfi1, qib)

/// Does the driver keep peers within memory windows? rxe (Linux 6.1) looks whether an access lies
/// in the region below (check_rkey()), and an invalidation of a window that was invalidated before
/// makes it follow a null pointer (rxe_do_invalidate_mw()).
inline bool windows_are_safe(std::uint32_t vendor) {
  return vendor != kRxeVendor;
}

}  // namespace nfsrdma::verbs
