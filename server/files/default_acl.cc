// SPDX-License-Identifier: Apache-2.0
#include "server/files/default_acl.h"
#include "server/vfs/proc_path.h"

#include <sys/xattr.h>

namespace nfsrdma {

bool has_default_acl(const FileEntry& directory) {
  return ::getxattr(ProcPath(directory.path_fd()).c_str(), "system.posix_acl_default", nullptr, 0) >
         0;
}

}  // namespace nfsrdma
