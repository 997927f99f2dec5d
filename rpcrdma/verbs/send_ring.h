// SPDX-License-Identifier: Apache-2.0
// SendRing: what is on one queue pair's send queue, in order. Adapters report nothing for
// unsignalled work that succeeded and leave out the opcode of work that failed; the ring knows
// both, and how much room is left. Pure, so that it is tested without a device.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "rpcrdma/fabric.h"

namespace nfsrdma::verbs {

class SendRing {
 public:
  struct Entry {
    std::uint64_t wr_id = 0;
    WorkOpcode opcode = WorkOpcode::kSend;
    bool signaled = true;
  };

  explicit SendRing(std::uint32_t depth) : depth_(depth), entries_(std::bit_ceil(depth)) {}

  std::uint32_t outstanding() const { return next_ - oldest_; }
  std::uint32_t room() const { return depth_ - outstanding(); }
  /// The number that the next entry gets.
  std::uint32_t next() const { return next_; }
  /// room() must be there.
  void push(const Entry& entry) { at(next_++) = entry; }
  /// Takes back what the adapter refused, newest first.
  void unpush(std::uint32_t count) { next_ -= count; }
  /// Is `sequence` on the queue? False for late and repeated completions.
  bool contains(std::uint32_t sequence) const { return sequence - oldest_ < outstanding(); }
  /// Ends everything up to and including `sequence` (which must be contained); returns its entry.
  Entry retire(std::uint32_t sequence) {
    oldest_ = sequence + 1;
    return at(sequence);
  }
  /// Takes the oldest entry; outstanding() must be above 0.
  Entry pop() { return at(oldest_++); }
  /// Will the newest entry report its success?
  bool newest_is_signaled() const { return outstanding() == 0 || at(next_ - 1).signaled; }

 private:
  Entry& at(std::uint32_t sequence) { return entries_[sequence & (entries_.size() - 1)]; }
  const Entry& at(std::uint32_t sequence) const {
    return entries_[sequence & (entries_.size() - 1)];
  }

  std::uint32_t depth_;
  std::vector<Entry> entries_;
  std::uint32_t next_ = 0;
  std::uint32_t oldest_ = 0;
};

}  // namespace nfsrdma::verbs
