// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/slot_table.h"

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {

SlotTable::Verdict SlotTable::begin(SlotId slot, SequenceId sequence, std::uint64_t fingerprint) {
  if (slot >= slots_.size()) return Verdict::kBadSlot;
  Slot& s = slots_[slot];
  if (sequence == s.sequence) {
    switch (s.state) {
      case Slot::State::kUnused:
        return Verdict::kMisordered;  // before there was a first request
      case Slot::State::kRunning:
        return Verdict::kInProgress;
      case Slot::State::kCached:
        return s.fingerprint == fingerprint ? Verdict::kReplay : Verdict::kFalseRetry;
      case Slot::State::kUncached:
        return s.fingerprint == fingerprint ? Verdict::kUncached : Verdict::kFalseRetry;
    }
  }
  // The next one shows that the client has the answer to the last: it cannot before we gave it.
  // Sequence ids wrap to 0.
  if (sequence != s.sequence + 1 || s.state == Slot::State::kRunning) return Verdict::kMisordered;
  reply_bytes_ -= s.reply.size();
  s = {sequence, Slot::State::kRunning, fingerprint, {}};
  ++running_;
  return Verdict::kNew;
}

SlotTable::Slot& SlotTable::end_of_run(SlotId slot) {
  Slot& s = slots_.at(slot);
  NFSRDMA_CHECK(s.state == Slot::State::kRunning);
  --running_;
  return s;
}

void SlotTable::finish(SlotId slot, std::span<const std::byte> reply) {
  Slot& s = end_of_run(slot);
  s.state = Slot::State::kCached;
  s.reply.assign(reply.begin(), reply.end());
  reply_bytes_ += reply.size();
}

void SlotTable::finish_uncached(SlotId slot) {
  end_of_run(slot).state = Slot::State::kUncached;
}

std::span<const std::byte> SlotTable::reply(SlotId slot) const {
  const Slot& s = slots_.at(slot);
  NFSRDMA_CHECK(s.state == Slot::State::kCached);
  return s.reply;
}

}  // namespace nfsrdma::nfs4
