// SPDX-License-Identifier: Apache-2.0
// DelegationGuard: asked before a file's attributes or names are changed: was anybody promised that
// they stay as they are? Of its data the kernel's leases take care (kernel_leases.h), but for the
// one descriptor that a write delegation's lease lets in (FileEntry::promised_to).
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

namespace nfsrdma {

class DelegationGuard {
 public:
  virtual ~DelegationGuard() = default;

  /// Any thread. False in nearly all calls, and then at the price of a load.
  bool stops(dev_t device, ino_t inode, std::uint64_t by) {
    return any() && in_the_way(device, inode, by);
  }
  bool any() const { return given_.load(std::memory_order_acquire) != 0; }
  /// The same of who wants to see the data and what attributes say of it.
  bool stops_reading(dev_t device, ino_t inode, std::uint64_t by) {
    return any_writer() && in_the_way_of_readers(device, inode, by);
  }
  /// Does a client have a write delegation of the file? Then size and times are what that client
  /// says. Nobody is asked for anything.
  bool hides(dev_t device, ino_t inode) { return any_writer() && is_written(device, inode); }
  bool any_writer() const { return writers_.load(std::memory_order_acquire) != 0; }

 protected:
  /// True: those who hold the promise are asked to give it back; the change is to be tried again
  /// later. `by`: a client of NFSv4 whose own promises do not count, or 0.
  virtual bool in_the_way(dev_t device, ino_t inode, std::uint64_t by) = 0;
  virtual bool in_the_way_of_readers(dev_t device, ino_t inode, std::uint64_t by) = 0;
  virtual bool is_written(dev_t device, ino_t inode) = 0;

  std::atomic<std::size_t> given_{0};
  std::atomic<std::size_t> writers_{0};
};

}  // namespace nfsrdma
