// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace nfsrdma {

/// What using a standard stream does that was closed: nothing, or it fails as before.
enum class ClosedStream : std::uint8_t { kIsNull, kFails };

/// Opens /dev/null for each of the standard streams that is closed. Whoever starts a program
/// without one would have a file or socket get its number, and what is written to the stream go
/// there. First thing in main().
void hold_standard_streams(ClosedStream use);

}  // namespace nfsrdma
