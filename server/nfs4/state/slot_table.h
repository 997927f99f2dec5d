// SPDX-License-Identifier: Apache-2.0
// SlotTable: exactly-once for one channel of a session (RFC 8881 2.10.6). Each slot runs one
// request at a time and remembers the last one, so that a retry gets the first answer and runs
// nothing.
//
// Pure: no I/O, no clock. The caller serialises; an object lives as long as its session. Replies
// are plain memory of the table's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nfsrdma::nfs4 {

using SlotId = std::uint32_t;
using SequenceId = std::uint32_t;

class SlotTable {
 public:
  /// The first request of each slot has the sequence id behind `before_first`: 1, but in tests.
  explicit SlotTable(std::uint32_t slots, SequenceId before_first = 0)
      : slots_(slots, Slot{before_first, Slot::State::kUnused, 0, {}}) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }

  enum class Verdict : std::uint8_t {
    kNew,         // run it, then finish() the slot
    kInProgress,  // a retry while the request still runs: NFS4ERR_DELAY
    kReplay,      // a retry: answer with reply()
    kUncached,    // a retry of what was not to be kept: SEQUENCE's own result, then
                  // NFS4ERR_RETRY_UNCACHED_REP
    kFalseRetry,  // another request under the last sequence id: NFS4ERR_SEQ_FALSE_RETRY
    kMisordered,  // NFS4ERR_SEQ_MISORDERED
    kBadSlot,     // NFS4ERR_BADSLOT
  };
  /// A request has come. `fingerprint`: of what it asks and as whom; equal requests have equal
  /// ones. Only kNew changes anything.
  Verdict begin(SlotId slot, SequenceId sequence, std::uint64_t fingerprint);
  /// The request that runs in `slot` is done, and its whole answer is kept.
  void finish(SlotId slot, std::span<const std::byte> reply);
  /// It is done; a retry will hear kUncached.
  void finish_uncached(SlotId slot);
  /// Of the request that was finished last, after kReplay; until the slot's next kNew.
  std::span<const std::byte> reply(SlotId slot) const;

  /// The sequence id that a new request in `slot` has to have.
  SequenceId next(SlotId slot) const { return slots_.at(slot).sequence + 1; }

  /// Requests that run. DESTROY_SESSION has to wait for them.
  std::uint32_t running() const { return running_; }
  /// Of all replies that are kept.
  std::size_t reply_bytes() const { return reply_bytes_; }

 private:
  struct Slot {
    enum class State : std::uint8_t { kUnused, kRunning, kCached, kUncached };
    SequenceId sequence = 0;  // of the last request
    State state = State::kUnused;
    std::uint64_t fingerprint = 0;
    std::vector<std::byte> reply;
  };
  Slot& end_of_run(SlotId slot);

  std::vector<Slot> slots_;
  std::uint32_t running_ = 0;
  std::size_t reply_bytes_ = 0;
};

}  // namespace nfsrdma::nfs4
