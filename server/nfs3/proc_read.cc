// SPDX-License-Identifier: Apache-2.0
// READ. The data goes from the page cache into the reply's own buffer, and from there to the wire
// without another copy. On the shard's thread only what the page cache has is read (RWF_NOWAIT);
// anything else runs again on a worker.
//
// The attributes are taken *before* the data. Were they newer than the data, a client would think
// that what it got is current.
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

enum class Got : std::uint8_t { kData, kWouldBlock, kError };

/// tmpfs of older kernels refuses RWF_NOWAIT although it never waits for a disk.
bool is_memory(int fd) {
  constexpr decltype(statfs::f_type) kTmpfs = 0x01021994;
  struct statfs fs;
  return ::fstatfs(fd, &fs) == 0 && fs.f_type == kTmpfs;
}

/// Up to the end of `room` or of the file. *error and *size as the outcome says.
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
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  *size = done;
  return Got::kData;
}

/// Only what is in the page cache. A file that ends before `room` does has shrunk meanwhile; a
/// worker finds out.
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

/// Makes request.payload at least `size` long; false: ask for kNeedBuffer.
bool have_buffer(Request& request, std::size_t size) {
  if (request.payload && request.payload.size() >= size) return true;
  if (!request.may_block) {
    request.payload.reset();
    request.payload = request.call->connection().buffers().acquire(size);
    if (request.payload) return true;
  }
  request.buffer_wanted = size;
  return false;
}

Outcome fail(xdr::READ3res& res, int error, xdr::Encoder& result) {
  res.status = status_of_errno(error);
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace

Outcome read(ServerContext& server, Request& request, xdr::Decoder& decoder, xdr::Encoder& result) {
  xdr::READ3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::READ3res res;
  Resolved file;
  res.status = call.resolve(args.file, Use::kLook, &file);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resfail.file_attributes = post_op(file);
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  int fd = -1;
  if (const int error =
          server.files.data_fd(*file.file, call.caller(), kRightRead, file.attributes, &fd)) {
    return fail(res, error, result);
  }
  const auto file_size = static_cast<std::uint64_t>(file.attributes.st_size);
  const std::uint64_t left = args.offset < file_size ? file_size - args.offset : 0;
  const std::size_t want = std::min<std::uint64_t>({args.count, server.rtmax(), left});
  std::size_t size = 0;
  if (want != 0) {
    if (!have_buffer(request, want)) return Outcome::kNeedBuffer;
    const MutableByteSpan room = request.payload.bytes().first(want);
    int error = 0;
    const Got got = request.may_block ? read_waiting(fd, room, args.offset, &size, &error)
                                      : read_cached(fd, room, args.offset, &size, &error);
    if (got == Got::kWouldBlock) return Outcome::kWouldBlock;
    if (got == Got::kError) return fail(res, error, result);
  }
  res.resok.file_attributes = res.resfail.file_attributes;
  res.resok.count = static_cast<std::uint32_t>(size);
  res.resok.eof = size < want || size == left;
  res.resok.data.bytes = size == 0 ? ByteSpan() : ByteSpan(request.payload.bytes().first(size));
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
