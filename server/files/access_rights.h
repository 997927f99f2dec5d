// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/vfs/fd_cache.h"

namespace nfsrdma {

/// ACCESS: those bits of `asked` that the caller has, as all NFS versions number them (ACCESS3_READ
/// to ACCESS3_EXECUTE, RFC 1813 3.3.4; from version 4.2 on ACCESS4_XAREAD, _XAWRITE, _XALIST, RFC
/// 8276 8.4.1). `read_only`: none that changes anything.
///
/// The kernel is asked (faccessat2 as the caller), so that ACLs and security modules count. The
/// override that lets owners read and write whatever the mode says is not shown here, as in Linux's
/// server.
std::uint32_t access_granted(const FileEntry& file, std::uint32_t asked, bool read_only);
/// The bits that mean anything for `file`, granted or not.
std::uint32_t access_supported(const FileEntry& file);

}  // namespace nfsrdma
