// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/kernel_handle.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "server/credentials.h"

namespace nfsrdma {

namespace {

/// open_by_handle_at of an inode number that was freed and is being given to a new file at this
/// very moment fails with ENOMEM (the kernel's iget_locked finds the inode I_CREATING): the next
/// try says ESTALE. A client that is told to ask again does so after seconds (NFS3ERR_JUKEBOX).
/// Whoever makes that file may have lost its processor meanwhile, and gets it back when this thread
/// sleeps; at most 6 ms, where the host really has no memory.
constexpr int kTriesWithoutMemory = 40;
constexpr int kTriesWithoutSleep = 16;
constexpr timespec kBetweenTries{0, 200'000};

}  // namespace

int open_kernel_handle(int beside, const HandleParts& parts, UniqueFd* fd) {
  KernelHandle handle;
  handle.header.handle_bytes = parts.body_size;
  handle.header.handle_type = parts.kernel_type;
  std::memcpy(handle.header.f_handle, parts.body.data(), parts.body_size);
  AsServer privileged;
  for (int i = 0; i < kTriesWithoutMemory; ++i) {
    fd->reset(::open_by_handle_at(beside, &handle.header, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (*fd) return 0;
    if (errno != ENOMEM) break;
    if (i < kTriesWithoutSleep) {
      ::sched_yield();
    } else {
      ::nanosleep(&kBetweenTries, nullptr);
      errno = ENOMEM;
    }
  }
  // What the file system does not know (any more) it calls one or the other.
  return errno == EINVAL || errno == ENOENT ? ESTALE : errno;
}

}  // namespace nfsrdma
