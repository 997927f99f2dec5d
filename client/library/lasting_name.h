// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rpcrdma/connection_info.h"

namespace nfsrdma::client {

/// The name of a transport in memory that lasts as long as the program; null: it is none.
inline const char* lasting_name(std::string_view fabric) {
  for (const TransportKind kind : {TransportKind::kTcp, TransportKind::kIwarp,
                                   TransportKind::kVerbs, TransportKind::kSimulated}) {
    if (fabric == transport_name(kind)) return transport_name(kind);
  }
  return nullptr;
}

}  // namespace nfsrdma::client
