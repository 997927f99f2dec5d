// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/connection_info.h"

#include <atomic>

namespace nfsrdma {

const char* transport_name(TransportKind kind) {
  switch (kind) {
    case TransportKind::kVerbs:
      return "verbs";
    case TransportKind::kIwarp:
      return "iwarp";
    case TransportKind::kTcp:
      return "tcp";
    case TransportKind::kSimulated:
      return "sim";
  }
  return "?";
}

std::uint64_t next_connection_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace nfsrdma
