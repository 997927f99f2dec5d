// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace nfsrdma {

void check_failed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: internal error: %s\n", file, line, expression);
  std::abort();
}

}  // namespace nfsrdma
