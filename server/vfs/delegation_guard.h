// SPDX-License-Identifier: Apache-2.0
// DelegationGuard: asked before a file's attributes or names are changed: was anybody promised that
// they stay as they are? (Of its data the kernel's leases take care, kernel_leases.h.)
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
    return given_.load(std::memory_order_acquire) != 0 && in_the_way(device, inode, by);
  }
  bool any() const { return given_.load(std::memory_order_acquire) != 0; }

 protected:
  /// True: those who hold the promise are asked to give it back; the change is to be tried again
  /// later. `by`: a client of NFSv4 whose own promises do not count, or 0.
  virtual bool in_the_way(dev_t device, ino_t inode, std::uint64_t by) = 0;
  std::atomic<std::size_t> given_{0};
};

}  // namespace nfsrdma
