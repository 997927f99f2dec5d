// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/set_attributes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <limits>

namespace nfsrdma::nfs3 {

namespace {

constexpr std::uint32_t kNanosecondsPerSecond = 1'000'000'000;

int set_size(CallContext& call, Resolved& object, std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return EFBIG;
  int fd = -1;
  if (const int error = call.server().files.data_fd(*object.file, call.caller(), kRightWrite,
                                                    object.attributes, &fd)) {
    return error;
  }
  return ::ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

int set_owner(const Resolved& object, const xdr::sattr3& values) {
  constexpr std::uint32_t kNobody = ~0u;  // would mean "leave it" to the kernel
  if ((values.uid.set_it && values.uid.uid == kNobody) ||
      (values.gid.set_it && values.gid.gid == kNobody)) {
    return EINVAL;
  }
  const uid_t uid = values.uid.set_it ? values.uid.uid : static_cast<uid_t>(-1);
  const gid_t gid = values.gid.set_it ? values.gid.gid : static_cast<gid_t>(-1);
  return ::fchownat(object.file->path_fd(), "", uid, gid, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

int set_mode(const Resolved& object, std::uint32_t mode) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", object.file->path_fd());
  if ((mode & S_ISGID) == 0) return ::chmod(path, mode) == 0 ? 0 : errno;
  WithFsetid raised;  // a root caller may set the bit for any group
  return ::chmod(path, mode) == 0 ? 0 : errno;
}

/// False when the client's time is none.
bool to_timespec(xdr::time_how how, const xdr::nfstime3& time, timespec* out) {
  switch (how) {
    case xdr::time_how::SET_TO_SERVER_TIME:
      *out = {0, UTIME_NOW};
      return true;
    case xdr::time_how::SET_TO_CLIENT_TIME:
      *out = {static_cast<time_t>(time.seconds), static_cast<long>(time.nseconds)};
      return time.nseconds < kNanosecondsPerSecond;
    default:
      *out = {0, UTIME_OMIT};
      return true;
  }
}

int set_times(const Resolved& object, const xdr::sattr3& values) {
  timespec times[2];
  if (!to_timespec(values.atime.set_it, values.atime.atime, &times[0]) ||
      !to_timespec(values.mtime.set_it, values.mtime.mtime, &times[1])) {
    return EINVAL;
  }
  return ::utimensat(object.file->path_fd(), "", times, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

bool sets_times(const xdr::sattr3& values) {
  return values.atime.set_it != xdr::time_how::DONT_CHANGE ||
         values.mtime.set_it != xdr::time_how::DONT_CHANGE;
}
bool sets_owner(const xdr::sattr3& values) {
  return values.uid.set_it || values.gid.set_it;
}

/// A change of owner takes the set-id bits away, also from a mode that comes with it.
std::uint32_t mode_after_chown(std::uint32_t mode, bool is_directory) {
  if (is_directory) return mode;
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<std::uint32_t>(S_ISGID);
  return mode;
}

}  // namespace

int set_attributes(CallContext& call, Resolved& object, const xdr::sattr3& values) {
  const bool is_link = S_ISLNK(object.attributes.st_mode);
  if (values.size.set_it) {
    if (const int error = set_size(call, object, values.size.size)) return error;
  }
  if (sets_owner(values)) {
    if (const int error = set_owner(object, values)) return error;
  }
  if (values.mode.set_it && !is_link) {  // the mode of a symbolic link means nothing
    std::uint32_t mode = values.mode.mode & 07777;
    if (sets_owner(values)) mode = mode_after_chown(mode, object.file->is_directory());
    if (const int error = set_mode(object, mode)) return error;
  }
  return sets_times(values) ? set_times(object, values) : 0;
}

int set_initial_attributes(CallContext& call, Resolved& object, const xdr::sattr3& values,
                           std::uint32_t mode) {
  constexpr std::uint32_t kSpecial = S_ISUID | S_ISGID | S_ISVTX;
  if (values.size.set_it && values.size.size != 0 && object.file->is_regular()) {
    if (const int error = set_size(call, object, values.size.size)) return error;
  }
  // Only root gives new objects away; anybody else's wish is passed over, as in Linux's server.
  const bool moves = call.caller().is_root() && sets_owner(values);
  if (moves) {
    if (const int error = set_owner(object, values)) return error;
  }
  const std::uint32_t missing = mode & kSpecial & ~object.attributes.st_mode;
  if ((missing != 0 || (moves && (mode & kSpecial) != 0)) && !S_ISLNK(object.attributes.st_mode)) {
    const std::uint32_t now = object.attributes.st_mode & 07777;
    if (const int error = set_mode(object, now | (mode & kSpecial))) return error;
  }
  return sets_times(values) ? set_times(object, values) : 0;
}

}  // namespace nfsrdma::nfs3
