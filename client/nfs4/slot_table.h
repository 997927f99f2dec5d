// SPDX-License-Identifier: Apache-2.0
// SlotTable: the client's half of a session's slots (RFC 8881, section 2.10.6.1). Pure: no I/O, no
// waiting.
//
// A slot carries one request at a time. Its sequence id goes up when the server took up a request
// on it, and stays when SEQUENCE itself failed. A request whose answer will never be read leaves
// its slot taken: what the server made of it must be found out first (session.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace nfsrdma::nfs4 {

class SlotTable {
 public:
  /// For a new session: all free, all at their first sequence id.
  void reset(std::uint32_t slots) {
    slots_.assign(slots, {});
    taken_ = 0;
    target_ = slots;
  }
  /// The lowest free slot, so that the server may shrink its table; none: wait.
  std::optional<std::uint32_t> take() {
    for (std::uint32_t i = 0; i < target_; ++i) {
      if (slots_[i].taken) continue;
      slots_[i].taken = true;
      ++taken_;
      return i;
    }
    return std::nullopt;
  }
  /// Whether take() finds one.
  bool any_free() const {
    for (std::uint32_t i = 0; i < target_; ++i) {
      if (!slots_[i].taken) return true;
    }
    return false;
  }
  /// `used`: the server has taken up a request with the slot's sequence id.
  void give_back(std::uint32_t slot, bool used) {
    slots_[slot].taken = false;
    --taken_;
    if (used) ++slots_[slot].sequence;
  }
  /// The sequence id of the request on the slot, or of the next one.
  std::uint32_t sequence(std::uint32_t slot) const { return slots_[slot].sequence; }
  /// The highest slot that is taken: sa_highest_slotid.
  std::uint32_t highest_taken() const {
    for (std::size_t i = slots_.size(); i-- > 1;) {
      if (slots_[i].taken) return static_cast<std::uint32_t>(i);
    }
    return 0;
  }
  /// sr_target_highest_slotid: higher slots are taken no more. Never less than one slot, never more
  /// than the session has.
  void set_highest(std::uint32_t highest) {
    const auto size = static_cast<std::uint32_t>(slots_.size());
    target_ = highest >= size ? size : highest + 1;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t usable() const { return target_; }
  std::uint32_t taken() const { return taken_; }

 private:
  struct Slot {
    std::uint32_t sequence = 1;
    bool taken = false;
  };
  std::vector<Slot> slots_;
  std::uint32_t taken_ = 0;
  std::uint32_t target_ = 0;
};

}  // namespace nfsrdma::nfs4
