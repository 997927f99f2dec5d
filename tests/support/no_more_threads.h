// SPDX-License-Identifier: Apache-2.0
// NoMoreThreads: while it is there this thread can make no other, as in a service or container at
// its limit of processes. Root has no such limit: the calling thread acts as another user then.
#pragma once

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <system_error>
#include <thread>

namespace nfsrdma::test {

class NoMoreThreads {
 public:
  NoMoreThreads() {
    ::getrlimit(RLIMIT_NPROC, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NPROC, &none);
    if (was_root_) become(kNobody);
  }
  ~NoMoreThreads() {
    if (was_root_) become(0);
    ::setrlimit(RLIMIT_NPROC, &before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

  /// To be asserted: who has CAP_SYS_RESOURCE without being root is not kept from it.
  static bool hold() {
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      return true;
    }
    return false;
  }

 private:
  static constexpr long kNobody = 65534;

  /// Of this thread alone, which glibc's would not be; root's rights come back by the saved id.
  static void become(long uid) { ::syscall(SYS_setresuid, uid, uid, 0L); }

  bool was_root_ = ::getuid() == 0;
  rlimit before_{};
};

}  // namespace nfsrdma::test
