// SPDX-License-Identifier: Apache-2.0
// An address with a port, as keys of rdma.conf have it.
#pragma once

#include <string_view>

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

/// "127.0.0.1:9465" or "[::1]:9465": numeric, with a port. False: it is not.
bool parse_endpoint(std::string_view text, SocketAddress* address);

}  // namespace nfsrdma
