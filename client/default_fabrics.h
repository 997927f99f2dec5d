// SPDX-License-Identifier: Apache-2.0
// The fabrics of this build, made on first use and kept until the process ends.
#pragma once

#include "client/mount_settings.h"

namespace nfsrdma {

/// Any thread.
Fabrics default_fabrics();

}  // namespace nfsrdma
