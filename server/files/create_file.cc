// SPDX-License-Identifier: Apache-2.0
#include "server/files/create_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "server/files/change_scope.h"
#include "server/files/entry_names.h"
#include "server/files/set_attributes.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

namespace {

/// The verifier as two times. Seconds stay positive in 32 bits on every file system.
struct VerifierTimes {
  explicit VerifierTimes(const NewFile::Verifier& verf)
      : mtime(load_be32(verf.data()) & 0x7fffffff),
        atime(load_be32(verf.data() + 4) & 0x7fffffff) {}
  std::uint32_t mtime;
  std::uint32_t atime;

  bool found_on(const struct stat& st) const {
    return st.st_mtim.tv_sec == mtime && st.st_atim.tv_sec == atime && st.st_size == 0 &&
           S_ISREG(st.st_mode);
  }
  /// `values` with these times.
  NewAttributes with(NewAttributes values) const {
    values.atime.value = {atime, 0};
    values.mtime.value = {mtime, 0};
    return values;
  }
};

/// The name is taken.
int use_existing(FileCall& call, Resolved& directory, std::string_view name, const NewFile& wanted,
                 Resolved* object) {
  if (wanted.how == NewFile::How::kGuarded) return EEXIST;
  if (const int error = call.server().resolver.lookup(call.exported(), call.access(),
                                                      *directory.file, name, object)) {
    return error;
  }
  if (wanted.how == NewFile::How::kExclusive) {
    return VerifierTimes(wanted.verifier).found_on(object->attributes) ? 0 : EEXIST;
  }
  if (!object->file->is_regular()) return EEXIST;
  if (!wanted.attributes.size) return 0;
  NewAttributes only_size;
  only_size.size = wanted.attributes.size;
  ChangeScope scope(call.server(), *object);
  const int error = set_attributes(call, *object, only_size);
  const bool looked = scope.finish(may_have_changed(error));
  return error != 0 || looked ? error : EIO;
}

/// Linking by descriptor alone takes CAP_DAC_READ_SEARCH, which only root's thread has; everybody
/// else takes the longer way through /proc.
bool give_name(int fd, int directory, const char* name, bool by_root) {
  if (by_root && ::linkat(fd, "", directory, name, AT_EMPTY_PATH) == 0) return true;
  if (by_root && errno != ENOENT) return false;
  return ::linkat(AT_FDCWD, ProcPath(fd).c_str(), directory, name, AT_SYMLINK_FOLLOW) == 0;
}

/// O_EXCL, with `verifier` as its times from the first moment on. 0 or an errno: EEXIST;
/// EOPNOTSUPP where the file system has no unnamed files.
int make_exclusive(int directory, const char* name, const VerifierTimes& verifier,
                   std::uint32_t mode, bool by_root, UniqueFd* made) {
  UniqueFd fd(::openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC | O_NONBLOCK, mode));
  if (!fd) {
    // Who may not write here is told of the name that is taken before that, as open(2) does it.
    const int error = errno;
    struct stat taken;
    if (::fstatat(directory, name, &taken, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    return error == EISDIR || error == EINVAL ? EOPNOTSUPP : error;
  }
  const timespec times[2] = {{verifier.atime, 0}, {verifier.mtime, 0}};
  if (::futimens(fd.get(), times) != 0) return errno;
  if (!give_name(fd.get(), directory, name, by_root)) {
    return errno == EEXIST ? EEXIST : errno == EDQUOT || errno == ENOSPC ? errno : EOPNOTSUPP;
  }
  *made = std::move(fd);
  return 0;
}

/// 0 or an errno. *left: the attributes that are still to be set.
int make_file(Resolved& directory, std::string_view name_text, const NewFile& wanted, bool by_root,
              NewAttributes* left, UniqueFd* fd) {
  const EntryName name(name_text);
  const std::uint32_t mode = initial_mode(wanted.attributes);
  *left = wanted.attributes;
  if (wanted.how == NewFile::How::kExclusive) {
    const VerifierTimes verifier(wanted.verifier);
    left->size.reset();
    left->atime = left->mtime = {};
    const int error =
        make_exclusive(directory.file->path_fd(), name.c_str(), verifier, mode, by_root, fd);
    if (error != EOPNOTSUPP) return error;
    // Here the verifier comes after the name: a server killed in between leaves a file that the
    // client cannot recognise as its own.
    *left = verifier.with(*left);
  }
  *fd = UniqueFd(::openat(directory.file->path_fd(), name.c_str(),
                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode));
  return *fd ? 0 : errno;
}

}  // namespace

int create_file(FileCall& call, Resolved& directory, std::string_view name, const NewFile& wanted,
                Resolved* object, bool* made) {
  *made = false;
  const int parent = directory.file->path_fd();
  if (const int error = check_acls(wanted.attributes, parent, S_IFREG)) return error;
  NewAttributes left;
  UniqueFd fd;
  if (const int error = make_file(directory, name, wanted, call.caller().is_root(), &left, &fd)) {
    return error == EEXIST ? use_existing(call, directory, name, wanted, object) : error;
  }
  *made = true;
  if (const int error = call.server().resolver.adopt_created(call.exported(), *directory.file, name,
                                                             std::move(fd), object)) {
    return error;
  }
  return set_initial_attributes(call, *object, left, initial_mode(wanted.attributes));
}

}  // namespace nfsrdma
