// SPDX-License-Identifier: Apache-2.0
// Where a status document comes from: the control socket of a server or of a FUSE mount. Both
// answer the line `status` with one JSON document (server/control.h, client/mount/status_socket.h).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// How long a daemon may take to answer.
inline constexpr std::chrono::milliseconds kStatusPatience{5000};

/// Asks on `socket_path`, blocking, for `patience` at most. On an error *why is one line for
/// people; Error::sys is ETIMEDOUT when somebody is there but does not answer.
Result<std::string> fetch_status(const std::string& socket_path, std::string* why,
                                 std::chrono::milliseconds patience = kStatusPatience);

/// The control sockets that the mount at (or above) `directory` can have, likeliest first; empty
/// with *why when nothing of ours is mounted there. Never asks the mount itself: it may wait for a
/// server that is gone.
std::vector<std::string> mount_status_sockets(const std::string& directory, std::string* why);

}  // namespace nfsrdma
