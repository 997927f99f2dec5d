// SPDX-License-Identifier: Apache-2.0
#include "server/files/user_xattrs.h"
#include "server/vfs/proc_path.h"

#include <linux/limits.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nfsrdma {

namespace {

constexpr std::string_view kPrefix = "user.";

class FullName {
 public:
  explicit FullName(std::string_view name) {
    std::memcpy(text_, kPrefix.data(), kPrefix.size());
    std::memcpy(text_ + kPrefix.size(), name.data(), name.size());
    text_[kPrefix.size() + name.size()] = '\0';
  }
  const char* c_str() const { return text_; }

 private:
  char text_[XATTR_NAME_MAX + 1];
};

}  // namespace

bool has_user_xattrs(int path_fd) {
  // Any answer about one that is not there but "no such thing here". (It need not be readable.)
  return ::getxattr(ProcPath(path_fd).c_str(), "user.nfs-rdma.probe", nullptr, 0) >= 0 ||
         errno != EOPNOTSUPP;
}

int check_xattr_name(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) return EINVAL;
  return name.size() > XATTR_NAME_MAX - kPrefix.size() ? ENAMETOOLONG : 0;
}

int get_user_xattr(const FileEntry& object, std::string_view name, MutableByteSpan room,
                   std::size_t* size) {
  const ssize_t n = ::getxattr(ProcPath(object.path_fd()).c_str(), FullName(name).c_str(),
                               room.data(), room.size());
  if (n < 0) return errno == ERANGE ? E2BIG : errno;
  *size = static_cast<std::size_t>(n);
  return 0;
}

int set_user_xattr(const FileEntry& object, std::string_view name, ByteSpan value,
                   XattrSetting setting) {
  const int flags = setting == XattrSetting::kCreate    ? XATTR_CREATE
                    : setting == XattrSetting::kReplace ? XATTR_REPLACE
                                                        : 0;
  return ::setxattr(ProcPath(object.path_fd()).c_str(), FullName(name).c_str(), value.data(),
                    value.size(), flags) == 0
             ? 0
             : errno;
}

int remove_user_xattr(const FileEntry& object, std::string_view name) {
  return ::removexattr(ProcPath(object.path_fd()).c_str(), FullName(name).c_str()) == 0 ? 0 : errno;
}

int list_user_xattrs(const FileEntry& object, MutableByteSpan room,
                     const std::function<bool(std::string_view name)>& take) {
  char* const names = reinterpret_cast<char*>(room.data());
  const ssize_t n = ::listxattr(ProcPath(object.path_fd()).c_str(), names, room.size());
  if (n < 0) return errno == ERANGE ? E2BIG : errno;
  // Where there are none, the kernel gives an empty list.
  if (n == 0 && !has_user_xattrs(object.path_fd())) return EOPNOTSUPP;
  // Names with a NUL behind each.
  std::string_view rest(names, static_cast<std::size_t>(n));
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) continue;
    if (!take(name.substr(kPrefix.size()))) break;
  }
  return 0;
}

}  // namespace nfsrdma
