// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/owner_sequences.h"

#include <algorithm>

namespace nfsrdma::nfs4 {

SequencedOwner* OwnerSequences::get(const OwnerKey& key) {
  if (SequencedOwner* known = find(key)) return known;
  if (is_full() || is_full(key.client)) return nullptr;
  ++counts_[key.client];
  SequencedOwner& made = owners_[key];
  made.generation = ++last_generation_;
  return &made;
}

void OwnerSequences::start_over(SequencedOwner& owner) {
  closed_.erase(owner.closed);
  owner = SequencedOwner();
  owner.generation = ++last_generation_;
}

bool OwnerSequences::is_full(ClientId client) const {
  const auto count = counts_.find(client);
  return count != counts_.end() && count->second >= most_per_client_;
}

void OwnerSequences::forget_idle(ClientId client,
                                 const std::function<bool(const OwnerKey&)>& in_use) {
  std::vector<OwnerKey> idle;
  for (auto its = owners_.lower_bound(OwnerKeyView{client, OwnerKind::kOpen, {}});
       its != owners_.end() && its->first.client == client; ++its) {
    if (!its->second.running && !in_use(its->first)) idle.push_back(its->first);
  }
  for (const OwnerKey& key : idle)
    forget(key);
}

void OwnerSequences::forget_idle_of_any(const std::function<bool(const OwnerKey&)>& in_use) {
  std::vector<OwnerKey> idle;
  auto its = owners_.upper_bound(looked_at_);
  const std::size_t count = std::min(kLookedAt, owners_.size());
  for (std::size_t i = 0; i < count; ++i, ++its) {
    if (its == owners_.end()) its = owners_.begin();
    if (!its->second.running && !in_use(its->first)) idle.push_back(its->first);
    if (i + 1 == count) looked_at_ = its->first;
  }
  for (const OwnerKey& key : idle)
    forget(key);
}

void OwnerSequences::note_opener(SequencedOwner& owner, const std::string& principal) {
  std::vector<std::string>& openers = owner.openers;
  const bool is_there = std::find(openers.begin(), openers.end(), principal) != openers.end();
  if (!is_there && openers.size() < kMostOpeners) openers.push_back(principal);
}

bool OwnerSequences::has_opener(ClientId client, const std::string& principal,
                                const std::function<bool(const OwnerKey&)>& in_use) const {
  for (auto its = owners_.lower_bound(OwnerKeyView{client, OwnerKind::kOpen, {}});
       its != owners_.end() && its->first.client == client && its->first.kind == OwnerKind::kOpen;
       ++its) {
    const std::vector<std::string>& openers = its->second.openers;
    const bool is_there = openers.size() == kMostOpeners ||
                          std::find(openers.begin(), openers.end(), principal) != openers.end();
    if (is_there && in_use(its->first)) return true;
  }
  return false;
}

SequencedOwner* OwnerSequences::look(const OwnerKeyView& key) {
  const auto found = owners_.find(key);
  return found == owners_.end() ? nullptr : &found->second;
}

const OwnerKey* OwnerSequences::closed_by(const Stateid& stateid) const {
  const auto found = closed_.find(stateid.other);
  return found == closed_.end() ? nullptr : &found->second;
}

void OwnerSequences::note_closed(const OwnerKey& key, const Stateid& stateid) {
  SequencedOwner* owner = find(key);
  if (owner == nullptr) return;
  closed_.erase(owner->closed);
  owner->closed = stateid.other;
  closed_[stateid.other] = key;
}

void OwnerSequences::forget(const OwnerKey& key) {
  const auto found = owners_.find(key);
  if (found == owners_.end()) return;
  closed_.erase(found->second.closed);
  owners_.erase(found);
  const auto count = counts_.find(key.client);
  if (--count->second == 0) counts_.erase(count);
}

void OwnerSequences::end_client(ClientId client) {
  for (auto its = owners_.lower_bound(OwnerKeyView{client, OwnerKind::kOpen, {}});
       its != owners_.end() && its->first.client == client;) {
    closed_.erase(its->second.closed);
    its = owners_.erase(its);
  }
  counts_.erase(client);
}

}  // namespace nfsrdma::nfs4
