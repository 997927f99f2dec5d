// SPDX-License-Identifier: Apache-2.0
#include "server/daemonize.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "rpcrdma/base/standard_streams.h"

namespace nfsrdma {

Daemonizer::Daemonizer(bool background) : background_(background) {
  hold_standard_streams(ClosedStream::kIsNull);
  if (!background_) return;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    background_ = false;
    std::perror("nfs-rdmad: pipe");
    return;
  }
  UniqueFd reader(ends[0]), writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    background_ = false;
    std::perror("nfs-rdmad: fork");
    return;
  }
  parent_ = child > 0;
  pipe_ = std::move(parent_ ? reader : writer);
  if (!parent_) ::setsid();
}

int Daemonizer::wait_for_child() {
  char byte = 0;
  ssize_t n;
  do {
    n = ::read(pipe_.get(), &byte, 1);
  } while (n < 0 && errno == EINTR);
  return n == 1 ? byte : 1;
}

void Daemonizer::failed(int status) {
  if (!background_ || parent_) return;
  const char byte = static_cast<char>(status);
  [[maybe_unused]] ssize_t n = ::write(pipe_.get(), &byte, 1);
}

void Daemonizer::ready() {
  if (!background_ || parent_) return;
  [[maybe_unused]] int ignored = ::chdir("/");
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) {
    ::dup2(null.get(), STDIN_FILENO);
    ::dup2(null.get(), STDOUT_FILENO);
    // A log that goes to a file or to the journal goes on there.
    if (::isatty(STDERR_FILENO) == 1) ::dup2(null.get(), STDERR_FILENO);
  }
  const char byte = 0;
  [[maybe_unused]] ssize_t n = ::write(pipe_.get(), &byte, 1);
  pipe_.reset();
}

}  // namespace nfsrdma
