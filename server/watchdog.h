// SPDX-License-Identifier: Apache-2.0
// Watchdog: tells the service manager that the server is alive (sd_watchdog_enabled(3)), when the
// unit asks for it. Alive means that the accepting loop turns, and that every shard's thread has
// come round since the last beat or waits in the kernel for a file system: a restart
// would not help against a disk or a server behind it that hangs, and would take the other exports
// away.
//
// On one loop's thread. What it watches outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma {

class NfsServer;

class Watchdog {
 public:
  /// Null where nobody asked for beats ($WATCHDOG_USEC).
  static std::unique_ptr<Watchdog> start(EventLoop& loop, NfsServer& server);

 private:
  Watchdog(EventLoop& loop, NfsServer& server, Duration period);
  void beat();

  EventLoop& loop_;
  NfsServer& server_;
  Duration period_;
  RateLimit silent_{1, std::chrono::seconds(30)};
  Timer timer_;
};

/// Does that thread of this process wait in the kernel for a file system? In state D it does, and
/// when it sleeps (S: FUSE) in a system call that is not one of those that wait for other threads.
bool thread_waits_in_kernel(pid_t thread);

}  // namespace nfsrdma
