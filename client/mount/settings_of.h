// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/mount/options.h"
#include "client/mount_settings.h"

namespace nfsrdma {

/// nfs(5) options as the client library wants them. Without addresses.
MountSettings settings_of(const MountSource& source, const MountOptions& options);

}  // namespace nfsrdma
