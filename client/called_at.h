// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

/// Where the server of NFSv4.0 may call its client (RFC 7530, 10.2.1). From 4.1 on it does so over
/// the client's own connections.
struct CalledAt {
  /// Told to the server; its port does not matter. Without a family: where the mount's connection
  /// begins.
  SocketAddress address{};
  std::uint16_t port = 0;  // that is listened at; 0: any
};

}  // namespace nfsrdma
