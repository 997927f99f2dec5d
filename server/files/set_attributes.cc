// SPDX-License-Identifier: Apache-2.0
#include "server/files/set_attributes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "server/credentials.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

namespace {

int set_size(FileCall& call, Resolved& object, std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return EFBIG;
  int fd = -1;
  if (const int error = call.server().files.data_fd(*object.file, call.caller(), kRightWrite,
                                                    object.attributes, &fd)) {
    return error;
  }
  return ::ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

int set_owner(const Resolved& object, const NewAttributes& values) {
  constexpr std::uint32_t kNobody = ~0u;  // would mean "leave it" to the kernel
  if (values.uid == kNobody || values.gid == kNobody) return EINVAL;
  WithFsetid raised;  // a root caller's chown leaves a set-group-id bit that makes nobody anything
  return ::fchownat(object.file->path_fd(), "", values.uid.value_or(kNobody),
                    values.gid.value_or(kNobody), AT_EMPTY_PATH) == 0
             ? 0
             : errno;
}

/// `fd` may be one of O_PATH, which fchmod() refuses; the way through /proc costs three times more.
int change_mode(int fd, std::uint32_t mode) {
  if (::fchmod(fd, mode) == 0) return 0;
  if (errno != EBADF) return errno;
  return ::chmod(ProcPath(fd).c_str(), mode) == 0 ? 0 : errno;
}

int set_mode(const Resolved& object, std::uint32_t mode) {
  if ((mode & S_ISGID) == 0) return change_mode(object.file->path_fd(), mode);
  WithFsetid raised;  // a root caller may set the bit for any group
  return change_mode(object.file->path_fd(), mode);
}

int set_times_of(const Resolved& object, const timespec (&times)[2]) {
  return ::utimensat(object.file->path_fd(), "", times, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

/// Whoever may write may set times to now, one of them alone as well: clients say so of mtime with
/// every truncation by open(2). The kernel lets others than the owner set both or none.
int set_times(FileCall& call, Resolved& object, const NewAttributes& values) {
  const timespec times[2] = {values.atime.value, values.mtime.value};
  const int error = set_times_of(object, times);
  const auto explicitly = [](const NewTime& time) {
    return time.is_set() && time.value.tv_nsec != UTIME_NOW;
  };
  if (error != EPERM || explicitly(values.atime) || explicitly(values.mtime)) return error;
  if (call.server().files.rights(*object.file, call.caller(), object.attributes, kRightWrite) == 0)
    return EACCES;
  {
    AsServer raised;
    if (set_times_of(object, times) == 0) return 0;
  }
  // Without root the owner is somebody else to the server, too: the other time comes along.
  constexpr timespec kNow{0, UTIME_NOW};
  return set_times_of(object, {kNow, kNow});
}

int set_acls(const Resolved& object, const NewAcls& acls) {
  const mode_t mode = object.attributes.st_mode;
  const std::optional<PosixAcls>& wanted = acls.of(mode);
  if (!wanted) return kNoSuchAttribute;
  WithFsetid raised;  // a root caller's ACL leaves the set-group-id bit as it is
  return write_posix_acls(object.file->path_fd(), mode, *wanted);
}

/// A change of owner takes the set-id bits away, also from a mode that comes with it.
std::uint32_t mode_after_chown(std::uint32_t mode, bool is_directory) {
  if (is_directory) return mode;
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<std::uint32_t>(S_ISGID);
  return mode;
}

}  // namespace

int check_acls(const NewAttributes& values, int path_fd, mode_t mode) {
  if (!values.acls) return 0;
  const bool can = !S_ISLNK(mode) && values.acls->of(mode) && has_posix_acls(path_fd, mode);
  return can ? 0 : kNoSuchAttribute;
}

namespace {

int change_attributes(FileCall& call, Resolved& object, const NewAttributes& values,
                      NewAttributes& done) {
  const bool is_link = S_ISLNK(object.attributes.st_mode);
  if (values.size) {
    if (const int error = set_size(call, object, *values.size)) return error;
    done.size = values.size;
  }
  if (values.sets_owner()) {
    if (const int error = set_owner(object, values)) return error;
    done.uid = values.uid;
    done.gid = values.gid;
  }
  if (values.mode && !is_link) {  // the mode of a symbolic link means nothing
    std::uint32_t mode = *values.mode & 07777;
    if (values.sets_owner()) mode = mode_after_chown(mode, object.file->is_directory());
    if (const int error = set_mode(object, mode)) return error;
  }
  done.mode = values.mode;
  if (values.acls) {
    if (const int error = set_acls(object, *values.acls)) return error;
    done.acls = values.acls;
  }
  return values.sets_times() ? set_times(call, object, values) : 0;
}

}  // namespace

int set_attributes(FileCall& call, Resolved& object, const NewAttributes& values,
                   NewAttributes* done) {
  const mode_t kind = object.attributes.st_mode;
  if (const int error = check_acls(values, object.file->path_fd(), kind)) return error;
  if (const int error = call.may_change(*object.file)) return error;
  object.covered_by_directory = false;
  NewAttributes nobody_asks;
  const int error = change_attributes(call, object, values, done != nullptr ? *done : nobody_asks);
  // Who was promised meanwhile that nothing changes may have seen what was before, and is asked to
  // give that up; who comes later sees the change.
  (void)call.may_change(*object.file);
  return error;
}

int set_initial_attributes(FileCall& call, Resolved& object, const NewAttributes& values,
                           std::uint32_t mode) {
  constexpr std::uint32_t kSpecial = S_ISUID | S_ISGID | S_ISVTX;
  // What its directory's sync does not take along is another change.
  bool& unchanged = object.covered_by_directory;
  unchanged = true;
  if (values.size.value_or(0) != 0 && object.file->is_regular()) {
    if (const int error = set_size(call, object, *values.size)) return error;
    unchanged = false;
  }
  // Only root gives new objects away; anybody else's wish is passed over, as in Linux's server.
  const bool moves = call.caller().is_root() && values.sets_owner();
  if (moves) {
    if (const int error = set_owner(object, values)) return error;
    unchanged = false;
  }
  const std::uint32_t missing = mode & kSpecial & ~object.attributes.st_mode;
  if ((missing != 0 || (moves && (mode & kSpecial) != 0)) && !S_ISLNK(object.attributes.st_mode)) {
    const std::uint32_t now = object.attributes.st_mode & 07777;
    if (const int error = set_mode(object, now | (mode & kSpecial))) return error;
    unchanged = false;
  }
  if (values.acls) {
    if (const int error = set_acls(object, *values.acls)) return error;
    unchanged = false;
  }
  if (values.sets_times()) {
    if (const int error = set_times(call, object, values)) return error;
    unchanged = false;
  }
  if (unchanged) return 0;
  return ::fstat(object.file->path_fd(), &object.attributes) == 0 ? 0 : errno;
}

namespace {

/// Can that be what the caller has just made with `mode`?
bool may_be_new(const FileCall& call, const struct stat& st, std::uint32_t mode) {
  // Of others the kernel itself keeps what is not theirs.
  if (call.caller().uid != 0) return true;
  const nlink_t most = S_ISDIR(mode) ? 2 : 1;
  return (st.st_mode & S_IFMT) == (mode & S_IFMT) && st.st_nlink <= most &&
         (!can_switch_identity() || st.st_uid == call.caller().uid);
}

}  // namespace

int finish_object(FileCall& call, Resolved& directory, std::string_view name,
                  const NewAttributes& values, std::uint32_t mode, Resolved* object) {
  const int error =
      call.server().resolver.lookup(call.exported(), call.access(), *directory.file, name, object);
  if (error != 0) return error;
  // Somebody may have put something else there meanwhile, of which a root caller would give away
  // what is not his. Then ours was made, and replaced, and what is there stays as it is.
  if (!may_be_new(call, object->attributes, mode)) return 0;
  return set_initial_attributes(call, *object, values, mode);
}

}  // namespace nfsrdma
