// SPDX-License-Identifier: Apache-2.0
// SendRing: what is on one queue pair's send queue, in order. Adapters report nothing for
// unsignalled work that succeeded, leave out the opcode of work that failed, and siw reports a Send
// before the RDMA Read in front of it; the seam promises posting order. The ring knows what was
// posted, holds early reports back, and counts the room left. Pure: tested without a device.
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
    bool signaled = true;   // as the user wants it
    bool internal = false;  // the queue pair's own: nobody hears of it
    bool bind = false;      // of a memory window, internal as well
    // Filled in by complete().
    bool done = false;
    WorkStatus status = WorkStatus::kSuccess;

    bool reported() const { return !internal && (signaled || status != WorkStatus::kSuccess); }
    /// Is the adapter told to report it? Reads always: they alone may end after what follows them.
    bool adapter_reports() const { return signaled || opcode == WorkOpcode::kRead; }
  };

  /// Binds of memory windows have `binds` places of their own.
  explicit SendRing(std::uint32_t depth, std::uint32_t binds = 0)
      : depth_(depth), bind_depth_(binds), entries_(std::bit_ceil(depth + binds)) {}

  std::uint32_t places() const { return depth_ + bind_depth_; }
  std::uint32_t outstanding() const { return next_ - oldest_; }
  std::uint32_t room() const { return depth_ - (outstanding() - binds_); }
  std::uint32_t bind_room() const { return bind_depth_ - binds_; }
  /// Was it posted, and is not known to have ended?
  bool is_outstanding(std::uint32_t sequence) const { return sequence - oldest_ < outstanding(); }
  /// The number that the next entry gets.
  std::uint32_t next() const { return next_; }
  /// room() must be there.
  void push(std::uint64_t wr_id, WorkOpcode opcode, bool signaled) {
    at(next_++) = {wr_id, opcode, signaled, false, false, false, WorkStatus::kSuccess};
  }
  void push_internal(WorkOpcode opcode) {
    at(next_++) = {0, opcode, true, true, false, false, WorkStatus::kSuccess};
  }
  /// bind_room() must be there. Its success shows by that of later work.
  void push_bind() {
    at(next_++) = {0, WorkOpcode::kSend, false, true, true, false, WorkStatus::kSuccess};
    ++binds_;
  }
  /// Takes back what the adapter refused, newest first.
  void unpush(std::uint32_t count) {
    for (; count > 0; --count) {
      if (at(--next_).bind) --binds_;
    }
  }

  /// The adapter reports `sequence`. False for late and repeated reports, which change nothing.
  bool complete(std::uint32_t sequence, WorkStatus status) {
    if (sequence - oldest_ >= outstanding() || at(sequence).done) return false;
    at(sequence).done = true;
    at(sequence).status = status;
    if (sequence - oldest_ >= known_ - oldest_ || known_ - oldest_ > outstanding()) {
      known_ = sequence + 1;
    }
    return true;
  }
  /// The oldest entry when it has ended, in posting order; false when it has not (or none is left).
  bool pop_ended(Entry* entry) {
    if (outstanding() == 0) return false;
    const Entry& oldest = at(oldest_);
    const bool something_later_ended = known_ - oldest_ - 1 < outstanding();
    if (!oldest.done && (oldest.adapter_reports() || !something_later_ended)) return false;
    *entry = pop();
    return true;
  }
  /// The oldest entry, ended or not; outstanding() must be above 0.
  Entry pop() {
    const Entry& oldest = at(oldest_++);
    if (oldest.bind) --binds_;
    return oldest;
  }
  /// Will the newest entry report its success?
  bool newest_is_signaled() const { return outstanding() == 0 || at(next_ - 1).adapter_reports(); }

 private:
  Entry& at(std::uint32_t sequence) { return entries_[sequence & (entries_.size() - 1)]; }
  const Entry& at(std::uint32_t sequence) const {
    return entries_[sequence & (entries_.size() - 1)];
  }

  std::uint32_t depth_;
  std::uint32_t bind_depth_;
  std::uint32_t binds_ = 0;  // outstanding
  std::vector<Entry> entries_;
  std::uint32_t next_ = 0;
  std::uint32_t oldest_ = 0;
  std::uint32_t known_ = 0;  // one behind the newest entry that was reported
};

}  // namespace nfsrdma::verbs
