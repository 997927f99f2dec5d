// SPDX-License-Identifier: Apache-2.0
// Notifier: tells the kernel to drop what it has cached of a file. A thread of its own, because the
// kernel waits inside of that call for pages that are being read or written, and those requests
// are answered by the event loop.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/fuse/fuse_api.h"

namespace nfsrdma {

class Notifier {
 public:
  explicit Notifier(fuse_session* session);
  ~Notifier();

  /// Any thread; returns at once.
  void invalidate(std::uint64_t node);
  /// The same; `done` is called on the notifier's thread when the kernel has let go of it, or by
  /// stop().
  void invalidate(std::uint64_t node, std::function<void()> done);
  /// Any thread; returns at once. The kernel looks `name` up again before it believes it.
  void expire_name(std::uint64_t directory, const std::string& name);
  /// Any thread, at once: only what the kernel believes of size and times. It waits for nothing.
  void invalidate_attributes(std::uint64_t node);
  /// No more calls into the session.
  void stop();

 private:
  void run();

  fuse_session* session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// With who waits for each.
  std::map<std::uint64_t, std::vector<std::function<void()>>> pending_;  // guarded by mutex_
  std::set<std::pair<std::uint64_t, std::string>> names_;                // guarded by mutex_
  bool stopping_ = false;                                                // guarded by mutex_
  std::thread thread_;
};

}  // namespace nfsrdma
