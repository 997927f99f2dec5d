// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/awaited_opens.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr auto kOpenNumber = static_cast<std::uint32_t>(xdr::nfs_opnum4::OP_OPEN);

/// The sequence of its owner is where it was before; null when it has none, or none any more.
SequencedOwner* rewind(ServerState& state, const AwaitedOpen& open) {
  SequencedOwner* owner = open.generation != 0 ? state.owner_sequences.find(open.owner) : nullptr;
  if (owner == nullptr || owner->generation != open.generation || owner->running) return nullptr;
  owner->sequence.start(open.seqid - 1);
  return owner;
}

}  // namespace

void AwaitedOpens::undo(ServerState& state, std::uint32_t failed, xdr::nfsstat4 status,
                        std::span<const std::byte> reply) {
  if (opens_.empty()) return;
  std::lock_guard lock(state.mutex);
  // The last one first: each leaves what was there before it.
  for (; !opens_.empty(); opens_.pop_back()) {
    const AwaitedOpen& open = opens_.back();
    if (open.delegation)
      (void)state.delegations.give_back(open.client, *open.delegation, open.file, nullptr);
    state.opens.undo(open.answer, open.share);
    state.let_go_of(open.file);
    if (Client* client = state.clients.find(open.client)) state.count_holds(*client);
    SequencedOwner* owner = rewind(state, open);
    if (owner == nullptr || open.index != failed) continue;
    owner->sequence.begin(open.seqid, kOpenNumber);
    owner->sequence.finish(counts_in_sequence(static_cast<std::uint32_t>(status)), reply);
  }
}

}  // namespace nfsrdma::nfs4
