// SPDX-License-Identifier: Apache-2.0
// CallbackSlots: the server's side of the slots of a session's backchannel (RFC 8881 2.10.6): which
// slot and sequence id the next callback takes, and what they are after each end that a callback
// can have. The client's side of the same rules is SlotTable.
//
// A callback without an answer may or may not have been seen by the client. Sent again as it was,
// on whatever connection, it is a retry and harmless. When it is given up, nobody knows where the
// client's slot stands: the next callback takes the sequence id behind it and comes down when the
// client says that this is too high.
//
// Pure: no I/O, no clock. The caller serialises.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/nfs4/state/slot_table.h"

namespace nfsrdma::nfs4 {

class CallbackSlots {
 public:
  /// More than these are not used, whatever the client offers.
  static constexpr std::uint32_t kMost = 16;

  /// `offered`: ca_maxrequests of the backchannel.
  explicit CallbackSlots(std::uint32_t offered);

  /// What a callback has in its CB_SEQUENCE. Held from take() to its end.
  struct Ticket {
    SlotId slot = 0;
    SequenceId sequence = 0;
    SlotId highest = 0;  // csa_highest_slotid: the highest slot in use
  };
  /// Nothing when all slots are in use: wait for an end.
  std::optional<Ticket> take();

  /// CB_SEQUENCE was NFS4_OK. `target_highest`: csr_target_highest_slotid.
  void succeeded(const Ticket& ticket, SlotId target_highest);
  /// No answer will be waited for any more.
  void gave_up(const Ticket& ticket);

  enum class Refusal : std::uint8_t { kDelay, kMisordered, kBadSlot, kOther };
  enum class Next : std::uint8_t {
    kLater,      // the same again in a while
    kAgain,      // the same with the sequence id that now is in *ticket
    kOtherSlot,  // the ticket is used up: take() another
    kLost,       // the ticket is used up, and the channel does not work
  };
  /// CB_SEQUENCE was refused. kOther (NFS4ERR_BADSESSION and the like) is kLost.
  Next refused(Ticket* ticket, Refusal why);

  std::uint32_t in_use() const { return in_use_; }
  /// Slots that may be in use at the same time.
  std::uint32_t usable() const { return usable_; }

 private:
  struct Slot {
    SequenceId last = 0;   // of the last callback
    SequenceId known = 0;  // of the last one that the client is known to have seen
    bool taken = false;
  };
  void release(Slot& slot);

  std::vector<Slot> slots_;
  std::uint32_t usable_;
  std::uint32_t in_use_ = 0;
};

}  // namespace nfsrdma::nfs4
