// SPDX-License-Identifier: Apache-2.0
// CHECK is for programmer errors only: it ends the process with a message. Bytes that come from a
// peer, a file or a user never reach one (ARCHITECTURE.md, "Errors").
#pragma once

namespace nfsrdma {
[[noreturn]] void check_failed(const char* file, int line, const char* expression);
}

#define NFSRDMA_CHECK(cond)                               \
  do {                                                    \
    if (!(cond)) [[unlikely]]                             \
      ::nfsrdma::check_failed(__FILE__, __LINE__, #cond); \
  } while (0)

#ifdef NDEBUG
#define NFSRDMA_DCHECK(cond) \
  do {                       \
  } while (0 && (cond))
#else
#define NFSRDMA_DCHECK(cond) NFSRDMA_CHECK(cond)
#endif
