// SPDX-License-Identifier: Apache-2.0
// ApartThreads: work that may block (the user database, DNS), away from the event loop's thread.
//
// There are threads only while there is work, kMostThreads at most, and nobody waits for their end:
// a mount can be unmounted while LDAP does not answer. What a thread comes back with then is
// dropped.
//
// On the loop's thread, but for the work itself.
#pragma once

#include <functional>
#include <memory>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class ApartThreads {
 public:
  /// One that hangs does not hold up the others at once.
  static constexpr unsigned kMostThreads = 4;

  /// `loop` outlives this.
  explicit ApartThreads(EventLoop& loop);
  ~ApartThreads();
  ApartThreads(const ApartThreads&) = delete;
  ApartThreads& operator=(const ApartThreads&) = delete;

  /// Runs `work` on another thread and then `done` from the event loop; when this is destroyed
  /// before, `work` may run and `done` does not. What they hold may end on either thread.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace nfsrdma
