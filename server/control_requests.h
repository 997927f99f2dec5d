// SPDX-License-Identifier: Apache-2.0
// What the control socket offers of a running server: status, locks, evict, release, trace.
#pragma once

#include "server/control.h"
#include "server/nfs_server.h"

namespace nfsrdma {

/// `server` outlives `control`.
void register_requests(ControlSocket& control, NfsServer& server);

}  // namespace nfsrdma
