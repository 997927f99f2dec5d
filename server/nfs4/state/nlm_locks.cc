// SPDX-License-Identifier: Apache-2.0
// OpenStates' part of NLM (X/Open C702, chapter 14): the locks and shares of hosts that know
// neither opens nor stateids. They stand in the same tables as those of NFSv4, so that each keeps
// the others out.
#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {
namespace {

// The open-owner of all of a host's locks. Those of shares have a letter in front, so that none is
// called so.
const std::string kLocks = "locks";

std::string share_owner(const std::string& owner) {
  return "s" + owner;
}

/// Stateids are not used, so that any minor version will do.
OpenStates::Asker as_asker(ClientId client) {
  return {client, 0};
}

}  // namespace

OpenStates::Answer OpenStates::lock_file(ClientId client, const FileKey& key,
                                         const std::string& name, LockKind kind,
                                         const ByteRange& range, std::optional<Holder>* denied,
                                         Claim claim) {
  OpenState* open = find_open(client, kLocks, key);
  if (open == nullptr) {
    const Answer opened = open_any(as_asker(client), kLocks, key, Share{}, claim);
    if (opened.status != Status::kOk) return opened;
    open = find_open(client, kLocks, key);
  }
  StateOwner& its_owner = owner(lock_owners_, client, name);
  const bool known = open->file->lock_states.contains(its_owner.id);
  Answer locked{Status::kResource, {}, known ? Limit::kNone : check_states(client, claim)};
  if (locked.limit == Limit::kNone) {
    LockState& state = lock_state(*open, its_owner);
    state.access = kShareRead | kShareWrite;  // READ and WRITE ask for the rights
    locked = lock(state, kind, range, denied, claim);
    // What never had a lock leaves nothing behind.
    if (state.seqid == 0) end(state);
  } else {
    forget_if_unused(lock_owners_, its_owner);
  }
  if (open->lock_states.empty()) end(*open);
  return locked;
}

OpenStates::Answer OpenStates::unlock_file(ClientId client, const FileKey& key,
                                           const std::string& name, const ByteRange& range) {
  OpenState* open = find_open(client, kLocks, key);
  const auto its_owner = lock_owners_.find({client, name});
  if (open == nullptr || its_owner == lock_owners_.end()) return {};
  FileState& file = *open->file;
  const auto found = file.lock_states.find(its_owner->second->id);
  if (found == file.lock_states.end()) return {};
  LockState& state = *found->second;
  const std::size_t before = file.locks.held().size();
  const std::size_t room = room_for_locks(*state.owner, before, Claim::kHeld);
  if (file.locks.unlock(state.owner->id, range, room) != ByteRangeLocks::Outcome::kDone) {
    return {Status::kResource, {}, limit_of_locks(*state.owner, before, Claim::kHeld)};
  }
  count_locks(*state.owner, file, before);
  if (!file.locks.holds_any(state.owner->id)) end(state);
  if (open->lock_states.empty()) end(*open);
  return {};
}

bool OpenStates::has_locked(ClientId client, const FileKey& key, const std::string& name) const {
  const auto file = files_.find(key);
  const auto its_owner = lock_owners_.find({client, name});
  return file != files_.end() && its_owner != lock_owners_.end() &&
         file->second->locks.holds_any(its_owner->second->id);
}

OpenStates::Answer OpenStates::share_file(ClientId client, const FileKey& key,
                                          const std::string& name, const Share& share,
                                          Claim claim) {
  const std::string its_owner = share_owner(name);
  OpenState* open = find_open(client, its_owner, key);
  if (open == nullptr) return open_any(as_asker(client), its_owner, key, share, claim);
  // What the owner had does not stand against what it wants now, and stays if others do.
  FileState& file = *open->file;
  const Share before = file.shares.share(open->number);
  file.shares.close(open->number);
  if (file.shares.open(open->number, share)) return {};
  file.shares.open(open->number, before);
  return {Status::kShareDenied};
}

void OpenStates::unshare_file(ClientId client, const FileKey& key, const std::string& name) {
  if (OpenState* open = find_open(client, share_owner(name), key)) end(*open);
}

}  // namespace nfsrdma::nfs4
