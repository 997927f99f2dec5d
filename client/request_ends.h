// SPDX-License-Identifier: Apache-2.0
// How requests end on which nobody waits any more, the same for all versions of NFS.
#pragma once

#include <cerrno>

#include "rpcrdma/base/error.h"

namespace nfsrdma {

/// Everything was told to stop: the mount ends, or gives its server up.
inline const Error kStopped{Errc::kSystem, EIO, "aborted"};
/// Who asked was killed, or has given up.
inline const Error kInterrupted{Errc::kSystem, EINTR, "interrupted"};

// Of locks:
inline const Error kLost{Errc::kSystem, EIO, "a lock on this file was lost"};
inline const Error kInTheWay{Errc::kSystem, EAGAIN, "LOCK"};

}  // namespace nfsrdma
