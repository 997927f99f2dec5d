// SPDX-License-Identifier: Apache-2.0
// StartWatch: while it is there SIGTERM and SIGINT end the process at once, and the log says what
// it was waiting for: nobody is served yet, and the file system that the start asks may never
// answer. A handler of ours would wake no call that hangs, so a thread of its own waits for them.
#pragma once

#include <mutex>
#include <string>
#include <thread>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class StartWatch {
 public:
  /// Both signals are blocked in all threads. Without a thread or a descriptor to be had it only
  /// says so in the log.
  StartWatch();
  /// From here on they are pending for whoever takes them.
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  /// What the start asks from now on, as the log has it: "the state directory /var/lib/nfs-rdma".
  void waits_for(std::string what);

 private:
  void watch();
  [[noreturn]] void end_by(int signal);

  UniqueFd signals_;
  UniqueFd done_;
  std::mutex mutex_;
  std::string what_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace nfsrdma
