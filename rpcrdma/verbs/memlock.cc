// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/memlock.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nfsrdma::verbs {

namespace {

bool may_lock_any_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

}  // namespace

MemlockLimit memlock_limit() {
  MemlockLimit limit;
  rlimit memlock{};
  if (::getrlimit(RLIMIT_MEMLOCK, &memlock) == 0) {
    limit.bytes = memlock.rlim_cur;
    limit.unlimited = memlock.rlim_cur == RLIM_INFINITY;
  }
  limit.exempt = may_lock_any_memory();
  return limit;
}

std::string memlock_remedy() {
  return "raise it with LimitMEMLOCK=infinity in the systemd unit, 'ulimit -l unlimited' in a "
         "shell "
         "or memlock in /etc/security/limits.conf for users, or give the program CAP_IPC_LOCK "
         "(which "
         "siw heeds since Linux 6.8 only)";
}

}  // namespace nfsrdma::verbs
