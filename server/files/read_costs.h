// SPDX-License-Identifier: Apache-2.0
// ReadCosts: is it cheaper to copy what a READ asks for, or to show the pages that have it
// (server/files/file_pages.h)? That depends on the kernel and the file system: with large folios
// (ext4 from Linux 6.16 on, XFS) showing costs a tenth of a copy, with single pages it may cost
// more than one. So both are measured, on the reads that come, and the cheaper way is taken.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nfsrdma {

/// Any thread.
class ReadCosts {
 public:
  /// Is the next read to show pages? Now and then the one that lost, since things change.
  bool pages_next();
  void copied(std::size_t bytes, std::uint64_t ns) { note(copy_, bytes, ns); }
  void shown(std::size_t bytes, std::uint64_t ns) {
    note(show_, bytes, ns);
    bytes_shown_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// Since the start.
  std::uint64_t bytes_shown() const { return bytes_shown_.load(std::memory_order_relaxed); }
  /// A file that cannot be mapped: the others of its file system cannot either.
  void not_shown(std::size_t bytes);
  /// Was a file of that device found to be on a local file system? The last one found is known.
  bool is_local(dev_t device) const { return local_.load(std::memory_order_relaxed) == device; }
  void note_local(dev_t device) { local_.store(device, std::memory_order_relaxed); }
  /// From now on everything is copied.
  void never_pages() { never_.store(true, std::memory_order_relaxed); }

 private:
  /// Picoseconds a byte; 0: not known.
  using Cost = std::atomic<std::uint32_t>;
  static void note(Cost& cost, std::size_t bytes, std::uint64_t ns);

  Cost copy_{0}, show_{0};
  std::atomic<std::uint32_t> asked_{0};
  std::atomic<bool> never_{false};
  std::atomic<std::uint64_t> bytes_shown_{0};
  std::atomic<dev_t> local_{0};
};

}  // namespace nfsrdma
