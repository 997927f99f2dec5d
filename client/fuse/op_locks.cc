// SPDX-License-Identifier: Apache-2.0
// FUSE operations on locks: fcntl(2) and flock(2). The kernel keeps no record of them, and tells of
// the end of a process's locks by FLUSH alone, of an open file's by RELEASE.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

ByteRange range_of(const struct flock& asked) {
  const auto first = static_cast<std::uint64_t>(asked.l_start);
  if (asked.l_len <= 0) return {first, UINT64_MAX};
  return {first, first + static_cast<std::uint64_t>(asked.l_len) - 1};
}

FileLock lock_of(LockOwnerId owner, const struct flock& asked) {
  return {owner, asked.l_type == F_WRLCK ? LockKind::kWrite : LockKind::kRead, range_of(asked)};
}

void note_locker(OpenFile& file, LockOwnerId owner) {
  if (std::find(file.lockers.begin(), file.lockers.end(), owner) == file.lockers.end()) {
    file.lockers.push_back(owner);
  }
}

}  // namespace

Task<void> FuseOperations::getlk(fuse_req_t raw, OpenFile* file, LockOwnerId owner,
                                 struct flock asked) {
  Request request(*this, raw);
  NodeRef node = file->node;
  const RequestContext context = request.as(file->caller);
  std::optional<FileLock> found;
  pid_t pid = 0;
  const FileLock wanted = lock_of(owner, asked);
  const int error = co_await fs.test_lock(context, node, wanted, &found, &pid);
  if (error != 0) co_return request.error(error);
  asked.l_type = F_UNLCK;
  if (found) {
    asked.l_type = found->kind == LockKind::kWrite ? F_WRLCK : F_RDLCK;
    asked.l_whence = SEEK_SET;
    asked.l_start = static_cast<off_t>(found->range.first);
    // An end that no file has means: to the end of the file.
    const bool open_end = found->range.last >= static_cast<std::uint64_t>(INT64_MAX);
    asked.l_len = open_end ? 0 : static_cast<off_t>(found->range.last - found->range.first + 1);
    asked.l_pid = pid;
  }
  request.lock(asked);
}

Task<void> FuseOperations::setlk(fuse_req_t raw, OpenFile* file, LockOwnerId owner,
                                 struct flock asked, LockWait wait) {
  Request request(*this, raw);
  NodeRef node = file->node;
  const RequestContext context = request.as(file->caller);
  const FileLock wanted = lock_of(owner, asked);
  int error = 0;
  if (asked.l_type == F_UNLCK) {
    error = co_await fs.unlock(context, node, wanted);
  } else {
    note_locker(*file, owner);
    const int flags = file->flags;
    request.interrupt().by_any_signal = wait == LockWait::kYes;
    const pid_t pid = asked.l_pid;
    if (wait == LockWait::kYes) {
      error = co_await fs.lock_in_the_end(context, node, wanted, flags, pid);
    } else {
      error = co_await fs.lock(context, node, wanted, wait, flags, pid);
    }
  }
  request.error(error);
}

Task<void> FuseOperations::flock(fuse_req_t raw, OpenFile* file, LockOwnerId owner, int operation) {
  Request request(*this, raw);
  NodeRef node = file->node;
  const RequestContext context = request.as(file->caller);
  const int what = operation & ~LOCK_NB;
  const FileLock wanted{owner, what == LOCK_EX ? LockKind::kWrite : LockKind::kRead, kAllBytes};
  if (what == LOCK_UN) {
    const int error = co_await fs.unlock(context, node, wanted);
    co_return request.error(error);
  }
  const pid_t pid = request.interrupt().pid;
  const int flags = file->flags;
  const bool had_one =
      std::find(file->lockers.begin(), file->lockers.end(), owner) != file->lockers.end();
  note_locker(*file, owner);
  const bool may_wait = (operation & LOCK_NB) == 0;
  request.interrupt().by_any_signal = may_wait;
  int error = co_await fs.lock(context, node, wanted, LockWait::kNo, flags, pid);
  if (error == EAGAIN && may_wait) {
    // What is held goes before another kind is waited for (flock(2)): else two that read, and both
    // want to write, would wait for each other.
    if (had_one) error = co_await fs.unlock(context, node, wanted);
    if (error == 0 || error == EAGAIN) {
      error = co_await fs.lock(context, node, wanted, LockWait::kYes, flags, pid);
    }
  }
  request.error(error);
}

}  // namespace nfsrdma
