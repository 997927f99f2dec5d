// SPDX-License-Identifier: Apache-2.0
// Socket options that every iWARP connection has.
#pragma once

#include <cstdint>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/result.h"

namespace nfsrdma::iwarp {

/// No Nagle delay, keepalive 30/10/3 s, give up on unacknowledged data after 60 s.
void set_connection_options(int fd);

/// What one TCP segment carries now, a sane value when the kernel does not tell.
std::uint32_t segment_size(int fd);

/// One whole MPA frame in one segment. False when the socket did not take all of it.
bool send_frame(int fd, ByteSpan frame);

/// Is there an error pending (after a non-blocking connect)? 0 when not.
int pending_error(int fd);

}  // namespace nfsrdma::iwarp
