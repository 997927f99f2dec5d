// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/revoked_states.h"

#include <utility>

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {

void RevokedStates::add(StateNumber number, One what, TimePoint now) {
  NFSRDMA_CHECK(!contains(number));
  const auto its = clients_.try_emplace(what.client).first;
  PerClient& client = its->second;
  const std::uint64_t place = ++last_place_;
  client.in_order[place] = number;
  client.unknown += what.is_known ? 0 : 1;
  client.last = now;
  all_[number] = {std::move(what), place};
  if (client.in_order.size() > kMostPerClient) erase(client.in_order.begin()->second, its);
}

const RevokedStates::One* RevokedStates::find(StateNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second.one;
}

void RevokedStates::know(One& one, PerClient& its) {
  if (!std::exchange(one.is_known, true)) --its.unknown;
}

void RevokedStates::erase(StateNumber number, Clients::iterator its) {
  const auto found = all_.find(number);
  know(found->second.one, its->second);
  its->second.in_order.erase(found->second.place);
  all_.erase(found);
  if (its->second.in_order.empty()) clients_.erase(its);
}

void RevokedStates::forget(StateNumber number) {
  if (const One* one = find(number)) erase(number, clients_.find(one->client));
}

void RevokedStates::note_told(StateNumber number) {
  const One* told = find(number);
  if (told == nullptr) return;
  const StateNumber open = told->open;
  PerClient& its = clients_.at(told->client);
  for (const auto& [place, other] : its.in_order) {
    if (One& one = all_.at(other).one; one.open == open) know(one, its);
  }
}

void RevokedStates::end_client(ClientId client) {
  const auto its = clients_.find(client);
  if (its == clients_.end()) return;
  for (const auto& [place, number] : its->second.in_order)
    all_.erase(number);
  clients_.erase(its);
}

bool RevokedStates::any_unknown(ClientId client) const {
  const auto its = clients_.find(client);
  return its != clients_.end() && its->second.unknown != 0;
}

bool RevokedStates::to_be_told(ClientId client, TimePoint now) const {
  const auto its = clients_.find(client);
  return its != clients_.end() && now - its->second.last < kToldOfRevoked;
}

std::size_t RevokedStates::of_client(ClientId client) const {
  const auto its = clients_.find(client);
  return its == clients_.end() ? 0 : its->second.in_order.size();
}

}  // namespace nfsrdma::nfs4
