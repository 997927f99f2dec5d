// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/socket.h"

#include <linux/sockios.h>
#include <linux/tcp.h>  // not <netinet/tcp.h>, whose tcp_info ends before the window
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace nfsrdma::iwarp {
namespace {

void set_int(int fd, int level, int name, int value) {
  // A socket without the option still works.
  [[maybe_unused]] int ignored = ::setsockopt(fd, level, name, &value, sizeof value);
}

/// What the window should still take behind what is under way, if anything is; nothing under way
/// needs no more than the message itself.
constexpr std::size_t kWindowMargin = 4096;
constexpr std::size_t kSmallMessage = 64;

}  // namespace

void set_connection_options(int fd) {
  set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

std::uint32_t segment_size(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  std::uint32_t mss = 536;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) mss = info.tcpi_snd_mss;
  return std::clamp<std::uint32_t>(mss, 256, 65535);
}

bool send_frame(int fd, ByteSpan frame) {
  iovec piece{const_cast<std::byte*>(frame.data()), frame.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const ssize_t n = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR);
  return n == static_cast<ssize_t>(frame.size());
}

bool sent_in_one_piece(int fd, std::size_t ahead) {
  // Writable for poll() means that a third of the buffer is free.
  pollfd writable{fd, POLLOUT, 0};
  if (ahead >= kWindowMargin || ::poll(&writable, 1, 0) != 1) return false;
  tcp_info info{};
  socklen_t length = sizeof info;
  constexpr std::size_t kNeeded = offsetof(tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd;
  int unacknowledged = 0;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < kNeeded ||
      ::ioctl(fd, SIOCOUTQ, &unacknowledged) != 0) {
    return true;
  }
  const std::size_t before = static_cast<std::size_t>(unacknowledged) + ahead;
  return info.tcpi_snd_wnd >= before + (before == 0 ? kSmallMessage : kWindowMargin);
}

int pending_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace nfsrdma::iwarp
