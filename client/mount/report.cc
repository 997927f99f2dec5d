// SPDX-License-Identifier: Apache-2.0
#include "client/mount/report.h"

#include <poll.h>
#include <unistd.h>

namespace nfsrdma {

bool MountReport::send(char kind, const std::string& text) {
  if (!pipe_) return false;
  const std::string all = kind + text;
  const ssize_t n = ::write(pipe_.get(), all.data(), all.size());
  pipe_.reset();
  return n == static_cast<ssize_t>(all.size());
}

bool MountReport::abandoned() const {
  if (!pipe_) return false;
  pollfd end{pipe_.get(), 0, 0};
  // POLLERR, which need not be asked for: no reader has the pipe open.
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

}  // namespace nfsrdma
