// SPDX-License-Identifier: Apache-2.0
// ServerState: what happens where clients hold as much as there may be.
#include <string_view>
#include <utility>

#include "rpcrdma/base/log.h"
#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

namespace {

/// Clients that are looked at for one that can give way.
constexpr std::size_t kLookedAt = 64;

/// A host of IPv4 is one, whichever way it is written.
std::string host_of(const std::string& address) {
  constexpr std::string_view kMapped = "::ffff:";
  return address.starts_with(kMapped) ? address.substr(kMapped.size()) : address;
}

}  // namespace

void ServerState::take_in(ClientTable::Answer& answer, const std::string& address) {
  if (answer.status == ClientTable::Status::kFull) {
    refusals.refused(Limit::kClients, nullptr, address, now());
  }
  if (answer.gave_way) refusals.gave_way(Limit::kClients, *answer.ended.back(), now());
  end_clients(std::move(answer.ended));
}

void ServerState::came_from(Client& client, const std::string& address) {
  client.address = address;
  opens.set_host(client.id, host_of(address));
}

bool ServerState::holds_any(Limit limit, ClientId client) const {
  switch (limit) {
    case Limit::kSlots:
      return sessions.sessions_of(client) != 0;
    case Limit::kOpens:
      return opens.held(client).states() != 0;
    case Limit::kFiles:
      return opens.held(client).files != 0;
    case Limit::kLocks:
      return opens.held(client).locks != 0;
    case Limit::kDelegations:
      return delegations.table().holds(client) != 0;
    default:
      return false;
  }
}

bool ServerState::make_room(Limit limit, ClientId asker) {
  switch (limit) {
    case Limit::kSlots:
    case Limit::kOpens:
    case Limit::kFiles:
    case Limit::kLocks:
    case Limit::kDelegations:
      break;
    default:
      return false;
  }
  const std::vector<ClientId> expired = clients.longest_expired(kLookedAt, now());
  ClientId chosen = 0;
  for (const ClientId id : expired) {
    if (id == asker) continue;
    // Of more than can be looked at, the first one goes in any case, so that the others' turn
    // comes.
    if (chosen == 0 && expired.size() == kLookedAt) chosen = id;
    if (!holds_any(limit, id)) continue;
    chosen = id;
    break;
  }
  if (chosen == 0) return false;
  std::vector<std::unique_ptr<Client>> ended;
  ended.push_back(clients.end(*clients.find(chosen)));
  refusals.gave_way(limit, *ended.back(), now());
  end_clients(std::move(ended));
  return true;
}

Limit ServerState::find_room_to_open(const Client& asker) {
  Limit met = opens.check_room(asker.id);
  for (int i = 0; i < kMostGiveWay && met != Limit::kNone; ++i) {
    if (!make_room(met, asker.id)) break;
    met = opens.check_room(asker.id);
  }
  return met;
}

void ServerState::write_refusals() {
  std::vector<std::string> lines;
  {
    std::lock_guard lock(mutex);
    lines = refusals.take();
  }
  for (const std::string& line : lines)
    log_warning("{}", line);
}

}  // namespace nfsrdma::nfs4
