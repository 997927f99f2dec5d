// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/delegation_table.h"

#include <algorithm>
#include <utility>

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr std::uint32_t kSeqid = 1;  // a delegation never changes
constexpr std::size_t kMostWanted = 1024;

}  // namespace

bool DelegationTable::is_one(const Stateid& stateid) {
  return kind_in(number_in(stateid)) == StateNumberKind::kDelegation;
}

Stateid DelegationTable::stateid_of(const Delegation& delegation) const {
  return make_stateid(boot_, delegation.number, kSeqid);
}

bool DelegationTable::may_grant(ClientId client, const FileKey& file, Delegation::Kind kind,
                                TimePoint now) const {
  if (live_ >= limits_.all) return false;
  if (const auto its = by_client_.find(client); its != by_client_.end()) {
    if (its->second.live.size() >= limits_.per_client ||
        its->second.revoked.size() >= limits_.revoked_per_client) {
      return false;
    }
  }
  const auto wanted = wanted_by_others_.find(file);
  if (wanted != wanted_by_others_.end() && now < wanted->second) return false;
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return true;
  if (kind == Delegation::Kind::kWrite) return false;  // it stands alone
  for (const DelegationNumber number : held->second) {
    const Delegation& other = all_.at(number);
    if (other.client == client || other.kind == Delegation::Kind::kWrite ||
        other.phase != Delegation::Phase::kHeld) {
      return false;
    }
  }
  return true;
}

const Delegation& DelegationTable::grant(ClientId client, const FileKey& file,
                                         Delegation::Kind kind, std::vector<std::byte> handle) {
  const DelegationNumber number =
      next_state_number(StateNumberKind::kDelegation, client, &last_count_,
                        [this](StateNumber one) { return all_.contains(one); });
  Delegation& made = all_[number];
  made.number = number;
  made.client = client;
  made.file = file;
  made.kind = kind;
  made.handle = std::move(handle);
  by_file_[file].insert(number);
  by_client_[client].live.insert(number);
  ++live_;
  return made;
}

void DelegationTable::begin_recall(Delegation& delegation, TimePoint deadline) {
  NFSRDMA_CHECK(delegation.phase == Delegation::Phase::kHeld);
  delegation.phase = Delegation::Phase::kRecalled;
  delegation.deadline = deadline;
  recalled_.insert(delegation.number);
  // Too many to remember: the worst is that one is given and recalled again.
  if (wanted_by_others_.size() >= kMostWanted) wanted_by_others_.clear();
  wanted_by_others_[delegation.file] = deadline;
}

bool DelegationTable::recall(const FileKey& file, ClientId by, Wanted wanted, TimePoint deadline,
                             std::vector<DelegationNumber>* fresh) {
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return false;
  bool any = false;
  for (const DelegationNumber number : held->second) {
    Delegation& delegation = all_.at(number);
    if (!stops(delegation, by, wanted)) continue;
    any = true;
    if (delegation.phase != Delegation::Phase::kHeld) continue;
    begin_recall(delegation, deadline);
    fresh->push_back(number);
  }
  return any;
}

bool DelegationTable::recall_one(DelegationNumber number, TimePoint deadline) {
  const auto found = all_.find(number);
  if (found == all_.end()) return false;
  if (found->second.phase == Delegation::Phase::kRecalled) {
    found->second.deadline = std::min(found->second.deadline, deadline);
  }
  if (found->second.phase != Delegation::Phase::kHeld) return false;
  begin_recall(found->second, deadline);
  return true;
}

/// Nothing is promised any more; who wants the file may have it.
void DelegationTable::leave_file(Delegation& delegation) {
  recalled_.erase(delegation.number);
  --live_;
  const auto its = by_file_.find(delegation.file);
  its->second.erase(delegation.number);
  if (its->second.empty()) by_file_.erase(its);
  by_client_.at(delegation.client).live.erase(delegation.number);
}

void DelegationTable::revoke(Delegation& delegation, TimePoint now, bool by_administrator) {
  leave_file(delegation);
  delegation.phase = Delegation::Phase::kRevoked;
  delegation.by_administrator = by_administrator;
  PerClient& its = by_client_.at(delegation.client);
  its.revoked.insert(delegation.number);
  its.by_administrator += by_administrator ? 1 : 0;
  its.last_revoked = now;
}

std::vector<DelegationNumber> DelegationTable::revoke_file(const FileKey& file, TimePoint now) {
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return {};
  std::vector<DelegationNumber> numbers(held->second.begin(), held->second.end());
  for (const DelegationNumber number : numbers)
    revoke(all_.at(number), now, true);
  return numbers;
}

void DelegationTable::forget_revoked_but(ClientId client, std::size_t most) {
  while (held(client).revoked > most)
    erase(all_.at(*by_client_.at(client).revoked.begin()));
}

std::vector<DelegationNumber> DelegationTable::revoke_due(TimePoint now) {
  std::vector<DelegationNumber> out;
  for (const DelegationNumber number : recalled_) {
    if (now >= all_.at(number).deadline) out.push_back(number);
  }
  for (const DelegationNumber number : out)
    revoke(all_.at(number), now);
  return out;
}

void DelegationTable::erase(Delegation& delegation) {
  const ClientId client = delegation.client;
  PerClient& its = by_client_.at(client);
  if (delegation.phase == Delegation::Phase::kRevoked) {
    its.revoked.erase(delegation.number);
    its.by_administrator -= delegation.by_administrator ? 1 : 0;
  } else {
    leave_file(delegation);
  }
  all_.erase(DelegationNumber(delegation.number));
  if (its.live.empty() && its.revoked.empty()) by_client_.erase(client);
}

const Delegation* DelegationTable::find(DelegationNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second;
}

Delegation* DelegationTable::find(ClientId client, const Stateid& stateid, Status* status) {
  *status = test(client, stateid);
  const auto found = all_.find(number_in(stateid));
  return found == all_.end() || found->second.client != client ? nullptr : &found->second;
}

ClientId DelegationTable::client_of(const Stateid& stateid) const {
  const Delegation* delegation = boot_in(stateid) == boot_ ? find(number_in(stateid)) : nullptr;
  return delegation == nullptr ? 0 : delegation->client;
}

void DelegationTable::forget(DelegationNumber number) {
  erase(all_.at(number));
}

DelegationTable::Status DelegationTable::test(ClientId client, const Stateid& stateid) const {
  if (boot_in(stateid) != boot_) return Status::kStaleStateid;
  const Delegation* delegation = find(number_in(stateid));
  if (delegation == nullptr || delegation->client != client) return Status::kBadStateid;
  switch (judge_seqid(stateid.seqid, kSeqid, 1)) {
    case SeqidVerdict::kOld:
      return Status::kOldStateid;
    case SeqidVerdict::kFuture:
      return Status::kBadStateid;
    case SeqidVerdict::kCurrent:
      break;
  }
  if (delegation->phase != Delegation::Phase::kRevoked) return Status::kOk;
  return delegation->by_administrator ? Status::kAdminRevoked : Status::kRevoked;
}

DelegationTable::Status DelegationTable::give_back(ClientId client, const Stateid& stateid,
                                                   const FileKey& file, DelegationNumber* number) {
  Status status{};
  Delegation* delegation = find(client, stateid, &status);
  if (status != Status::kOk) return status;
  if (delegation->file != file) return Status::kBadStateid;
  *number = delegation->number;
  erase(*delegation);
  return Status::kOk;
}

DelegationTable::Status DelegationTable::free(ClientId client, const Stateid& stateid) {
  Status status{};
  Delegation* delegation = find(client, stateid, &status);
  if (status == Status::kOk) return Status::kLocksHeld;  // it is in use
  if (status != Status::kRevoked && status != Status::kAdminRevoked) return status;
  erase(*delegation);
  return Status::kOk;
}

DelegationTable::Status DelegationTable::may_access(ClientId client, const Stateid& stateid,
                                                    const FileKey& file,
                                                    std::uint8_t access) const {
  if (const Status status = test(client, stateid); status != Status::kOk) return status;
  const Delegation& delegation = all_.at(number_in(stateid));
  if (delegation.file != file) return Status::kBadStateid;
  const bool reads_only = delegation.kind == Delegation::Kind::kRead;
  return reads_only && (access & kShareWrite) != 0 ? Status::kOpenMode : Status::kOk;
}

std::vector<DelegationNumber> DelegationTable::end_client(ClientId client) {
  const auto its = by_client_.find(client);
  if (its == by_client_.end()) return {};
  std::vector<DelegationNumber> live(its->second.live.begin(), its->second.live.end());
  std::vector<DelegationNumber> all(its->second.revoked.begin(), its->second.revoked.end());
  all.insert(all.end(), live.begin(), live.end());
  for (const DelegationNumber number : all)
    erase(all_.at(number));
  return live;
}

bool DelegationTable::has_revoked(ClientId client, TimePoint now) const {
  const auto its = by_client_.find(client);
  return its != by_client_.end() && !its->second.revoked.empty() &&
         now - its->second.last_revoked < kToldOfRevoked;
}

bool DelegationTable::has_revoked_by_administrator(ClientId client, TimePoint now) const {
  const auto its = by_client_.find(client);
  return its != by_client_.end() && its->second.by_administrator != 0 && has_revoked(client, now);
}

std::set<ClientId> DelegationTable::holders(const FileKey& file, ClientId by, Wanted wanted) const {
  std::set<ClientId> out;
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return out;
  for (const DelegationNumber number : held->second) {
    if (const Delegation& one = all_.at(number); stops(one, by, wanted)) out.insert(one.client);
  }
  return out;
}

std::vector<const Delegation*> DelegationTable::of_file(const FileKey& file) const {
  std::vector<const Delegation*> out;
  const auto found = by_file_.find(file);
  if (found == by_file_.end()) return out;
  for (const DelegationNumber number : found->second)
    out.push_back(&all_.at(number));
  return out;
}

bool DelegationTable::has_one(ClientId client, const FileKey& file) const {
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return false;
  return std::any_of(held->second.begin(), held->second.end(),
                     [&](DelegationNumber number) { return all_.at(number).client == client; });
}

void DelegationTable::note_own_change(ClientId client, const FileKey& file, TimePoint until) {
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return;
  for (const DelegationNumber number : held->second) {
    if (Delegation& one = all_.at(number); one.client == client) one.own_change_until = until;
  }
}

const Delegation* DelegationTable::writer(const FileKey& file) const {
  const auto held = by_file_.find(file);
  if (held == by_file_.end()) return nullptr;
  const Delegation& one = all_.at(*held->second.begin());  // the only one, if it is
  return one.kind == Delegation::Kind::kWrite ? &one : nullptr;
}

std::vector<FileKey> DelegationTable::files_of(ClientId client) const {
  std::vector<FileKey> out;
  const auto its = by_client_.find(client);
  if (its == by_client_.end()) return out;
  for (const DelegationNumber number : its->second.live)
    out.push_back(all_.at(number).file);
  return out;
}

DelegationTable::Held DelegationTable::held(ClientId client) const {
  Held out;
  const auto its = by_client_.find(client);
  if (its == by_client_.end()) return out;
  out.live = its->second.live.size();
  out.revoked = its->second.revoked.size();
  out.recalled = static_cast<std::size_t>(
      std::count_if(its->second.live.begin(), its->second.live.end(),
                    [this](DelegationNumber number) { return recalled_.contains(number); }));
  return out;
}

std::size_t DelegationTable::holds(ClientId client) const {
  const auto its = by_client_.find(client);
  return its == by_client_.end() ? 0 : its->second.live.size() + its->second.revoked.size();
}

}  // namespace nfsrdma::nfs4
