// SPDX-License-Identifier: Apache-2.0
// Where a status document comes from: the control socket of a server or of a FUSE mount. Both
// answer the line `status` with one JSON document (server/control.h, client/mount/status_socket.h).
#pragma once

#include <string>
#include <vector>

#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// Asks on `socket_path` (blocking, some seconds at most). On an error *why is one line for people.
Result<std::string> fetch_status(const std::string& socket_path, std::string* why);

/// The control sockets that the mount at `directory` can have, likeliest first; empty with *why
/// when nothing of ours is mounted there.
std::vector<std::string> mount_status_sockets(const std::string& directory, std::string* why);

}  // namespace nfsrdma
