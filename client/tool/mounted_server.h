// SPDX-License-Identifier: Apache-2.0
// Where the server of a FUSE mount is, by what the mount's daemon says of itself.
#pragma once

#include <string>

#include "client/mount_settings.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// The settings that the mount which says `status` runs with. False: it is not a mount's.
bool settings_of_status(const JsonValue& status, MountSettings* settings);

/// The same for the mount at or above `directory`; *source: its "server:/path". False with *why in
/// one line.
bool settings_of_mount(const std::string& directory, MountSettings* settings, std::string* source,
                       std::string* why);

}  // namespace nfsrdma::tool
