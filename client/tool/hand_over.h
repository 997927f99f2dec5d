// SPDX-License-Identifier: Apache-2.0
// Whether what was written to a file has got where it belongs: file systems of other hosts and in
// user space (NFS, CIFS, FUSE) tell some errors, ENOSPC and EDQUOT among them, only at close(2).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "rpcrdma/base/error.h"
#include "rpcrdma/base/result.h"

namespace nfsrdma::tool {

using CloseFile = int (*)(int fd);

/// `fd` stays open. `close_file`: close(2), but for tests.
inline Result<void> hand_over(int fd, CloseFile close_file = ::close) {
  const int same = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (same < 0) return system_error("dup");
  if (close_file(same) != 0) return system_error("close");
  return {};
}

}  // namespace nfsrdma::tool
