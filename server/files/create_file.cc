// SPDX-License-Identifier: Apache-2.0
#include "server/files/create_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "server/files/entry_names.h"
#include "server/files/set_attributes.h"

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
  if (const int error =
          call.server().resolver.lookup(call.exported(), *directory.file, name, object)) {
    return error;
  }
  if (wanted.how == NewFile::How::kExclusive) {
    return VerifierTimes(wanted.verifier).found_on(object->attributes) ? 0 : EEXIST;
  }
  if (!object->file->is_regular()) return EEXIST;
  if (!wanted.attributes.size) return 0;
  NewAttributes only_size;
  only_size.size = wanted.attributes.size;
  if (const int error = set_attributes(call, *object, only_size)) return error;
  return ::fstat(object->file->path_fd(), &object->attributes) == 0 ? 0 : errno;
}

std::string link_to(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

/// O_EXCL, with `verifier` as its times from the first moment on. 0 or an errno: EEXIST;
/// EOPNOTSUPP where the file system has no unnamed files.
int make_exclusive(int directory, const char* name, const VerifierTimes& verifier,
                   std::uint32_t mode, UniqueFd* made) {
  struct stat taken;
  if (::fstatat(directory, name, &taken, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  UniqueFd fd(::openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC | O_NONBLOCK, mode));
  if (!fd) return errno == EISDIR || errno == EINVAL ? EOPNOTSUPP : errno;
  const timespec times[2] = {{verifier.atime, 0}, {verifier.mtime, 0}};
  if (::futimens(fd.get(), times) != 0) return errno;
  if (::linkat(AT_FDCWD, link_to(fd.get()).c_str(), directory, name, AT_SYMLINK_FOLLOW) != 0) {
    return errno == EEXIST ? EEXIST : errno == EDQUOT || errno == ENOSPC ? errno : EOPNOTSUPP;
  }
  *made = std::move(fd);
  return 0;
}

/// 0 or an errno. *left: the attributes that are still to be set.
int make_file(Resolved& directory, std::string_view name_text, const NewFile& wanted,
              NewAttributes* left, UniqueFd* fd) {
  const EntryName name(name_text);
  const std::uint32_t mode = initial_mode(wanted.attributes);
  *left = wanted.attributes;
  if (wanted.how == NewFile::How::kExclusive) {
    const VerifierTimes verifier(wanted.verifier);
    left->size.reset();
    left->atime = left->mtime = {};
    const int error = make_exclusive(directory.file->path_fd(), name.c_str(), verifier, mode, fd);
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
  NewAttributes left;
  UniqueFd fd;
  if (const int error = make_file(directory, name, wanted, &left, &fd)) {
    return error == EEXIST ? use_existing(call, directory, name, wanted, object) : error;
  }
  *made = true;
  if (const int error = call.server().resolver.adopt_created(call.exported(), *directory.file, name,
                                                             std::move(fd), object)) {
    return error;
  }
  if (const int error =
          set_initial_attributes(call, *object, left, initial_mode(wanted.attributes))) {
    return error;
  }
  return ::fstat(object->file->path_fd(), &object->attributes) == 0 ? 0 : errno;
}

}  // namespace nfsrdma
