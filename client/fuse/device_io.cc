// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/device_io.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace nfsrdma {
namespace {

// The first answer of a session is that to INIT.
std::atomic<bool> g_init_answered{false};

ssize_t answer_init(int fd, const iovec* pieces, int count) {
  if (count != 2 || pieces[0].iov_len != sizeof(fuse_out_header) ||
      pieces[1].iov_len < offsetof(fuse_init_out, flags) + sizeof(fuse_init_out::flags) ||
      pieces[1].iov_len > sizeof(fuse_init_out)) {
    return ::writev(fd, pieces, count);  // INIT failed
  }
  fuse_init_out init{};
  std::memcpy(&init, pieces[1].iov_base, pieces[1].iov_len);
  // The second version is the same duty; with it the kernel remembers of a file that it has no
  // security.capability, for which it asks before a write.
  init.flags |= FUSE_HANDLE_KILLPRIV | FUSE_HANDLE_KILLPRIV_V2;
  const iovec changed[] = {pieces[0], {&init, pieces[1].iov_len}};
  return ::writev(fd, changed, 2);
}

ssize_t answer(int fd, iovec* pieces, int count, void*) {
  if (!g_init_answered.load(std::memory_order_relaxed) && !g_init_answered.exchange(true)) {
    return answer_init(fd, pieces, count);
  }
  return ::writev(fd, pieces, count);
}

ssize_t receive(int fd, void* buffer, std::size_t size, void*) {
  return ::read(fd, buffer, size);
}

}  // namespace

Result<void> take_over_device_io(fuse_session* session) {
  g_init_answered = false;
  fuse_custom_io io{};
  io.writev = answer;
  io.read = receive;
  const int error = ::fuse_session_custom_io(session, &io, ::fuse_session_fd(session));
  if (error != 0) return Error{Errc::kSystem, -error, "fuse_session_custom_io"};
  return {};
}

}  // namespace nfsrdma
