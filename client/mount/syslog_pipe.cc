// SPDX-License-Identifier: Apache-2.0
#include "client/mount/syslog_pipe.h"

#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <cstdio>

namespace nfsrdma {

SyslogPipe::SyslogPipe(const char* name) {
  int ends[2] = {-1, -1};
  UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null_device) {
    ::dup2(null_device.get(), STDIN_FILENO);
    ::dup2(null_device.get(), STDOUT_FILENO);
    ::dup2(null_device.get(), STDERR_FILENO);
  }
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  read_end_.reset(ends[0]);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  ::openlog(name, LOG_PID, LOG_DAEMON);
  thread_ = std::thread([this] { run(); });
}

SyslogPipe::~SyslogPipe() {
  if (!thread_.joinable()) return;
  UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // The last write end: the thread reads to the end.
  if (null_device) {
    ::dup2(null_device.get(), STDERR_FILENO);
  } else {
    ::close(STDERR_FILENO);
  }
  thread_.join();
}

void SyslogPipe::run() {
  FILE* stream = ::fdopen(read_end_.release(), "r");
  if (stream == nullptr) return;
  char line[1024];
  while (std::fgets(line, sizeof line, stream) != nullptr)
    ::syslog(LOG_NOTICE, "%s", line);
  std::fclose(stream);
}

}  // namespace nfsrdma
