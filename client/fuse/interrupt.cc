// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/interrupt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

bool fatal_signal_pending(pid_t pid) {
  if (pid <= 0) return true;  // in a foreign namespace: the kernel's word has to do
  UniqueFd fd(::open(fmt::format("/proc/{}/status", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return true;
  char text[8192];
  const ssize_t n = ::read(fd.get(), text, sizeof text - 1);
  if (n <= 0) return true;
  text[n] = '\0';
  // The kernel turns every signal that ends a process into a SIGKILL of its threads.
  constexpr std::string_view kLabel = "\nSigPnd:\t";
  const std::size_t at = std::string_view(text).find(kLabel);
  if (at == std::string_view::npos) return true;
  const unsigned long long pending = std::strtoull(text + at + kLabel.size(), nullptr, 16);
  return (pending >> (SIGKILL - 1) & 1) != 0;
}

}  // namespace nfsrdma
