// SPDX-License-Identifier: Apache-2.0
// Who may use which descriptor of an entry, and the opening of descriptors. See fd_cache.h.
//
// Everything is opened through /proc/self/fd/N of the O_PATH descriptor, so that no path is walked
// again and no symbolic link can come between.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

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

/// Those of `wanted` that the caller has. One question where he has all of them.
std::uint8_t judge_together(int path_fd, int wanted) {
  if (wanted == 0) return 0;
  if (check_access(path_fd, wanted) == 0) return static_cast<std::uint8_t>(wanted);
  std::uint8_t have = 0;
  for (const Right right : {kRightRead, kRightWrite, kRightExecute}) {
    if ((wanted & right) == 0 || wanted == right) continue;
    if (check_access(path_fd, right) == 0) have |= right;
  }
  return have;
}

/// Did they change so recently that the next change may get the same ctime (a tick of the kernel's
/// clock, 10 ms at most)? What is said of the object as it is now may then be false soon.
bool just_changed(const struct stat& attributes) {
  constexpr double kLongerThanATick = 0.1;
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return seconds(now) - seconds(attributes.st_ctim) < kLongerThanATick;
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

/// What is remembered of that caller and still holds; null: nothing.
const FileEntry::Grant* FdCache::granted_locked(const FileEntry& file, const CallerIdentity& who,
                                                const struct stat& attributes) const {
  const std::uint64_t now = epoch_.load(std::memory_order_relaxed);
  for (const FileEntry::Grant& grant : file.grants_) {
    if (grant.tag == who.tag && grant.is_used() && grant.epoch + kGrantSeconds >= now &&
        grant.mode == attributes.st_mode && grant.uid == attributes.st_uid &&
        grant.gid == attributes.st_gid && same_time(grant.ctime, attributes.st_ctim)) {
      return &grant;
    }
  }
  return nullptr;
}

/// Where something is to be remembered of that caller, beside what still holds from this second.
FileEntry::Grant& FdCache::grant_locked(FileEntry& file, const CallerIdentity& who,
                                        const struct stat& attributes) const {
  FileEntry::Grant* slot = nullptr;
  for (FileEntry::Grant& grant : file.grants_) {
    if (grant.tag == who.tag && grant.is_used()) slot = &grant;
  }
  FileEntry::Grant fresh;
  fresh.tag = who.tag;
  fresh.epoch = epoch_.load(std::memory_order_relaxed);
  fresh.ctime = attributes.st_ctim;
  fresh.mode = attributes.st_mode;
  fresh.uid = attributes.st_uid;
  fresh.gid = attributes.st_gid;
  if (slot == nullptr) {
    slot = &file.grants_[file.next_grant_++ % FileEntry::kGrants];
  } else if (slot->epoch == fresh.epoch && slot->mode == fresh.mode && slot->uid == fresh.uid &&
             slot->gid == fresh.gid && same_time(slot->ctime, fresh.ctime)) {
    return *slot;
  }
  *slot = fresh;
  return *slot;
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
    const FileEntry::Grant* grant = granted_locked(file, who, attributes);
    if (*fd >= 0 && grant != nullptr && (grant->rights & right) != 0) return 0;
  }
  UniqueFd opened;
  const int error = *fd >= 0 ? judge(file, who, right, attributes)
                             : open_data(file, who, right, attributes, &opened);
  if (error != 0) return error;
  std::lock_guard lock(file.mutex_);
  grant_locked(file, who, attributes).rights |= right;
  if (opened && file.data_slot(right) < 0) {  // else somebody was faster, and ours is closed
    (right == kRightRead ? file.read_fd_ : file.write_fd_) = std::move(opened);
    // Opening for writing can move the file to another layer (overlayfs); a descriptor for reading
    // from before would go on reading the old one.
    if (right == kRightWrite && file.read_fd_) file.retired_.push_back(std::move(file.read_fd_));
  }
  *fd = file.data_slot(right);
  return 0;
}

std::uint8_t FdCache::rights(FileEntry& file, const CallerIdentity& who,
                             const struct stat& attributes, std::uint8_t wanted) const {
  if (wanted == 0) return 0;
  {
    std::lock_guard lock(file.mutex_);
    const FileEntry::Grant* grant = granted_locked(file, who, attributes);
    if (grant != nullptr && (grant->judged & wanted) == wanted) return grant->has & wanted;
  }
  // Not from Grant::rights: those contain overrides, which ACCESS must not show. Most files cannot
  // be executed, so that this is asked apart.
  const std::uint8_t have = file.is_directory()
                                ? judge_together(file.path_fd(), wanted)
                                : judge_together(file.path_fd(), wanted & ~kRightExecute) |
                                      judge_together(file.path_fd(), wanted & kRightExecute);
  if (just_changed(attributes)) return have;
  std::lock_guard lock(file.mutex_);
  FileEntry::Grant& grant = grant_locked(file, who, attributes);
  grant.judged |= wanted;
  grant.has = static_cast<std::uint8_t>((grant.has & ~wanted) | have);
  return have;
}

void FdCache::note_own_change(FileEntry& file, const struct stat& before,
                              const struct stat& after) {
  if (same_time(before.st_ctim, after.st_ctim)) return;
  std::lock_guard lock(file.mutex_);
  for (FileEntry::Grant& grant : file.grants_) {
    if (!same_time(grant.ctime, before.st_ctim)) continue;
    grant.ctime = after.st_ctim;
    // The ctime is of this moment: somebody else's change may get the same, see just_changed().
    grant.judged = grant.has = 0;
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

int FdCache::file_system_fd(FileEntry& file, int directory) {
  {
    std::lock_guard lock(file.mutex_);
    if (file.file_system_fd_) return file.file_system_fd_.get();
  }
  // Opened anew: one that is kept would tell of errors that others have heard of long ago.
  UniqueFd opened;
  {
    AsServer privileged;
    opened.reset(reopen(directory, O_RDONLY | O_DIRECTORY));
  }
  if (!opened) return -1;
  std::lock_guard lock(file.mutex_);
  if (!file.file_system_fd_) file.file_system_fd_ = std::move(opened);
  return file.file_system_fd_.get();
}

int FdCache::take_stream(FileEntry& directory, const CallerIdentity& who,
                         const struct stat& attributes, DirectoryStream* stream) {
  if (!directory.is_directory()) return ENOTDIR;
  {
    std::lock_guard lock(directory.mutex_);
    const FileEntry::Grant* grant = granted_locked(directory, who, attributes);
    if (directory.stream_.fd && grant != nullptr && (grant->rights & kRightRead) != 0) {
      *stream = std::exchange(directory.stream_, {});
      return 0;
    }
  }
  // Opening judges the caller as well.
  *stream = {};
  stream->fd.reset(reopen(directory.path_fd(), O_RDONLY | O_DIRECTORY));
  if (!stream->fd) return errno;
  std::lock_guard lock(directory.mutex_);
  grant_locked(directory, who, attributes).rights |= kRightRead;
  return 0;
}

void FdCache::give_back(FileEntry& directory, DirectoryStream stream) {
  std::lock_guard lock(directory.mutex_);
  std::swap(directory.stream_, stream);
}

}  // namespace nfsrdma
