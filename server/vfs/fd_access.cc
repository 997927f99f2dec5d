// SPDX-License-Identifier: Apache-2.0
// Who may use which descriptor of an entry, and the opening of descriptors. See fd_cache.h.
//
// Everything is opened through /proc/self/fd/N of the O_PATH descriptor, so that no path is walked
// again and no symbolic link can come between.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "rpcrdma/base/timestamp.h"
#include "server/vfs/fd_cache.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

namespace {

constexpr int kReopenFlags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// access(2) as the thread's file system identity sees it: 0 or an errno.
int check_access(int path_fd, int mode) {
  if (::syscall(SYS_faccessat2, path_fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0) return 0;
  return errno;
}

/// May `who` do what only the owner may? Without root, everybody is the server's user.
bool is_owner(const CallerIdentity& who, const struct stat& attributes) {
  return attributes.st_uid == (can_switch_identity() ? who.uid : ::geteuid());
}

/// The owner may read and write a file whatever its mode says; who may execute may read.
bool overridden(const FileEntry& file, const CallerIdentity& who, Right right,
                const struct stat& attributes) {
  if (is_owner(who, attributes)) return true;
  return right == kRightRead && check_access(file.path_fd(), X_OK) == 0;
}

/// Without privilege the owner's override takes a detour: for a moment the mode lets the owner in.
int open_as_owner(const FileEntry& file, int flags, const struct stat& attributes) {
  const ProcPath path(file.path_fd());
  const mode_t mode = attributes.st_mode & 07777;
  if (::chmod(path.c_str(), mode | S_IRUSR | S_IWUSR) != 0) return -1;
  const int fd = reopen(file.path_fd(), flags);
  const int saved = errno;
  ::chmod(path.c_str(), mode);
  errno = saved;
  return fd;
}

}  // namespace

int reopen(int path_fd, int flags) {
  return ::open(ProcPath(path_fd).c_str(), flags | kReopenFlags);
}

bool FdCache::granted_locked(const FileEntry& file, const CallerIdentity& who, std::uint8_t rights,
                             const struct stat& attributes) const {
  const std::uint64_t now = epoch_.load(std::memory_order_relaxed);
  for (const FileEntry::Grant& grant : file.grants_) {
    if (grant.tag == who.tag && (grant.rights & rights) == rights &&
        grant.epoch + kGrantSeconds >= now && grant.mode == attributes.st_mode &&
        grant.uid == attributes.st_uid && grant.gid == attributes.st_gid &&
        same_time(grant.ctime, attributes.st_ctim)) {
      return true;
    }
  }
  return false;
}

void FdCache::grant_locked(FileEntry& file, const CallerIdentity& who, std::uint8_t rights,
                           const struct stat& attributes) {
  FileEntry::Grant* slot = nullptr;
  for (FileEntry::Grant& grant : file.grants_) {
    if (grant.tag == who.tag && grant.rights != 0) slot = &grant;
  }
  FileEntry::Grant fresh{who.tag,
                         epoch_.load(std::memory_order_relaxed),
                         attributes.st_ctim,
                         attributes.st_mode,
                         attributes.st_uid,
                         attributes.st_gid,
                         rights};
  if (slot == nullptr) {
    slot = &file.grants_[file.next_grant_++ % FileEntry::kGrants];
  } else if (slot->epoch == fresh.epoch && slot->mode == fresh.mode && slot->uid == fresh.uid &&
             slot->gid == fresh.gid && same_time(slot->ctime, fresh.ctime)) {
    fresh.rights |= slot->rights;
  }
  *slot = fresh;
}

int FdCache::judge(FileEntry& file, const CallerIdentity& who, Right right,
                   const struct stat& attributes) {
  const int error = check_access(file.path_fd(), right);
  if (error == EACCES && overridden(file, who, right, attributes)) return 0;
  return error;
}

/// Opens with the caller's own rights; where only an override lets the caller in, with the
/// server's.
int FdCache::open_data(FileEntry& file, const CallerIdentity& who, Right right,
                       const struct stat& attributes, UniqueFd* fd) {
  const int flags = right == kRightRead ? O_RDONLY : O_RDWR;
  fd->reset(reopen(file.path_fd(), flags));
  if (!*fd && right == kRightWrite && errno == EACCES) {
    fd->reset(reopen(file.path_fd(), O_WRONLY));  // write permission without read permission
  }
  if (*fd) return 0;
  if (errno != EACCES) return errno;
  if (!overridden(file, who, right, attributes)) return EACCES;
  AsServer privileged;
  fd->reset(can_switch_identity() ? reopen(file.path_fd(), flags)
                                  : open_as_owner(file, flags, attributes));
  return *fd ? 0 : errno;
}

int FdCache::data_fd(FileEntry& file, const CallerIdentity& who, Right right,
                     const struct stat& attributes, int* fd) {
  if (!file.is_regular()) return file.is_directory() ? EISDIR : EINVAL;
  {
    std::lock_guard lock(file.mutex_);
    *fd = file.data_slot(right);
    if (*fd >= 0 && granted_locked(file, who, right, attributes)) return 0;
  }
  UniqueFd opened;
  const int error = *fd >= 0 ? judge(file, who, right, attributes)
                             : open_data(file, who, right, attributes, &opened);
  if (error != 0) return error;
  std::lock_guard lock(file.mutex_);
  grant_locked(file, who, right, attributes);
  if (opened && file.data_slot(right) < 0) {  // else somebody was faster, and ours is closed
    (right == kRightRead ? file.read_fd_ : file.write_fd_) = std::move(opened);
    // Opening for writing can move the file to another layer (overlayfs); a descriptor for reading
    // from before would go on reading the old one.
    if (right == kRightWrite && file.read_fd_) file.retired_.push_back(std::move(file.read_fd_));
  }
  *fd = file.data_slot(right);
  return 0;
}

std::uint8_t FdCache::rights(const FileEntry& file, std::uint8_t wanted) {
  // Not from the grants: those contain overrides, which ACCESS must not show.
  if (wanted == 0 || check_access(file.path_fd(), wanted) == 0) return wanted;
  std::uint8_t have = 0;
  for (const Right right : {kRightRead, kRightWrite, kRightExecute}) {
    if ((wanted & right) == 0 || wanted == right) continue;
    if (check_access(file.path_fd(), right) == 0) have |= right;
  }
  return have;
}

void FdCache::note_own_change(FileEntry& file, const struct stat& before,
                              const struct stat& after) {
  if (same_time(before.st_ctim, after.st_ctim)) return;
  std::lock_guard lock(file.mutex_);
  for (FileEntry::Grant& grant : file.grants_) {
    if (same_time(grant.ctime, before.st_ctim)) grant.ctime = after.st_ctim;
  }
}

int FdCache::sync_fd(FileEntry& file) {
  if (!file.is_regular() && !file.is_directory()) {
    errno = EINVAL;
    return -1;
  }
  {
    std::lock_guard lock(file.mutex_);
    for (const Right right : {kRightWrite, kRightRead}) {
      if (const int fd = file.data_slot(right); fd >= 0) return fd;
    }
    if (file.sync_fd_) return file.sync_fd_.get();
  }
  UniqueFd opened;
  {
    AsServer privileged;
    opened.reset(reopen(file.path_fd(), O_RDONLY));
  }
  if (!opened) return -1;
  std::lock_guard lock(file.mutex_);
  if (!file.sync_fd_) file.sync_fd_ = std::move(opened);
  return file.sync_fd_.get();
}

int FdCache::take_stream(FileEntry& directory, const CallerIdentity& who,
                         const struct stat& attributes, DirectoryStream* stream) {
  if (!directory.is_directory()) return ENOTDIR;
  {
    std::lock_guard lock(directory.mutex_);
    if (directory.stream_.fd && granted_locked(directory, who, kRightRead, attributes)) {
      *stream = std::exchange(directory.stream_, {});
      return 0;
    }
  }
  // Opening judges the caller as well.
  *stream = {};
  stream->fd.reset(reopen(directory.path_fd(), O_RDONLY | O_DIRECTORY));
  if (!stream->fd) return errno;
  std::lock_guard lock(directory.mutex_);
  grant_locked(directory, who, kRightRead, attributes);
  return 0;
}

void FdCache::give_back(FileEntry& directory, DirectoryStream stream) {
  std::lock_guard lock(directory.mutex_);
  std::swap(directory.stream_, stream);
}

}  // namespace nfsrdma
