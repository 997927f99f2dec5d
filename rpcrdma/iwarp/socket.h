// SPDX-License-Identifier: Apache-2.0
// Socket options that every iWARP connection has.
#pragma once

#include <cstddef>
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

/// Will a small message that is sent now, behind `ahead` bytes that are still to be sent, travel in
/// one segment? Not when the peer's window or our buffer may end inside it. The window is known
/// since Linux 5.4; before, the answer is yes.
bool sent_in_one_piece(int fd, std::size_t ahead);

/// Is there an error pending (after a non-blocking connect)? 0 when not.
int pending_error(int fd);

}  // namespace nfsrdma::iwarp
