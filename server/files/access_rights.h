// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "server/files/file_call.h"

namespace nfsrdma {

/// ACCESS: those bits of `asked` that the caller has, as all NFS versions number them (ACCESS3_READ
/// to ACCESS3_EXECUTE, RFC 1813 3.3.4; from version 4.2 on ACCESS4_XAREAD, _XAWRITE, _XALIST, RFC
/// 8276 8.4.1). Of an export that is read-only: none that changes anything.
///
/// The kernel is asked (faccessat2 as the caller; FdCache::rights() remembers what it said), so
/// that ACLs and security modules count. The override that lets owners read and write whatever the
/// mode says is not shown here, as in Linux's server. `call` has been admitted, and the attributes
/// of `object` are fresh.
std::uint32_t access_granted(FileCall& call, const Resolved& object, std::uint32_t asked);
/// The bits that mean anything for `file`, granted or not.
std::uint32_t access_supported(const FileEntry& file);

}  // namespace nfsrdma
