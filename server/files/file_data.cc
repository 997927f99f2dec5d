// SPDX-License-Identifier: Apache-2.0
#include "server/files/file_data.h"

#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace nfsrdma {

namespace {

/// tmpfs of older kernels refuses RWF_NOWAIT although it never waits for a disk.
bool is_memory(int fd) {
  constexpr decltype(statfs::f_type) kTmpfs = 0x01021994;
  struct statfs fs;
  return ::fstatfs(fd, &fs) == 0 && fs.f_type == kTmpfs;
}

Got read_waiting(int fd, MutableByteSpan room, std::uint64_t offset, std::size_t* size,
                 int* error) {
  std::size_t done = 0;
  while (done < room.size()) {
    const ssize_t n =
        ::pread(fd, room.data() + done, room.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && done == 0) {
      *error = errno;
      return Got::kError;
    }
    if (n < 0) {
      *size = done;
      return Got::kSome;
    }
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  *size = done;
  return Got::kData;
}

Got read_cached(int fd, MutableByteSpan room, std::uint64_t offset, std::size_t* size, int* error) {
  iovec vector{room.data(), room.size()};
  const ssize_t n = ::preadv2(fd, &vector, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  if (n == static_cast<ssize_t>(room.size())) {
    *size = room.size();
    return Got::kData;
  }
  if (n >= 0 || errno == EAGAIN) return Got::kWouldBlock;
  if (errno == EOPNOTSUPP) {
    return is_memory(fd) ? read_waiting(fd, room, offset, size, error) : Got::kWouldBlock;
  }
  *error = errno;
  return Got::kError;
}

/// At most this much in one write. The kernel takes a page cache folio as large as the write, and
/// each small write into it later goes through all of its blocks (ext4 of Linux 6.18: 4 KiB into
/// files written 1 MiB at a time cost twice as much as into files written in these pieces).
constexpr std::size_t kPiece = 256 << 10;

}  // namespace

Got read_data(int fd, bool may_block, MutableByteSpan room, std::uint64_t offset, std::size_t* size,
              int* error) {
  return may_block ? read_waiting(fd, room, offset, size, error)
                   : read_cached(fd, room, offset, size, error);
}

int write_data(int fd, ByteSpan data, std::uint64_t offset, std::size_t* written) {
  constexpr auto kMaxOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (offset > kMaxOffset || data.size() > kMaxOffset - offset) return EFBIG;
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t n = ::pwrite(fd, data.data() + done, std::min(data.size() - done, kPiece),
                               static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && done == 0) return errno;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  *written = done;
  return 0;
}

bool have_buffer(Request& request, std::size_t size) {
  if (request.has_memory(size)) return true;
  if (!request.may_block) {
    request.payload.reset();
    request.payload = request.call->connection().buffers().acquire(size);
    if (request.payload) return true;
  }
  request.buffer_wanted = size;
  return false;
}

}  // namespace nfsrdma
