// SPDX-License-Identifier: Apache-2.0
// The fabrics of this build, made on first use and kept until the process ends.
#pragma once

#include "client/mount_settings.h"

namespace nfsrdma {

/// Any thread. `require_crc`: connections over iWARP ask for CRC32c (MPA).
Fabrics default_fabrics(bool require_crc = false);

}  // namespace nfsrdma
