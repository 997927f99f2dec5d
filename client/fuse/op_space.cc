// SPDX-License-Identifier: Apache-2.0
// FUSE operations on holes and space, and copies that need not come here. ENOSYS, which is what a
// server before NFSv4.2 makes of them, tells the kernel never to ask again: lseek() then takes all
// of a file for data, fallocate() fails with EOPNOTSUPP, and copies are made by reading and
// writing.
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <cerrno>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {

Task<void> FuseOperations::lseek(fuse_req_t raw, OpenFile* file, std::uint64_t offset, int whence) {
  Request request(*this, raw);
  NodeRef node = file->node;
  if (whence != SEEK_DATA && whence != SEEK_HOLE) co_return request.error(EINVAL);
  const SeekFor what = whence == SEEK_DATA ? SeekFor::kData : SeekFor::kHole;
  std::uint64_t found = 0;
  const int error = co_await fs.seek(request.as(file->caller), node, offset, what, &found);
  // Not on this file system: there is no error for that in lseek(2).
  if (error == EOPNOTSUPP) co_return request.error(ENOSYS);
  if (error != 0) co_return request.error(error);
  request.sought(found);
}

Task<void> FuseOperations::fallocate(fuse_req_t raw, OpenFile* file, int mode, std::uint64_t offset,
                                     std::uint64_t length) {
  Request request(*this, raw);
  NodeRef node = file->node;
  FileSystem::Space space = FileSystem::Space::kTaken;
  if (mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) {
    space = FileSystem::Space::kFreed;
  } else if (mode != 0) {
    co_return request.error(EOPNOTSUPP);  // no operation of NFS does that
  }
  request.error(co_await fs.change_space(request.as(file->caller), node, space, offset, length));
}

Task<void> FuseOperations::copy_file_range(fuse_req_t raw, OpenFile* from,
                                           std::uint64_t from_offset, OpenFile* to,
                                           std::uint64_t to_offset, std::size_t size) {
  Request request(*this, raw);
  NodeRef source = from->node;
  NodeRef target = to->node;
  // COPY reads and writes as one and the same.
  if (*from->caller != *to->caller) co_return request.error(EOPNOTSUPP);
  std::uint64_t count = size;
  const int error =
      co_await fs.copy(request.as(to->caller), source, from_offset, target, to_offset, &count);
  if (error != 0) co_return request.error(error);
  request.written(count);
}

}  // namespace nfsrdma
