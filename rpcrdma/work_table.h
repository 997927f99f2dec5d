// SPDX-License-Identifier: Apache-2.0
// WorkTable: who gets the completion of a work request. A wr_id is kind (8 bits), generation (24)
// and slot (32), never a pointer: a late or doubled completion finds a stale generation and is
// counted, not dereferenced.
#pragma once

#include <cstdint>
#include <vector>

#include "rpcrdma/fabric.h"

namespace nfsrdma {

class WorkOwner {
 public:
  virtual ~WorkOwner() = default;
  /// The work added under `tag` is over; its memory may be reused.
  virtual void on_work_done(std::uint32_t tag, WorkStatus status) = 0;
};

enum class WorkKind : std::uint8_t {
  kReceive = 1,
  kOwned = 2,  // has a slot; its completion goes to the owner
  kLink = 3,   // a link of a chain whose last request is kOwned: reports only failures
};

inline std::uint64_t make_wr_id(WorkKind kind, std::uint32_t generation, std::uint32_t slot) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
         std::uint64_t{generation & 0xffffff} << 32 | slot;
}
inline WorkKind wr_kind(std::uint64_t wr_id) {
  return static_cast<WorkKind>(wr_id >> 56);
}
inline std::uint32_t wr_generation(std::uint64_t wr_id) {
  return (wr_id >> 32) & 0xffffff;
}
inline std::uint32_t wr_slot(std::uint64_t wr_id) {
  return static_cast<std::uint32_t>(wr_id);
}

class WorkTable {
 public:
  /// The wr_id for a request of `owner`. Allocates only while the table grows.
  std::uint64_t add(WorkOwner& owner, std::uint32_t tag) {
    std::uint32_t slot;
    if (free_head_ != kNone) {
      slot = free_head_;
      free_head_ = entries_[slot].next_free;
    } else {
      slot = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({});
    }
    Entry& entry = entries_[slot];
    entry.owner = &owner;
    entry.tag = tag;
    ++outstanding_;
    return make_wr_id(WorkKind::kOwned, entry.generation, slot);
  }

  /// For the links of a chain whose last request has `wr_id`.
  static std::uint64_t link(std::uint64_t wr_id) {
    return make_wr_id(WorkKind::kLink, wr_generation(wr_id), wr_slot(wr_id));
  }

  /// Frees the slot and tells the owner; false when the wr_id is stale.
  bool complete(std::uint64_t wr_id, WorkStatus status) {
    const std::uint32_t slot = wr_slot(wr_id);
    if (slot >= entries_.size() || entries_[slot].owner == nullptr ||
        entries_[slot].generation != wr_generation(wr_id)) {
      return false;
    }
    WorkOwner* owner = entries_[slot].owner;
    const std::uint32_t tag = entries_[slot].tag;
    release(slot);
    owner->on_work_done(tag, status);
    return true;
  }

  /// Drops everything of `owner`; for a queue pair that is gone.
  void forget(const WorkOwner& owner) {
    for (std::uint32_t slot = 0; slot < entries_.size(); ++slot) {
      if (entries_[slot].owner == &owner) release(slot);
    }
  }

  std::size_t outstanding() const { return outstanding_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    WorkOwner* owner = nullptr;
    std::uint32_t tag = 0;
    std::uint32_t generation = 1;
    std::uint32_t next_free = kNone;
  };
  void release(std::uint32_t slot) {
    Entry& entry = entries_[slot];
    entry.owner = nullptr;
    entry.generation = (entry.generation + 1) & 0xffffff;
    entry.next_free = free_head_;
    free_head_ = slot;
    --outstanding_;
  }

  std::vector<Entry> entries_;
  std::uint32_t free_head_ = kNone;
  std::size_t outstanding_ = 0;
};

/// One send queue's budget. What is posted was reserved before.
class SendQueue {
 public:
  explicit SendQueue(std::uint32_t depth) : depth_(depth) {}
  std::uint32_t depth() const { return depth_; }
  std::uint32_t room() const { return depth_ - used_; }
  bool reserve(std::uint32_t entries) {
    if (entries > room()) return false;
    used_ += entries;
    return true;
  }
  void release(std::uint32_t entries) { used_ -= entries; }

 private:
  std::uint32_t depth_;
  std::uint32_t used_ = 0;
};

}  // namespace nfsrdma
