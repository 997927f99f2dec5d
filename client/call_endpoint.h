// SPDX-License-Identifier: Apache-2.0
// The CallEndpoint of the real environment: a listener of its own, and what it accepts. It is there
// for callbacks of NFSv4.0, whose servers connect to their clients (RFC 7530, 10.2.1).
#pragma once

#include "client/client_environment.h"

namespace nfsrdma {

/// `loop` outlives it. kSystem: the address is not ours, or its port is taken.
Result<std::unique_ptr<CallEndpoint>> make_tcp_call_endpoint(EventLoop& loop,
                                                             const SocketAddress& address,
                                                             CallAnswer answer);

}  // namespace nfsrdma
