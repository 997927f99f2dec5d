// SPDX-License-Identifier: Apache-2.0
#include "server/files/default_acl.h"

#include <sys/xattr.h>

#include <cstdio>

namespace nfsrdma {

bool has_default_acl(const FileEntry& directory) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", directory.path_fd());
  return ::getxattr(path, "system.posix_acl_default", nullptr, 0) > 0;
}

}  // namespace nfsrdma
