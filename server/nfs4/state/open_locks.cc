// SPDX-License-Identifier: Apache-2.0
// OpenStates' part of LOCK, LOCKT, LOCKU and RELEASE_LOCKOWNER.
#include "rpcrdma/base/check.h"
#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {
namespace {

/// What it takes to lock so.
std::uint8_t access_for(LockKind kind) {
  return kind == LockKind::kWrite ? kShareWrite : kShareRead;
}

}  // namespace

OpenStates::Holder OpenStates::holder(const ByteRangeLocks::Held& held) const {
  const StateOwner& owner = *lock_owner_of_id_.at(held.owner);
  return {held, owner.client, owner.name};
}

OpenStates::OfFile OpenStates::of_file(const FileKey& key) const {
  OfFile out;
  const auto found = files_.find(key);
  if (found == files_.end()) return out;
  const FileState& file = *found->second;
  for (const auto& [owner, open] : file.opens) {
    const Share share = file.shares.share(open->number);
    // What NLM's locks stand on is nobody's open.
    if (share == Share{}) continue;
    out.opens.push_back({open->owner->client, open->owner->name, share});
  }
  for (const ByteRangeLocks::Held& held : file.locks.held())
    out.locks.push_back(holder(held));
  return out;
}

LockState& OpenStates::lock_state(OpenState& open, StateOwner& its_owner) {
  LockState*& slot = open.file->lock_states[its_owner.id];
  if (slot == nullptr) {
    auto made = std::make_unique<LockState>();
    made->number = next_number(its_owner.client);
    made->owner = &its_owner;
    made->open = &open;
    slot = made.get();
    open.lock_states.insert(slot);
    its_owner.states.insert(slot->number);
    lock_owner_of_id_[its_owner.id] = &its_owner;
    count(its_owner.client, &Held::lock_states, 1);
    ++all_.lock_states;
    locks_[slot->number] = std::move(made);
  }
  slot->access |= open.file->shares.share(open.number).access;
  return *slot;
}

OpenStates::Answer OpenStates::lock(const Asker& asker, const Stateid& stateid,
                                    const std::string& name, LockKind kind, const ByteRange& range,
                                    std::optional<Holder>* denied, Claim claim) {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return {found.status};
  if (found.open == nullptr) return {Status::kBadStateid};
  StateOwner& its_owner = owner(lock_owners_, asker.client, name);
  const bool known = found.open->file->lock_states.contains(its_owner.id);
  const Limit met = known ? Limit::kNone : check_states(asker.client, claim);
  if (met != Limit::kNone) {
    forget_if_unused(lock_owners_, its_owner);
    return {Status::kResource, {}, met};
  }
  LockState& state = lock_state(*found.open, its_owner);
  const Answer locked = lock(state, kind, range, denied, claim);
  // What never had a lock leaves nothing behind.
  if (state.seqid == 0) end(state);
  return locked;
}

OpenStates::Answer OpenStates::lock(const Asker& asker, const Stateid& stateid, LockKind kind,
                                    const ByteRange& range, std::optional<Holder>* denied,
                                    Claim claim) {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return {found.status};
  if (found.lock == nullptr) return {Status::kBadStateid};
  return lock(*found.lock, kind, range, denied, claim);
}

OpenStates::Answer OpenStates::lock(LockState& state, LockKind kind, const ByteRange& range,
                                    std::optional<Holder>* denied, Claim claim) {
  FileState& file = *state.open->file;
  if ((state.access & access_for(kind)) == 0) return {Status::kOpenMode};
  const std::size_t before = file.locks.held().size();
  const std::size_t room = room_for_locks(*state.owner, before, claim);
  switch (file.locks.lock(state.owner->id, kind, range, room)) {
    case ByteRangeLocks::Outcome::kConflict:
      *denied = holder(*file.locks.conflict(state.owner->id, kind, range));
      return {Status::kDenied};
    case ByteRangeLocks::Outcome::kTooMany:
      return {Status::kResource, {}, limit_of_locks(*state.owner, before, claim)};
    case ByteRangeLocks::Outcome::kDone:
      break;
  }
  count_locks(*state.owner, file, before);
  state.seqid = next_seqid(state.seqid);
  return answer(state.number, state.seqid);
}

OpenStates::Status OpenStates::may_lock(const Asker& asker, const Stateid& stateid,
                                        const std::string* name, LockKind kind,
                                        const ByteRange& range,
                                        std::optional<Holder>* denied) const {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return found.status;
  if ((name != nullptr ? found.open == nullptr : found.lock == nullptr)) return Status::kBadStateid;
  const FileState& file = name != nullptr ? *found.open->file : *found.lock->open->file;
  LockOwnerId id = 0;  // no lock has that owner
  std::uint8_t access = 0;
  if (name == nullptr) {
    id = found.lock->owner->id;
    access = found.lock->access;
  } else {
    access = file.shares.share(found.open->number).access;
    const auto its_owner = lock_owners_.find({asker.client, *name});
    if (its_owner != lock_owners_.end()) id = its_owner->second->id;
    const auto state = file.lock_states.find(id);
    if (state != file.lock_states.end()) access |= state->second->access;
  }
  if ((access & access_for(kind)) == 0) return Status::kOpenMode;
  const ByteRangeLocks::Held* held = file.locks.conflict(id, kind, range);
  if (held == nullptr) return Status::kOk;
  *denied = holder(*held);
  return Status::kDenied;
}

std::vector<ByteRangeLocks::Held> OpenStates::locks_in(const FileKey& key,
                                                       const ByteRange& range) const {
  std::vector<ByteRangeLocks::Held> out;
  const auto file = files_.find(key);
  if (file == files_.end()) return out;
  for (const ByteRangeLocks::Held& held : file->second->locks.held()) {
    if (held.range.overlaps(range)) out.push_back(held);
  }
  return out;
}

bool OpenStates::is_locked(const FileKey& key) const {
  const auto file = files_.find(key);
  return file != files_.end() && !file->second->locks.empty();
}

std::optional<OpenStates::Holder> OpenStates::test_lock(const Asker& asker, const std::string& name,
                                                        const FileKey& key, LockKind kind,
                                                        const ByteRange& range) const {
  const auto file = files_.find(key);
  if (file == files_.end()) return std::nullopt;
  const auto its_owner = lock_owners_.find({asker.client, name});
  // No lock has the owner 0.
  const LockOwnerId id = its_owner == lock_owners_.end() ? 0 : its_owner->second->id;
  const ByteRangeLocks::Held* held = file->second->locks.conflict(id, kind, range);
  if (held == nullptr) return std::nullopt;
  return holder(*held);
}

OpenStates::Answer OpenStates::unlock(const Asker& asker, const Stateid& stateid,
                                      const ByteRange& range) {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return {found.status};
  if (found.lock == nullptr) return {Status::kBadStateid};
  LockState& state = *found.lock;
  FileState& file = *state.open->file;
  const std::size_t before = file.locks.held().size();
  const std::size_t room = room_for_locks(*state.owner, before, Claim::kHeld);
  if (file.locks.unlock(state.owner->id, range, room) != ByteRangeLocks::Outcome::kDone) {
    return {Status::kResource, {}, limit_of_locks(*state.owner, before, Claim::kHeld)};
  }
  count_locks(*state.owner, file, before);
  state.seqid = next_seqid(state.seqid);
  return answer(state.number, state.seqid);
}

OpenStates::Status OpenStates::release_lock_owner(const Asker& asker, const std::string& name) {
  const auto found = lock_owners_.find({asker.client, name});
  if (found == lock_owners_.end()) return Status::kOk;
  const StateOwner& its_owner = *found->second;
  for (const std::uint64_t number : its_owner.states) {
    if (locks_.at(number)->open->file->locks.holds_any(its_owner.id)) return Status::kLocksHeld;
  }
  const std::set<std::uint64_t> states = its_owner.states;
  for (const std::uint64_t number : states)
    end(*locks_.at(number));
  return Status::kOk;
}

}  // namespace nfsrdma::nfs4
