// SPDX-License-Identifier: Apache-2.0
// What libfuse reads from and writes to /dev/fuse, by functions of ours: libfuse 3.14 takes the
// wish for FUSE_CAP_HANDLE_KILLPRIV and forgets it in its answer to INIT. Without it the kernel
// takes the set-id bits away with a chmod in the name of whoever writes, who need not be the owner.
// Of FUSE_HANDLE_KILLPRIV_V2 it does not know.
#pragma once

#include "client/fuse/fuse_api.h"
#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// Of a session that is mounted and has not answered anything yet. One session in a process.
Result<void> take_over_device_io(fuse_session* session);

}  // namespace nfsrdma
