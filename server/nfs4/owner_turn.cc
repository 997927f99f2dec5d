// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/owner_turn.h"

#include <cstring>

#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

constexpr auto kOpenNumber = static_cast<std::uint32_t>(xdr::nfs_opnum4::OP_OPEN);

/// Owners of others have no sequences, and none is begun in their name: one that is begun anew ends
/// what the owner has open.
bool has_sequences(ServerState& state, ClientId id) {
  const Client* client = state.clients.find(id);
  return client != nullptr && speaks_4_0(*client);
}

/// The owner of a stateid, as far as it is known; else who closed it last.
std::optional<TurnOf> by_stateid(Compound& compound, const xdr::stateid4& wire, OwnerKind kind,
                                 std::uint32_t seqid) {
  const Stateid stateid = from_wire(wire);
  ServerState& state = compound.state();
  if (const auto owner = state.opens.owner_of(stateid)) {
    if (owner->locks != (kind == OwnerKind::kLock)) return std::nullopt;
    if (!has_sequences(state, owner->client)) return std::nullopt;
    return TurnOf{{owner->client, kind, owner->name}, seqid};
  }
  if (kind == OwnerKind::kLock) return std::nullopt;
  const OwnerKey* closed = state.owner_sequences.closed_by(stateid);
  if (closed == nullptr) return std::nullopt;
  return TurnOf{*closed, seqid};
}

/// For one more owner of the client.
void make_room(ServerState& state, ClientId client) {
  OwnerSequences& all = state.owner_sequences;
  const auto in_use = [&state](const OwnerKey& key) {
    return state.opens.has_owner(key.client, key.name, key.kind == OwnerKind::kLock);
  };
  if (all.is_full() || all.is_full(client)) all.forget_idle(client, in_use);
  if (all.is_full()) all.forget_idle_of_any(in_use);
}

}  // namespace

std::optional<TurnOf> turn_of(Compound& compound, const xdr::OPEN4args& args) {
  ServerState& state = compound.state();
  if (!has_sequences(state, args.owner.clientid)) return std::nullopt;
  return TurnOf{{args.owner.clientid, OwnerKind::kOpen, text_of(args.owner.owner)}, args.seqid};
}
std::optional<TurnOf> turn_of(Compound& compound, const xdr::OPEN_CONFIRM4args& args) {
  return by_stateid(compound, args.open_stateid, OwnerKind::kOpen, args.seqid);
}
std::optional<TurnOf> turn_of(Compound& compound, const xdr::OPEN_DOWNGRADE4args& args) {
  return by_stateid(compound, args.open_stateid, OwnerKind::kOpen, args.seqid);
}
std::optional<TurnOf> turn_of(Compound& compound, const xdr::CLOSE4args& args) {
  return by_stateid(compound, args.open_stateid, OwnerKind::kOpen, args.seqid);
}
std::optional<TurnOf> turn_of(Compound& compound, const xdr::LOCK4args& args) {
  const xdr::locker4& locker = args.locker;
  if (locker.new_lock_owner) {
    return by_stateid(compound, locker.open_owner.open_stateid, OwnerKind::kOpen,
                      locker.open_owner.open_seqid);
  }
  return by_stateid(compound, locker.lock_owner.lock_stateid, OwnerKind::kLock,
                    locker.lock_owner.lock_seqid);
}
std::optional<TurnOf> turn_of(Compound& compound, const xdr::LOCKU4args& args) {
  return by_stateid(compound, args.lock_stateid, OwnerKind::kLock, args.seqid);
}

void OwnerTurn::begin(const TurnOf& turn) {
  ServerState& state = compound_.state();
  if (state.owner_sequences.find(turn.owner) == nullptr) make_room(state, turn.owner.client);
  SequencedOwner* owner = state.owner_sequences.get(turn.owner);
  what_ = What::kRefuse;
  if (owner == nullptr) {
    status_ = NFS4ERR_RESOURCE;
    const bool its_own = state.owner_sequences.is_full(turn.owner.client);
    state.refusals.refused(its_own ? Limit::kOwnersOfClient : Limit::kOwners,
                           state.clients.find(turn.owner.client), compound_.peer_text(),
                           state.now());
    return;
  }
  if (owner->running) {  // over another connection; no client has two requests of one owner
    status_ = NFS4ERR_DELAY;
    return;
  }
  // An owner that was never confirmed starts over, and what it opened is gone (RFC 7530 16.18.5).
  if (operation_ == kOpenNumber && !owner->confirmed && owner->sequence.used() &&
      !owner->sequence.is_retry(turn.seqid, operation_)) {
    for (const FileKey& file : state.opens.end_open_owner(turn.owner.client, turn.owner.name))
      state.let_go_of(file);
    if (Client* client = state.clients.find(turn.owner.client)) state.count_holds(*client);
    state.owner_sequences.start_over(*owner);
  }
  switch (owner->sequence.begin(turn.seqid, operation_)) {
    case OwnerSequence::Verdict::kNew:
      what_ = What::kRun;
      owner->running = true;
      key_ = turn.owner;
      generation_ = owner->generation;
      seqid_ = turn.seqid;
      return;
    case OwnerSequence::Verdict::kBad:
      status_ = NFS4ERR_BAD_SEQID;
      return;
    case OwnerSequence::Verdict::kReplay:
      break;
  }
  what_ = What::kReplay;
  const auto kept = owner->sequence.reply();
  reply_.assign(kept.begin(), kept.end());
  status_ = static_cast<nfsstat4>(xdr::Decoder(reply_).u32());
  if (operation_ != kOpenNumber || status_ != NFS4_OK) return;
  CurrentHandle handle;
  if (!compound_.server().handles.open(owner->opened.bytes(), &handle.parts)) return;
  handle.kind = CurrentHandle::Kind::kObject;
  handle.handle = owner->opened;
  handle.object.file = state.held_file(handle.handle.bytes());  // CLOSE and its kin look no further
  compound_.current = std::move(handle);
}

/// With the mutex; null when it has been forgotten meanwhile, with its client or alone, and be it
/// that there is another of the name.
SequencedOwner* OwnerTurn::owner() {
  SequencedOwner* its = key_ ? compound_.state().owner_sequences.find(*key_) : nullptr;
  return its != nullptr && its->generation == generation_ ? its : nullptr;
}

OwnerTurn::~OwnerTurn() {
  if (!key_) return;
  std::lock_guard lock(compound_.state().mutex);
  if (SequencedOwner* its = owner()) {
    its->running = false;
    its->sequence.finish(false, {});
  }
}

void OwnerTurn::finish(nfsstat4 status, std::span<const std::byte> reply) {
  if (!key_) return;
  std::lock_guard lock(compound_.state().mutex);
  if (SequencedOwner* its = owner()) {
    its->running = false;
    its->sequence.finish(counts_in_sequence(static_cast<std::uint32_t>(status)), reply);
    if (operation_ == kOpenNumber && status == NFS4_OK) {
      its->opened = compound_.current.handle;
      compound_.note_turn(*key_, generation_, seqid_);
    }
  }
  key_.reset();
}

}  // namespace nfsrdma::nfs4
