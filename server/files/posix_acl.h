// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs of objects (acl(5)), as the kernel keeps them: the access ACL, of which an object has
// at least what its mode says, and a directory's default ACL, which shapes what is made in it.
//
// Functions take an O_PATH descriptor and act with the rights of the thread: as the caller, where
// FileCall::admit() came before. They return 0 or an errno.
#pragma once

#include <sys/stat.h>

#include "rpcrdma/base/posix_acl.h"

namespace nfsrdma {

/// Has the object's file system ACLs? A symbolic link has none anywhere, and is taken for one of a
/// file system that has.
bool has_posix_acls(int path_fd, mode_t mode);
/// EOPNOTSUPP where the file system has none. A symbolic link's says what its mode says.
int read_posix_acls(int path_fd, mode_t mode, PosixAcls* acls);
/// Replaces both; a default ACL that is not in `acls` is removed. Access rights in the mode become
/// those of the ACL, the other bits of it stay, but for a set-group-id bit that the caller could
/// not set. EOPNOTSUPP where there can be none.
int write_posix_acls(int path_fd, mode_t mode, const PosixAcls& acls);

}  // namespace nfsrdma
