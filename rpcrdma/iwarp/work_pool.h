// SPDX-License-Identifier: Apache-2.0
// Posted work requests. Entries come from a pool that all connections of a loop share, so that an
// idle connection holds none and the busy path does not allocate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "rpcrdma/fabric.h"

namespace nfsrdma::iwarp {

inline constexpr std::uint32_t kMaxSge = 16;

struct WorkEntry {
  WorkEntry* next_posted = nullptr;  // in posting order, until complete
  WorkEntry* next_ready = nullptr;   // in the one other queue it is on
  std::uint64_t wr_id = 0;
  std::uint64_t remote_offset = 0;
  std::uint64_t sink_offset = 0;
  std::uint32_t remote_handle = 0;
  std::uint32_t sink_stag = 0;
  std::uint32_t length = 0;
  std::uint32_t msn = 0;
  std::uint32_t cut = 0;           // payload bytes cut into FPDUs
  std::uint32_t fpdu_payload = 0;  // how much each FPDU takes
  std::uint32_t received = 0;      // Read: bytes of the response
  WorkOpcode opcode = WorkOpcode::kSend;
  WorkStatus status = WorkStatus::kFlushed;
  bool signaled = true;
  bool fence = false;
  bool done = false;
  bool internal = false;  // the engine's own (RTR, nudge): never reported
  std::uint8_t sge_count = 0;
  std::array<Sge, kMaxSge> sges;
};

class WorkPool {
 public:
  WorkEntry* take() {
    if (free_ == nullptr) grow();
    WorkEntry* entry = free_;
    free_ = entry->next_posted;
    return entry;
  }
  void give(WorkEntry* entry) {
    entry->next_posted = free_;
    free_ = entry;
  }

 private:
  static constexpr std::size_t kChunk = 32;
  void grow() {
    chunks_.push_back(std::make_unique<WorkEntry[]>(kChunk));
    for (std::size_t i = 0; i < kChunk; ++i)
      give(&chunks_.back()[i]);
  }
  std::vector<std::unique_ptr<WorkEntry[]>> chunks_;
  WorkEntry* free_ = nullptr;
};

/// First in, first out, linked through one member of the entry.
template <WorkEntry* WorkEntry::*Next>
class WorkQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  WorkEntry* front() const { return head_; }
  void push(WorkEntry* entry) {
    entry->*Next = nullptr;
    if (head_ == nullptr) {
      head_ = entry;
    } else {
      tail_->*Next = entry;
    }
    tail_ = entry;
  }
  WorkEntry* pop() {
    WorkEntry* entry = head_;
    head_ = entry->*Next;
    return entry;
  }
  void clear() { head_ = nullptr; }

 private:
  WorkEntry* head_ = nullptr;
  WorkEntry* tail_ = nullptr;
};

}  // namespace nfsrdma::iwarp
