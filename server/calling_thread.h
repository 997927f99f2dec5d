// SPDX-License-Identifier: Apache-2.0
// CallingThread: a thread with a loop, by which the lock manager and the status monitor of NFSv3
// call hosts and do what is to be done at a time.
//
// Lifetimes: who uses it is destroyed after stop(), which ends the thread; nothing of what was
// posted or called runs after that.
#pragma once

#include <memory>
#include <thread>

#include "rpcrdma/base/event_loop.h"
#include "server/host_calls.h"

namespace nfsrdma {

class CallingThread {
 public:
  /// `rpcbind_port`: of the hosts that are called.
  static Result<std::unique_ptr<CallingThread>> start(std::uint16_t rpcbind_port = 111);
  ~CallingThread() { stop(); }
  CallingThread(const CallingThread&) = delete;
  CallingThread& operator=(const CallingThread&) = delete;
  void stop();

  EventLoop& loop() { return *loop_; }
  /// Of the thread.
  HostCalls& calls() { return *calls_; }

 private:
  CallingThread(std::unique_ptr<EventLoop> loop, std::uint16_t rpcbind_port);

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<HostCalls> calls_;
  std::thread thread_;
};

}  // namespace nfsrdma
