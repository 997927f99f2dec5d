// SPDX-License-Identifier: Apache-2.0
// Notifier: tells the kernel to drop what it has cached of a file. By threads of its own, since the
// kernel waits inside of these calls, and what it waits for may be answers of the event loop:
//
//   data         for pages that are being read or written
//   names        for the lock of the directory, which a request may hold that waits for data to go
//   attributes   only where it is about to forget the file: until what is being read of it is here
//
// So none of them waits behind another kind, and data has up to kMostThreads, so that a file whose
// server keeps it waiting does not hold up others. One file's data is dropped by one of them at a
// time, and not beside its attributes: behind that, nothing is dropped that was asked for before.
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
  static constexpr std::size_t kMostThreads = 8;

  explicit Notifier(fuse_session* session);
  ~Notifier();

  /// Any thread; returns at once. `done` is called on the notifier's thread when the kernel has let
  /// go of data and attributes, or by stop().
  void invalidate(std::uint64_t node, std::function<void()> done);
  /// Any thread; returns at once. The kernel looks `name` up again before it believes it.
  void expire_name(std::uint64_t directory, const std::string& name);
  /// Any thread, at once: only what the kernel believes of size and times, of what it has in use
  /// for a request: then it waits for nothing.
  void invalidate_attributes(std::uint64_t node);
  /// The same for any file; returns at once.
  void invalidate_attributes_soon(std::uint64_t node);
  /// No more calls into the session.
  void stop();

 private:
  /// With the lock, when there is something for one to do.
  void call_data_thread();
  void drop_data();
  void drop_names();
  void drop_attributes();

  fuse_session* session_;
  std::mutex mutex_;
  std::condition_variable data_due_;
  std::condition_variable names_due_;
  std::condition_variable attributes_due_;
  /// With who waits for each.
  std::map<std::uint64_t, std::vector<std::function<void()>>> data_;  // guarded by mutex_
  std::set<std::uint64_t> being_dropped_;                             // guarded by mutex_
  std::set<std::pair<std::uint64_t, std::string>> names_;             // guarded by mutex_
  std::set<std::uint64_t> attributes_;                                // guarded by mutex_
  std::uint64_t attributes_of_ = 0;        // whose are being dropped; guarded by mutex_
  bool stopping_ = false;                  // guarded by mutex_
  std::size_t busy_ = 1;                   // of data_threads_; guarded by mutex_
  std::vector<std::thread> data_threads_;  // made when needed; guarded by mutex_ until stopping_
  std::thread names_thread_;
  std::thread attributes_thread_;
};

}  // namespace nfsrdma
