// SPDX-License-Identifier: Apache-2.0
// Tells a WireTap of work requests that are about to be posted.
#pragma once

#include <span>

#include "rpcrdma/fabric.h"
#include "rpcrdma/wire_tap.h"

namespace nfsrdma {

/// Sends and Writes; of Reads that they begin.
void tap_requests(WireTap& tap, std::span<const WorkRequest> requests);

}  // namespace nfsrdma
