// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace nfsrdma {

void hold_standard_streams(ClosedStream use) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // Open for what nobody does with it.
    const int useless = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    const int mode = use == ClosedStream::kFails ? useless : O_RDWR;
    [[maybe_unused]] const int lowest = ::open("/dev/null", mode);
  }
}

}  // namespace nfsrdma
