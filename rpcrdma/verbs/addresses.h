// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma::verbs {

/// What librdmacm calls an address; empty when it is neither IPv4 nor IPv6.
inline SocketAddress address_of(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) return {address, sizeof(sockaddr_in)};
  if (address->sa_family == AF_INET6) return {address, sizeof(sockaddr_in6)};
  return {};
}

}  // namespace nfsrdma::verbs
