// SPDX-License-Identifier: Apache-2.0
// OpenStates' limits: what is counted of a client and its host, and whether there is room for more.
#include <algorithm>

#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {

OpenStates::Held OpenStates::held(ClientId client) const {
  const auto found = held_.find(client);
  return found == held_.end() ? Held() : found->second;
}

OpenStates::Held OpenStates::of_host(ClientId client) const {
  const auto host = hosts_.find(client);
  if (host == hosts_.end()) return held(client);
  const auto found = held_by_host_.find(host->second);
  return found == held_by_host_.end() ? Held() : found->second;
}

void OpenStates::count(ClientId client, std::size_t Held::*what, std::size_t more) {
  const auto add = [&](auto& table, const auto& key) {
    const auto its = table.try_emplace(key).first;
    its->second.*what += more;
    if (its->second == Held()) table.erase(its);
  };
  add(held_, client);
  const auto host = hosts_.find(client);
  if (host != hosts_.end()) add(held_by_host_, host->second);
}

void OpenStates::set_host(ClientId client, const std::string& host) {
  const Held its = held(client);
  const auto known = hosts_.find(client);
  if (known != hosts_.end() && known->second == host) return;
  const auto move = [this](const std::string& where, const Held& held, bool away) {
    const auto found = held_by_host_.try_emplace(where).first;
    for (const auto what : {&Held::opens, &Held::lock_states, &Held::locks, &Held::files})
      found->second.*what += away ? 0 - held.*what : held.*what;
    if (found->second == Held()) held_by_host_.erase(found);
  };
  if (known != hosts_.end()) move(known->second, its, true);
  hosts_[client] = host;
  move(host, its, false);
}

void OpenStates::count_locks(const StateOwner& owner, const FileState& file, std::size_t before) {
  const std::size_t now = file.locks.held().size();
  if (now == before) return;
  count(owner.client, &Held::locks, now - before);
  all_.locks += now - before;  // modulo 2^64 either way
}

Limit OpenStates::check_states(ClientId client, Claim claim) const {
  const FairShare& share = limits_.opens;
  const std::size_t own = held(client).states();
  if (share.room(own, of_host(client).states(), all_.states(), claim) != 0) return Limit::kNone;
  return FairShare{.per_client = share.per_client}.room(own, 0, 0, claim) == 0
             ? Limit::kOpensOfClient
             : Limit::kOpens;
}

Limit OpenStates::check_files(ClientId client, Claim claim) const {
  const std::size_t room =
      limits_.files.room(held(client).files, of_host(client).files, all_.files, claim);
  return room != 0 ? Limit::kNone : Limit::kFiles;
}

Limit OpenStates::check_room(ClientId client) const {
  const Limit met = check_states(client, Claim::kNew);
  return met != Limit::kNone ? met : check_files(client, Claim::kNew);
}

std::size_t OpenStates::room_for_locks(const StateOwner& owner, std::size_t of_file,
                                       Claim claim) const {
  const std::size_t room =
      limits_.locks.room(held(owner.client).locks, of_host(owner.client).locks, all_.locks, claim);
  const FairShare on_file{.per_client = limits_.locks_per_file};
  return std::min(room, on_file.room(of_file, 0, 0, claim));
}

/// The tightest one; what the client can help itself before what others have to do with.
Limit OpenStates::limit_of_locks(const StateOwner& owner, std::size_t of_file, Claim claim) const {
  const std::size_t its = held(owner.client).locks;
  const std::size_t room = room_for_locks(owner, of_file, claim);
  const FairShare on_file{.per_client = limits_.locks_per_file};
  if (on_file.room(of_file, 0, 0, claim) <= room) return Limit::kLocksOfFile;
  const FairShare own{.per_client = limits_.locks.per_client};
  return own.room(its, 0, 0, claim) <= room ? Limit::kLocksOfClient : Limit::kLocks;
}

}  // namespace nfsrdma::nfs4
