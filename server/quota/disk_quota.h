// SPDX-License-Identifier: Apache-2.0
// DiskQuota: what the kernel says of a disk quota (quotactl(2)).
//
// The kernel tells a process the quota of its own user and of its groups; of others only with
// CAP_SYS_ADMIN, which is too much to have for that. Whoever is asked about is therefore whom the
// question is asked as, on a thread of its own that ends with the answer: CAP_SETUID and
// CAP_SETGID, which the server has in any case, are enough. Nobody owns a project, so that those of
// projects do need CAP_SYS_ADMIN.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>

#include "xdr/rquota.h"

namespace nfsrdma {

/// Values of quotactl(2).
enum class QuotaKind : std::uint8_t { kUser = 0, kGroup = 1, kProject = 2 };

/// Limits of 0 are none. Times are when a soft limit that is exceeded becomes a hard one; 0: it is
/// not exceeded.
struct DiskQuota {
  std::uint64_t hard_blocks = 0;  // of 1 KiB
  std::uint64_t soft_blocks = 0;  // of 1 KiB
  std::uint64_t used_bytes = 0;
  std::uint64_t hard_files = 0;
  std::uint64_t soft_files = 0;
  std::uint64_t used_files = 0;
  std::time_t block_time = 0;
  std::time_t file_time = 0;
};

/// Of the file system that `fd` (O_PATH is enough) lies on, whose st_dev is `device`. 0 or an
/// errno: ESRCH and others where there are no quotas or none of that kind, EPERM where the server
/// may not ask. May block.
int read_disk_quota(int fd, dev_t device, QuotaKind kind, std::uint32_t id, DiskQuota* quota);

/// As the protocol says it. Blocks become larger where their numbers would not fit otherwise;
/// limits are rounded up then, so that none becomes "no limit".
xdr::rquota rquota_of(const DiskQuota& quota, std::time_t now);

}  // namespace nfsrdma
