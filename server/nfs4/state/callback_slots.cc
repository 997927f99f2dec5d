// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/callback_slots.h"

#include <algorithm>

namespace nfsrdma::nfs4 {

CallbackSlots::CallbackSlots(std::uint32_t offered)
    : slots_(std::clamp(offered, 1u, kMost)), usable_(static_cast<std::uint32_t>(slots_.size())) {}

std::optional<CallbackSlots::Ticket> CallbackSlots::take() {
  for (SlotId i = 0; i < usable_; ++i) {
    Slot& slot = slots_[i];
    if (slot.taken) continue;
    slot.taken = true;
    ++in_use_;
    SlotId highest = 0;
    for (SlotId j = 0; j < slots_.size(); ++j) {
      if (slots_[j].taken) highest = j;
    }
    return Ticket{i, slot.last + 1, highest};
  }
  return std::nullopt;
}

void CallbackSlots::release(Slot& slot) {
  slot.taken = false;
  --in_use_;
}

void CallbackSlots::succeeded(const Ticket& ticket, SlotId target_highest) {
  Slot& slot = slots_.at(ticket.slot);
  slot.last = slot.known = ticket.sequence;
  release(slot);
  const auto most = static_cast<std::uint32_t>(slots_.size());
  usable_ = target_highest >= most ? most : target_highest + 1;
}

void CallbackSlots::gave_up(const Ticket& ticket) {
  Slot& slot = slots_.at(ticket.slot);
  slot.last = ticket.sequence;
  release(slot);
}

CallbackSlots::Next CallbackSlots::refused(Ticket* ticket, Refusal why) {
  Slot& slot = slots_.at(ticket->slot);
  switch (why) {
    case Refusal::kDelay:
      return Next::kLater;
    case Refusal::kMisordered:
      // Differences, since sequence ids wrap around.
      if (ticket->sequence - slot.known > 1) {
        --ticket->sequence;
        return Next::kAgain;
      }
      if (ticket->sequence == 1) break;
      // The client has begun anew without telling: as it would have after CREATE_SESSION.
      ticket->sequence = 1;
      slot.known = 0;
      return Next::kAgain;
    case Refusal::kBadSlot:
      release(slot);
      if (ticket->slot == 0) return Next::kLost;
      usable_ = std::min(usable_, ticket->slot);
      return Next::kOtherSlot;
    case Refusal::kOther:
      break;
  }
  release(slot);
  return Next::kLost;
}

}  // namespace nfsrdma::nfs4
