// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/open_states.h"

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {
namespace {

constexpr std::size_t kOneLess = SIZE_MAX;  // modulo 2^64

bool stand_against(const Share& one, const Share& other) {
  return (one.access & other.deny) != 0 || (one.deny & other.access) != 0;
}

}  // namespace

// --- finding and forgetting
// -----------------------------------------------------------------------

OpenStates::Answer OpenStates::answer(std::uint64_t number, std::uint32_t seqid) const {
  return {Status::kOk, make_stateid(boot_, number, seqid)};
}

OpenStates::Found OpenStates::find(const Asker& asker, const Stateid& stateid) const {
  if (kind_of(stateid, asker.minor_version) != StateidKind::kOrdinary) return {Status::kBadStateid};
  if (boot_in(stateid) != boot_) return {Status::kStaleStateid};
  Found found;
  std::uint32_t seqid = 0;
  ClientId client = 0;
  if (const auto open = opens_.find(number_in(stateid)); open != opens_.end()) {
    found.open = open->second.get();
    seqid = found.open->seqid;
    client = found.open->owner->client;
  } else if (const auto lock = locks_.find(number_in(stateid)); lock != locks_.end()) {
    found.lock = lock->second.get();
    seqid = found.lock->seqid;
    client = found.lock->owner->client;
  } else {
    // Whatever its seqid is (RFC 8881 8.2.4).
    const RevokedStates::One* revoked = revoked_.find(number_in(stateid));
    const bool its_own = revoked != nullptr && revoked->client == asker.client;
    return {its_own ? Status::kAdminRevoked : Status::kBadStateid};
  }
  if (client != asker.client) return {Status::kBadStateid};
  switch (judge_seqid(stateid.seqid, seqid, asker.minor_version)) {
    case SeqidVerdict::kCurrent:
      return found;
    case SeqidVerdict::kOld:
      return {Status::kOldStateid};
    case SeqidVerdict::kFuture:
      break;
  }
  return {Status::kBadStateid};
}

ClientId OpenStates::client_of(const Stateid& stateid) const {
  const OwnerRef found = find_owner(stateid);
  if (found.owner != nullptr) return found.owner->client;
  const RevokedStates::One* revoked = find_revoked(stateid);
  return revoked != nullptr ? revoked->client : 0;
}

std::optional<OpenStates::OwnerOf> OpenStates::owner_of(const Stateid& stateid) const {
  const OwnerRef found = find_owner(stateid);
  if (found.owner != nullptr) return OwnerOf{found.owner->client, found.owner->name, found.locks};
  // The sequence of its owner goes on.
  const RevokedStates::One* revoked = find_revoked(stateid);
  if (revoked == nullptr) return std::nullopt;
  return OwnerOf{revoked->client, revoked->owner, revoked->locks};
}

OpenStates::OwnerRef OpenStates::find_owner(const Stateid& stateid) const {
  if (boot_in(stateid) != boot_) return {};
  const StateNumber number = number_in(stateid);
  if (const auto open = opens_.find(number); open != opens_.end()) {
    return {open->second->owner, false};
  }
  const auto lock = locks_.find(number);
  return lock == locks_.end() ? OwnerRef{} : OwnerRef{lock->second->owner, true};
}

const RevokedStates::One* OpenStates::find_revoked(const Stateid& stateid) const {
  return boot_in(stateid) == boot_ ? revoked_.find(number_in(stateid)) : nullptr;
}

OpenStates::Answer OpenStates::open_confirm(const Asker& asker, const Stateid& stateid) {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return {found.status};
  if (found.open == nullptr) return {Status::kBadStateid};
  found.open->seqid = next_seqid(found.open->seqid);
  return answer(found.open->number, found.open->seqid);
}

std::vector<FileKey> OpenStates::end_open_owner(ClientId client, const std::string& name) {
  std::vector<FileKey> files;
  const auto its = open_owners_.find({client, name});
  if (its == open_owners_.end()) return files;
  const std::set<std::uint64_t> states = its->second->states;
  for (const std::uint64_t number : states) {
    OpenState& open = *opens_.at(number);
    files.push_back(open.file->key);
    end(open);
  }
  return files;
}

bool OpenStates::has_owner(ClientId client, const std::string& name, bool locks) const {
  return (locks ? lock_owners_ : open_owners_).contains({client, name});
}

bool OpenStates::is_of_another(const Stateid& stateid, const FileKey& file) const {
  if (boot_in(stateid) != boot_) return false;
  if (const auto open = opens_.find(number_in(stateid)); open != opens_.end()) {
    return open->second->file->key != file;
  }
  if (const auto lock = locks_.find(number_in(stateid)); lock != locks_.end()) {
    return lock->second->open->file->key != file;
  }
  const RevokedStates::One* revoked = find_revoked(stateid);
  return revoked != nullptr && revoked->file != file;
}

void OpenStates::undo(const Answer& opened, const Share& share) {
  const auto found = opens_.find(number_in(opened.stateid));
  if (found == opens_.end()) return;
  OpenState& open = *found->second;
  if (!open.file->shares.undo(open.number, share)) {
    end(open);
  } else if (open.seqid == opened.stateid.seqid) {
    // Else somebody was told of a later one, in which this one is counted.
    open.seqid = seqid_before(open.seqid);
  }
}

StateOwner& OpenStates::owner(Owners& owners, ClientId client, const std::string& name) {
  std::unique_ptr<StateOwner>& slot = owners[{client, name}];
  if (slot == nullptr) {
    slot = std::make_unique<StateOwner>();
    slot->id = ++last_owner_;
    slot->client = client;
    slot->name = name;
  }
  return *slot;
}

void OpenStates::forget_if_unused(Owners& owners, StateOwner& owner) {
  if (!owner.states.empty()) return;
  lock_owner_of_id_.erase(owner.id);
  owners.erase(OwnerName{owner.client, owner.name});
}

void OpenStates::end(LockState& lock) {
  StateOwner& owner = *lock.owner;
  FileState& file = *lock.open->file;
  const std::size_t before = file.locks.held().size();
  file.locks.release(owner.id);
  if (file.locks.held().size() != before) unlocked_.insert(file.key);
  count_locks(owner, file, before);
  file.lock_states.erase(owner.id);
  lock.open->lock_states.erase(&lock);
  owner.states.erase(lock.number);
  count(owner.client, &Held::lock_states, kOneLess);
  --all_.lock_states;
  locks_.erase(lock.number);
  forget_if_unused(lock_owners_, owner);
}

void OpenStates::end(OpenState& open) {
  while (!open.lock_states.empty())
    end(**open.lock_states.begin());
  StateOwner& owner = *open.owner;
  FileState& file = *open.file;
  file.shares.close(open.number);
  file.opens.erase(owner.id);
  owner.states.erase(open.number);
  if (--file.clients[owner.client] == 0) {
    file.clients.erase(owner.client);
    count(owner.client, &Held::files, kOneLess);
  }
  count(owner.client, &Held::opens, kOneLess);
  --all_.opens;
  opens_.erase(open.number);
  forget_if_unused(open_owners_, owner);
  if (file.opens.empty()) {
    files_.erase(FileKey(file.key));
    --all_.files;
  }
}

std::set<FileKey> OpenStates::end_client(ClientId client) {
  std::set<FileKey> files;
  while (true) {
    const auto its = open_owners_.lower_bound({client, std::string()});
    if (its == open_owners_.end() || its->first.first != client) break;
    OpenState& open = *opens_.at(*its->second->states.begin());
    files.insert(open.file->key);
    end(open);
  }
  NFSRDMA_CHECK(holds(client) == 0);
  hosts_.erase(client);
  revoked_.end_client(client);
  return files;
}

std::map<ClientId, OpenStates::Lost> OpenStates::revoke_file(
    const FileKey& key, const std::function<bool(ClientId)>& has_stateids, TimePoint now) {
  std::map<ClientId, Lost> lost;
  const auto found = files_.find(key);
  if (found == files_.end()) return lost;
  for (const ByteRangeLocks::Held& held : found->second->locks.held())
    ++lost[lock_owner_of_id_.at(held.owner)->client].locks;
  std::vector<OpenState*> opens;
  for (const auto& [owner, open] : found->second->opens)
    opens.push_back(open);
  for (OpenState* open : opens) {
    const StateOwner& its_owner = *open->owner;
    const bool remembers = has_stateids(its_owner.client);
    if (remembers || open->file->shares.share(open->number) != Share{})
      ++lost[its_owner.client].opens;
    const StateNumber number = open->number;
    std::vector<std::pair<StateNumber, RevokedStates::One>> gone;
    if (remembers) {
      gone.emplace_back(number,
                        RevokedStates::One{its_owner.client, key, its_owner.name, false, number});
      for (const LockState* lock : open->lock_states) {
        gone.emplace_back(lock->number, RevokedStates::One{lock->owner->client, key,
                                                           lock->owner->name, true, number});
      }
    }
    end(*open);
    for (auto& [one, what] : gone)
      revoked_.add(one, std::move(what), now);
  }
  return lost;
}

void OpenStates::note_told(const Stateid& stateid) {
  if (find_revoked(stateid) != nullptr) revoked_.note_told(number_in(stateid));
}

/// With `name` one of its open-owners, or null.
OpenState* OpenStates::find_open(ClientId client, const std::string& name,
                                 const FileKey& key) const {
  const auto its_owner = open_owners_.find({client, name});
  const auto file = files_.find(key);
  if (its_owner == open_owners_.end() || file == files_.end()) return nullptr;
  const auto open = file->second->opens.find(its_owner->second->id);
  return open == file->second->opens.end() ? nullptr : open->second;
}

StateNumber OpenStates::next_number(ClientId client) {
  return next_state_number(
      StateNumberKind::kOpenOrLock, client, &last_count_, [this](StateNumber number) {
        return opens_.contains(number) || locks_.contains(number) || revoked_.contains(number);
      });
}

// --- opens
// ----------------------------------------------------------------------------------------

OpenStates::Answer OpenStates::open(const Asker& asker, const std::string& name, const FileKey& key,
                                    const Share& share, Claim claim) {
  return valid(share) ? open_any(asker, name, key, share, claim) : Answer{Status::kInvalid};
}

OpenStates::Answer OpenStates::open_any(const Asker& asker, const std::string& name,
                                        const FileKey& key, const Share& share, Claim claim) {
  OpenState* open = find_open(asker.client, name, key);
  Limit met = open == nullptr ? check_states(asker.client, claim) : Limit::kNone;
  if (met == Limit::kNone && !files_.contains(key)) met = check_files(asker.client, claim);
  if (met != Limit::kNone) return {Status::kResource, {}, met};
  std::unique_ptr<FileState>& file = files_[key];
  if (file == nullptr) {
    file = std::make_unique<FileState>(key);
    ++all_.files;
  }
  StateOwner& its_owner = owner(open_owners_, asker.client, name);
  const StateNumber number = open != nullptr ? open->number : next_number(asker.client);
  if (!file->shares.open(number, share)) {
    forget_if_unused(open_owners_, its_owner);
    return {Status::kShareDenied};  // so somebody has it open, and it stays
  }
  if (open == nullptr) {
    auto made = std::make_unique<OpenState>();
    made->number = number;
    made->owner = &its_owner;
    made->file = file.get();
    open = made.get();
    opens_[number] = std::move(made);
    its_owner.states.insert(number);
    file->opens[its_owner.id] = open;
    if (++file->clients[asker.client] == 1) count(asker.client, &Held::files, 1);
    count(asker.client, &Held::opens, 1);
    ++all_.opens;
  }
  open->seqid = next_seqid(open->seqid);
  return answer(open->number, open->seqid);
}

OpenStates::Answer OpenStates::open_downgrade(const Asker& asker, const Stateid& stateid,
                                              const Share& share) {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return {found.status};
  if (found.open == nullptr) return {Status::kBadStateid};
  OpenState& open = *found.open;
  if (open.file->shares.downgrade(open.number, share) != ShareReservations::Downgrade::kDone) {
    return {Status::kInvalid};
  }
  open.seqid = next_seqid(open.seqid);
  return answer(open.number, open.seqid);
}

OpenStates::Answer OpenStates::close(const Asker& asker, const Stateid& stateid) {
  const Found found = find(asker, stateid);
  if (found.status != Status::kOk) return {found.status};
  if (found.open == nullptr) return {Status::kBadStateid};
  const std::uint64_t number = found.open->number;
  const std::uint32_t seqid = next_seqid(found.open->seqid);
  end(*found.open);
  if (asker.minor_version == 0) return answer(number, seqid);
  return {Status::kOk, Stateid{UINT32_MAX, {}}};
}

std::set<ClientId> OpenStates::in_the_way(const Asker& asker, const FileKey& key,
                                          const Share& share) const {
  std::set<ClientId> clients;
  const auto file = files_.find(key);
  if (file == files_.end()) return clients;
  const ShareReservations& shares = file->second->shares;
  if (!stand_against(share, shares.together())) return clients;
  for (const auto& [owner_id, open] : file->second->opens) {
    const ClientId client = open->owner->client;
    if (client != asker.client && stand_against(share, shares.share(open->number)))
      clients.insert(client);
  }
  return clients;
}

bool OpenStates::is_written(const FileKey& key) const {
  const auto file = files_.find(key);
  if (file == files_.end()) return false;
  const Share share = file->second->shares.together();
  return (share.access & kShareWrite) != 0 || (share.deny & kShareRead) != 0;
}

bool OpenStates::is_writing_denied(const Asker& asker, const std::string& owner,
                                   const FileKey& key) const {
  const auto file = files_.find(key);
  if (file == files_.end()) return false;
  const OpenState* own = find_open(asker.client, owner, key);
  return !file->second->shares.allows(kShareWrite, own != nullptr ? own->number : kNobody);
}

bool OpenStates::is_open_by_others(ClientId client, const FileKey& key) const {
  const auto file = files_.find(key);
  if (file == files_.end()) return false;
  const auto& clients = file->second->clients;
  return clients.size() > (clients.contains(client) ? 1 : 0);
}

// --- stateids
// -------------------------------------------------------------------------------------

OpenStates::Status OpenStates::may_access(const Asker& asker, const Stateid& stateid,
                                          const FileKey& key, std::uint8_t access) const {
  const StateidKind kind = kind_of(stateid, asker.minor_version);
  if (kind == StateidKind::kAnonymous || kind == StateidKind::kReadBypass) {
    if (kind == StateidKind::kReadBypass && access == kShareRead) return Status::kOk;
    const auto file = files_.find(key);
    const bool free = file == files_.end() || file->second->shares.allows(access);
    return free ? Status::kOk : Status::kLocked;
  }
  const Found found = find(asker, stateid);
  if (found.status == Status::kAdminRevoked && is_of_another(stateid, key))
    return Status::kBadStateid;
  if (found.status != Status::kOk) return found.status;
  const OpenState& open = found.open != nullptr ? *found.open : *found.lock->open;
  if (open.file->key != key) return Status::kBadStateid;
  const std::uint8_t may = open.file->shares.share(open.number).access;
  if ((access & kShareWrite) != 0 && (may & kShareWrite) == 0) return Status::kOpenMode;
  // Who opened for writing may read, to fill a page, but not what others have denied reading.
  if ((access & ~may) != 0 && !open.file->shares.allows(access, open.number))
    return Status::kLocked;
  return Status::kOk;
}

OpenStates::Status OpenStates::test(const Asker& asker, const Stateid& stateid) const {
  return find(asker, stateid).status;
}

OpenStates::Status OpenStates::free(const Asker& asker, const Stateid& stateid) {
  const Found found = find(asker, stateid);
  if (found.status == Status::kAdminRevoked) {
    revoked_.forget(number_in(stateid));
    return Status::kOk;
  }
  if (found.status != Status::kOk) return found.status;
  if (found.open != nullptr) return Status::kLocksHeld;
  if (found.lock->open->file->locks.holds_any(found.lock->owner->id)) return Status::kLocksHeld;
  end(*found.lock);
  return Status::kOk;
}

}  // namespace nfsrdma::nfs4
