// SPDX-License-Identifier: Apache-2.0
// What a peer still sends on a socket that is not read any more is thrown away: closed with bytes
// unread, the kernel would reset the connection, and with it what is still to be sent.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>

namespace nfsrdma {

/// Some of what has come, without waiting. False: the peer has closed, or the connection is broken.
inline bool discard_received(int fd) {
  constexpr int kMost = 16;  // others wait meanwhile
  for (int i = 0; i < kMost; ++i) {
    // MSG_TRUNC throws the bytes away in the kernel.
    const ssize_t n = ::recv(fd, nullptr, std::size_t{1} << 20, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
  }
  return true;
}

}  // namespace nfsrdma
