// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/attributes.h"

#include <sys/sysmacros.h>

namespace nfsrdma::nfs3 {

namespace {

xdr::ftype3 type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return xdr::ftype3::NF3DIR;
    case S_IFBLK:
      return xdr::ftype3::NF3BLK;
    case S_IFCHR:
      return xdr::ftype3::NF3CHR;
    case S_IFLNK:
      return xdr::ftype3::NF3LNK;
    case S_IFSOCK:
      return xdr::ftype3::NF3SOCK;
    case S_IFIFO:
      return xdr::ftype3::NF3FIFO;
    default:
      return xdr::ftype3::NF3REG;
  }
}

/// Seconds are unsigned 32 bits on the wire; what lies before 1970 wraps, as in Linux's server.
xdr::nfstime3 time_of(const timespec& t) {
  return {static_cast<std::uint32_t>(t.tv_sec), static_cast<std::uint32_t>(t.tv_nsec)};
}

/// False when the client's time is none.
bool new_time(xdr::time_how how, const xdr::nfstime3& time, NewTime* to) {
  constexpr std::uint32_t kNanosecondsPerSecond = 1'000'000'000;
  if (how == xdr::time_how::SET_TO_SERVER_TIME) to->value = {0, UTIME_NOW};
  if (how != xdr::time_how::SET_TO_CLIENT_TIME) return true;
  to->value = {static_cast<time_t>(time.seconds), static_cast<long>(time.nseconds)};
  return time.nseconds < kNanosecondsPerSecond;
}

}  // namespace

bool new_attributes(const xdr::sattr3& from, NewAttributes* to) {
  *to = {};
  if (from.mode.set_it) to->mode = from.mode.mode;
  if (from.uid.set_it) to->uid = from.uid.uid;
  if (from.gid.set_it) to->gid = from.gid.gid;
  if (from.size.set_it) to->size = from.size.size;
  return new_time(from.atime.set_it, from.atime.atime, &to->atime) &&
         new_time(from.mtime.set_it, from.mtime.mtime, &to->mtime);
}

xdr::fattr3 fattr3_of(const struct stat& st, std::uint64_t fsid) {
  constexpr std::uint64_t kBlock = 512;
  xdr::fattr3 out;
  out.type = type_of(st.st_mode);
  out.mode = st.st_mode & 07777;
  out.nlink = static_cast<std::uint32_t>(st.st_nlink);
  out.uid = st.st_uid;
  out.gid = st.st_gid;
  out.size = static_cast<std::uint64_t>(st.st_size);
  out.used = static_cast<std::uint64_t>(st.st_blocks) * kBlock;
  out.rdev = {major(st.st_rdev), minor(st.st_rdev)};
  out.fsid = fsid;
  out.fileid = st.st_ino;
  out.atime = time_of(st.st_atim);
  out.mtime = time_of(st.st_mtim);
  out.ctime = time_of(st.st_ctim);
  return out;
}

xdr::wcc_data WccScope::finish() {
  xdr::wcc_data wcc;
  if (scope_.finish()) wcc.after = post_op(object_);
  if (scope_.alone()) {
    const struct stat& before = scope_.before();
    wcc.before.attributes_follow = true;
    wcc.before.attributes = {static_cast<std::uint64_t>(before.st_size), time_of(before.st_mtim),
                             time_of(before.st_ctim)};
  }
  return wcc;
}

}  // namespace nfsrdma::nfs3
