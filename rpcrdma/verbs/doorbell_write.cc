// SPDX-License-Identifier: Apache-2.0
// write() for a whole program, so that the doorbells inside the providers' libraries come to
// doorbell.h. Linked into programs only (nfsrdma_verbs_doorbell), never into a library of ours:
// what libnfsrdma is linked into is none of its business. Not under the sanitizers, which have a
// write() of their own: there the command thread rings.
#include <sys/syscall.h>
#include <unistd.h>

#include "rpcrdma/verbs/doorbell.h"

#ifndef NFSRDMA_SANITIZED

extern "C" __attribute__((visibility("default"))) ssize_t write(int fd, const void* bytes,
                                                                std::size_t count) {
  ssize_t result = 0;
  if (nfsrdma::verbs::Doorbell::rings(fd, bytes, count, &result)) return result;
  return ::syscall(SYS_write, fd, bytes, count);
}

namespace {
[[maybe_unused]] const bool g_registered = [] {
  nfsrdma::verbs::set_interposed_write(&::write);
  return true;
}();
}  // namespace

#endif
