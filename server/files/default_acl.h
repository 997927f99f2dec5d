// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/vfs/file_entry.h"

namespace nfsrdma {

/// Has the directory a default ACL? Then it shapes the modes of what is made in it, and no umask
/// does (RFC 8275 3).
bool has_default_acl(const FileEntry& directory);

}  // namespace nfsrdma
