// SPDX-License-Identifier: Apache-2.0
#include "client/nfs_types.h"

#include <sys/sysmacros.h>

#include <cerrno>

namespace nfsrdma {

mode_t type_bits(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return S_IFREG;
    case FileType::kDirectory:
      return S_IFDIR;
    case FileType::kBlock:
      return S_IFBLK;
    case FileType::kCharacter:
      return S_IFCHR;
    case FileType::kSymlink:
      return S_IFLNK;
    case FileType::kSocket:
      return S_IFSOCK;
    case FileType::kFifo:
      return S_IFIFO;
  }
  return S_IFREG;
}

struct stat to_stat(const Attributes& attributes) {
  struct stat st {};
  st.st_dev = attributes.fsid;
  st.st_ino = attributes.fileid;
  st.st_mode = type_bits(attributes.type) | (attributes.mode & 07777);
  st.st_nlink = attributes.nlink;
  st.st_uid = attributes.uid;
  st.st_gid = attributes.gid;
  st.st_rdev = makedev(attributes.rdev_major, attributes.rdev_minor);
  st.st_size = static_cast<off_t>(attributes.size);
  st.st_blksize = 4096;
  st.st_blocks = static_cast<blkcnt_t>((attributes.used + 511) / 512);
  st.st_atim = attributes.atime;
  st.st_mtim = attributes.mtime;
  st.st_ctim = attributes.ctime;
  return st;
}

int errno_of(const Error& error) {
  if (error.sys != 0) return error.sys;
  switch (error.code) {
    case Errc::kTimedOut:
      return ETIMEDOUT;
    case Errc::kClosed:
      return ECONNRESET;
    case Errc::kRefused:
      return ECONNREFUSED;
    case Errc::kExhausted:
      return ENOBUFS;
    case Errc::kInvalid:
      return EINVAL;
    case Errc::kUnsupported:
      return EOPNOTSUPP;
    case Errc::kNotFound:
      return ENOENT;
    default:
      return EIO;
  }
}

std::vector<LockOwnerId> owners_in_the_way(const ByteRangeLocks& held, const FileLock& wanted) {
  std::vector<LockOwnerId> owners;
  for (const ByteRangeLocks::Held& one : held.held()) {
    const bool excludes = one.kind == LockKind::kWrite || wanted.kind == LockKind::kWrite;
    if (!excludes || one.owner == wanted.owner || !one.range.overlaps(wanted.range)) continue;
    if (owners.empty() || owners.back() != one.owner) owners.push_back(one.owner);
  }
  return owners;
}

}  // namespace nfsrdma
