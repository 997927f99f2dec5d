// SPDX-License-Identifier: Apache-2.0
// What the doctor does with a server, over one transport: an empty call, and a file that is
// written, read back and removed. Blocking; every call in it ends within `patience`, and there are
// a dozen at most. settings.addresses must be filled in.
#pragma once

#include "client/doctor/server_visit.h"
#include "client/library/loop_driver.h"

namespace nfsrdma::doctor {

NullAnswer call_null(LoopDriver& driver, const MountSettings& settings, TransportKind kind,
                     std::chrono::milliseconds patience);
DataAnswer exchange_data(LoopDriver& driver, const MountSettings& settings, TransportKind kind,
                         std::chrono::milliseconds patience);

/// FNV-1a, 64 bits.
std::uint64_t checksum_of(std::span<const std::byte> bytes);

}  // namespace nfsrdma::doctor
