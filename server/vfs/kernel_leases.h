// SPDX-License-Identifier: Apache-2.0
// KernelLeases: leases on files (fcntl(2), F_SETLEASE). While a read lease is held the kernel keeps
// every process, this one too, from opening the file for writing or cutting it, while a write lease
// is held from opening it at all: it tells the holder, and lets the other one in when the lease is
// dropped, or after /proc/sys/fs/lease-break-time. Who asks with O_NONBLOCK, as this server does,
// gets EWOULDBLOCK at once.
//
// Threads: any; on_break is called on a thread of the object's own, which also has a loop for
// others' timers. The kernel's signals go to that thread alone.
//
// Lifetimes: on_break may come until the destructor has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class KernelLeases final : private FdWatcher {
 public:
  using Key = std::uint64_t;
  /// Once for each key at least: somebody waits for that lease.
  using OnBreak = std::function<void(Key)>;
  static Result<std::unique_ptr<KernelLeases>> create(OnBreak on_break);
  ~KernelLeases() override;

  /// A read lease on the regular file behind that descriptor of O_PATH; empty with errno when there
  /// is none to be had: somebody has the file open for writing (EAGAIN), the file system has no
  /// leases (EINVAL), it is another user's file and we have no CAP_LEASE (EACCES).
  UniqueFd take_read(int path_fd) const;
  /// A write lease on the file behind that descriptor, which is open for reading and writing and
  /// the only one that is. False with errno: as take_read(), and EAGAIN as well when anybody has
  /// the file open to read.
  bool take_write(int fd) const;
  /// Of one that was not kept.
  static void drop_write(int fd);
  /// From now on on_break tells `key`, even when somebody waits already.
  void keep(Key key, UniqueFd lease);
  /// Of take_write(). The descriptor stays the caller's, and open until drop() has returned.
  void keep(Key key, int write_lease);
  void drop(Key key);
  std::size_t size() const;

  /// How long the kernel waits before it takes a lease away.
  static Duration break_time();

  /// Of the object's thread.
  EventLoop& loop() { return *loop_; }
  /// Ends the thread: no on_break and no timer any more.
  void stop();

 private:
  struct Kept {
    int fd = -1;
    int type = 0;    // F_RDLCK, F_WRLCK
    UniqueFd owned;  // of read leases
  };
  explicit KernelLeases(OnBreak on_break) : on_break_(std::move(on_break)) {}
  bool take(int fd, int type) const;
  void keep(Key key, Kept lease);
  static bool is_broken(const Kept& lease);
  void on_fd_ready(std::uint32_t events) override;
  void check(int fd);
  void check_all();
  void serve();

  OnBreak on_break_;
  std::unique_ptr<EventLoop> loop_;
  UniqueFd signals_;
  std::atomic<int> tid_{0};
  mutable std::mutex mutex_;
  std::map<Key, Kept> kept_;  // guarded by mutex_
  std::map<int, Key> by_fd_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace nfsrdma
