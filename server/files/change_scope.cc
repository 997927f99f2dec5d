// SPDX-License-Identifier: Apache-2.0
#include "server/files/change_scope.h"

#include <cerrno>

namespace nfsrdma {

bool may_have_changed(int error) {
  switch (error) {
    case EACCES:
    case EAGAIN:
    case EBUSY:
    case EDQUOT:
    case EEXIST:
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case EMLINK:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOSPC:
    case ENOTDIR:
    case ENOTEMPTY:
    case EPERM:
    case EROFS:
    case EXDEV:
      return false;
    default:
      return true;
  }
}

ChangeScope::ChangeScope(ServerContext& server, Resolved& object)
    : watch_(server.changes, object.file->device(), object.file->inode()),
      change_(server.change_counter, object.file->device(), object.file->inode()),
      object_(object) {
  if (object.seen && watch_.nothing_between(*object.seen)) {
    before_ = object.attributes;
    looked_ = true;
  } else {
    looked_ = ::fstat(object.file->path_fd(), &before_) == 0;
  }
  if (looked_) change_before_ = change_.before(before_);
}

bool ChangeScope::finish(bool changed) {
  const bool again = ::fstat(object_.file->path_fd(), &object_.attributes) == 0;
  if (!changed && looked_) {
    change_after_ = change_.give_up();
  } else if (again) {
    change_after_ = change_.finish(object_.attributes);
  }
  alone_ = watch_.undisturbed() && looked_;
  return again;
}

}  // namespace nfsrdma
