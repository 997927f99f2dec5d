// SPDX-License-Identifier: Apache-2.0
// Record locks that belong to a descriptor's open file description (fcntl(2), F_OFD_SETLK): other
// processes see them, and POSIX locks, as each other's. They go with the last descriptor of that
// description.
//
// Threads: any. Where the file system asks somebody else (NFS, FUSE) they block.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace nfsrdma {

/// Where files end for the kernel; a lock that reaches it goes to the end of the file.
inline constexpr std::uint64_t kLastByte = INT64_MAX;

struct RecordLock {
  enum class Kind : std::uint8_t { kNone, kRead, kWrite };
  Kind kind = Kind::kNone;
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive, at most kLastByte
};

/// What the description has in that range becomes `lock`; kNone lets go of it. Never waits for
/// others: 0, EAGAIN when they stand against it, or another errno. kRead needs a descriptor open
/// for reading, kWrite one open for writing.
int set_record_lock(int fd, const RecordLock& lock);

/// A lock of somebody else that stands against `wanted`: true, and *found with its range. `*pid`:
/// whose it is, or 0 when the kernel does not say.
bool find_record_lock(int fd, const RecordLock& wanted, RecordLock* found, pid_t* pid);

/// Do locks and pages of that file come from other processes or hosts, for which one would wait?
/// O_PATH will do.
bool on_remote_file_system(int fd);

}  // namespace nfsrdma
