// SPDX-License-Identifier: Apache-2.0
// NameWatches: hears when somebody renames, links, removes or changes the attributes of a file
// (inotify(7)), after the fact. Leases (kernel_leases.h) tell of opens alone.
//
// Threads: any; on_change is called on the loop's thread.
// Lifetimes: the loop outlives the object, and its thread has ended before the object is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class NameWatches final : private FdWatcher {
 public:
  using Key = std::uint64_t;
  /// For each key of the file, at least once.
  using OnChange = std::function<void(Key)>;
  static Result<std::unique_ptr<NameWatches>> create(EventLoop& loop, OnChange on_change);
  ~NameWatches() override;

  /// False, and nobody is told, when the system has no more watches to give.
  bool watch(Key key, int path_fd);
  void drop(Key key);

 private:
  NameWatches(EventLoop& loop, OnChange on_change)
      : loop_(loop), on_change_(std::move(on_change)) {}
  void on_fd_ready(std::uint32_t events) override;
  void changed(int watch, bool ended);
  void end_unused();

  EventLoop& loop_;
  const OnChange on_change_;
  UniqueFd inotify_;
  bool added_ = false;  // of the loop's thread
  std::mutex mutex_;
  std::map<int, std::set<Key>> keys_;  // by watch; a file has one
  std::map<Key, int> watches_;
  int adding_ = 0;        // calls of watch() that do not know their watch yet
  std::set<int> unused_;  // may have no key any more
};

}  // namespace nfsrdma
