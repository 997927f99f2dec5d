// SPDX-License-Identifier: Apache-2.0
#include "server/files/posix_acl.h"
#include "server/vfs/proc_path.h"

#include <sys/xattr.h>

#include <array>
#include <cerrno>

namespace nfsrdma {

namespace {

constexpr const char* kAccess = "system.posix_acl_access";
constexpr const char* kDefault = "system.posix_acl_default";

constexpr std::size_t kMostBytes = 65536;  // of any extended attribute

/// 0, or an errno: ENODATA where there is none.
int read_one(int path_fd, const char* name, PosixAcl* acl) {
  constexpr std::size_t kUsual = 512;
  const ProcPath path(path_fd);
  std::array<std::byte, kUsual> room;
  ssize_t size = ::getxattr(path.c_str(), name, room.data(), room.size());
  ByteSpan bytes = room;
  std::vector<std::byte> larger;
  if (size < 0 && errno == ERANGE) {
    larger.resize(kMostBytes);
    size = ::getxattr(path.c_str(), name, larger.data(), larger.size());
    bytes = larger;
  }
  if (size < 0) return errno;
  return decode_posix_acl(bytes.first(static_cast<std::size_t>(size)), acl) ? 0 : EIO;
}

int write_one(int path_fd, const char* name, const PosixAcl& acl) {
  const std::vector<std::byte> bytes = encode_posix_acl(acl);
  if (bytes.size() > kMostBytes) return ENOSPC;
  return ::setxattr(ProcPath(path_fd).c_str(), name, bytes.data(), bytes.size(), 0) == 0 ? 0
                                                                                         : errno;
}

int remove_default(int path_fd) {
  if (::removexattr(ProcPath(path_fd).c_str(), kDefault) == 0 || errno == ENODATA) return 0;
  return errno;
}

}  // namespace

bool has_posix_acls(int path_fd, mode_t mode) {
  if (path_fd < 0) return false;
  if (S_ISLNK(mode)) return true;
  return ::getxattr(ProcPath(path_fd).c_str(), kAccess, nullptr, 0) >= 0 || errno != EOPNOTSUPP;
}

int read_posix_acls(int path_fd, mode_t mode, PosixAcls* acls) {
  *acls = {};
  acls->access = PosixAcl::of_mode(mode);
  if (S_ISLNK(mode)) return 0;
  int error = read_one(path_fd, kAccess, &acls->access);
  if (error == ENODATA) {
    acls->access = PosixAcl::of_mode(mode);
    error = 0;
  }
  if (error != 0 || !S_ISDIR(mode)) return error;
  PosixAcl initial;
  error = read_one(path_fd, kDefault, &initial);
  if (error == ENODATA) return 0;
  if (error == 0) acls->initial = std::move(initial);
  return error;
}

int write_posix_acls(int path_fd, mode_t mode, const PosixAcls& acls) {
  if (S_ISLNK(mode)) return EOPNOTSUPP;
  if (const int error = write_one(path_fd, kAccess, acls.access)) return error;
  if (!S_ISDIR(mode)) return 0;
  return acls.initial ? write_one(path_fd, kDefault, *acls.initial) : remove_default(path_fd);
}

}  // namespace nfsrdma
