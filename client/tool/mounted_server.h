// SPDX-License-Identifier: Apache-2.0
// Where the server of a FUSE mount is, by what the mount's daemon says of itself.
#pragma once

#include <string>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// A URL of the server with the mount's transport, without a path; empty: `status` is not a
/// mount's.
std::string server_url(const JsonValue& status);

/// The same for the mount at or above `directory`; empty with *why in one line.
std::string server_url_of_mount(const std::string& directory, std::string* why);

}  // namespace nfsrdma::tool
