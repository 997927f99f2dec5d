// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/record_locks.h"

#include <fcntl.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace nfsrdma {

namespace {

struct flock to_flock(const RecordLock& lock) {
  struct flock out {};
  out.l_type = static_cast<short>(lock.kind == RecordLock::Kind::kNone   ? F_UNLCK
                                  : lock.kind == RecordLock::Kind::kRead ? F_RDLCK
                                                                         : F_WRLCK);
  out.l_whence = SEEK_SET;
  out.l_start = static_cast<off_t>(lock.first);
  out.l_len = lock.last >= kLastByte ? 0 : static_cast<off_t>(lock.last - lock.first + 1);
  return out;
}

}  // namespace

int set_record_lock(int fd, const RecordLock& lock) {
  struct flock wanted = to_flock(lock);
  while (::fcntl(fd, F_OFD_SETLK, &wanted) != 0) {
    if (errno == EACCES) return EAGAIN;
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool find_record_lock(int fd, const RecordLock& wanted, RecordLock* found, pid_t* pid) {
  struct flock lock = to_flock(wanted);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return false;
  found->kind = lock.l_type == F_WRLCK ? RecordLock::Kind::kWrite : RecordLock::Kind::kRead;
  found->first = static_cast<std::uint64_t>(lock.l_start);
  found->last =
      lock.l_len == 0 ? kLastByte : found->first + static_cast<std::uint64_t>(lock.l_len) - 1;
  *pid = std::max<pid_t>(lock.l_pid, 0);
  return true;
}

bool on_remote_file_system(int fd) {
  constexpr std::array<std::uint32_t, 11> kRemote{
      0x65735546,  // FUSE
      0x00006969,  // NFS
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB2
      0x01021997,  // 9P
      0x00c36400,  // Ceph
      0x5346414f,  // AFS
      0x01161970,  // GFS2
      0x7461636f,  // OCFS2
      0x0bd00bd0,  // Lustre
      0x19830326,  // BeeGFS
  };
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return true;
  return std::find(kRemote.begin(), kRemote.end(), static_cast<std::uint32_t>(fs.f_type)) !=
         kRemote.end();
}

}  // namespace nfsrdma
