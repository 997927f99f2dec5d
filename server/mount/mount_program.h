// SPDX-License-Identifier: Apache-2.0
// MOUNT version 3 (RFC 1813, appendix I), on the same transports as NFS.
#pragma once

#include <string>
#include <string_view>

#include "server/procedure.h"

namespace nfsrdma {

ProgramTable mount3_program();

/// "/a//b/./c/" as "/a/b/c"; "" for what is not absolute or has "..".
std::string normalise_mount_path(std::string_view path);

}  // namespace nfsrdma
