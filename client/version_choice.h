// SPDX-License-Identifier: Apache-2.0
// Which version of NFS comes next where none was named, as mount.nfs does it: 4.2, 4.1
// and 4.0 are tried by the session itself (SessionOptions::any_minor), then 3.
#pragma once

#include <chrono>

#include "client/nfs_version.h"
#include "rpcrdma/base/error.h"

namespace nfsrdma {

/// Version 4 was tried and ended with `error`. Is there reason to try version 3? The server does
/// not speak version 4 (in none of our minor versions), or the path is not in its tree there: old
/// servers have no root that leads to all exports.
bool leads_to_version_3(const Error& error);

/// How long version 3 may then wait for a connection to MOUNT or rpcbind. The server is there and
/// has answered, nobody has asked for version 3, and a firewall that drops what goes to those ports
/// must not keep "no such path" back: the first SYN, and two more behind it.
inline constexpr std::chrono::milliseconds kFallbackConnectTimeout{3500};

/// Both have failed. Does `third` say more than `fourth`?
bool version_3_says_more(const Error& fourth, const Error& third);

}  // namespace nfsrdma
