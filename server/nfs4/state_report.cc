// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

namespace {

using OneClient = StateReport::OneClient;

/// Clients that are looked at under one hold of the mutex: some ten microseconds.
constexpr std::size_t kAtOnce = 64;

OneClient::Phase phase_of(const ServerState& state, const Client& client) {
  if (!state.clients.expired(client, state.now())) return OneClient::Phase::kActive;
  return client.holds > 0 ? OneClient::Phase::kCourteous : OneClient::Phase::kExpired;
}

StateReport::Sessions sessions_of(const ServerState& state, ClientId client) {
  StateReport::Sessions out;
  // Each once: a client with several sessions has some of them go over one connection.
  std::set<ConnectionId> connections;
  state.sessions.each_of(client, [&](const Session& session) {
    connections.insert(session.connections.begin(), session.connections.end());
    const bool works = session.back_channel && !session.back_channel->failed;
    out += {1,
            session.slots.size(),
            session.slots.running(),
            session.slots.reply_bytes(),
            works && !session.backchannel.empty() ? 1u : 0u,
            0};
  });
  out.connections = connections.size();
  return out;
}

/// Runs `what` with the mutex held, on those of `ids` that are still there.
template <typename What>
void for_each(ServerState& state, std::span<const ClientId> ids, const What& what) {
  while (!ids.empty()) {
    const auto some = ids.first(std::min(kAtOnce, ids.size()));
    ids = ids.subspan(some.size());
    std::lock_guard lock(state.mutex);
    for (const ClientId id : some) {
      if (const Client* client = state.clients.find(id)) what(*client);
    }
  }
}

OneClient describe(const ServerState& state, const Client& client) {
  OneClient out;
  out.id = client.id;
  out.locks_by_nlm = client.locks_by_nlm;
  out.name = printable(out.locks_by_nlm ? client.owner.id.substr(ClientTable::kHostPrefix.size())
                                        : client.owner.id);
  out.address = client.address;
  out.minor_version = client.minor_version;
  out.phase = phase_of(state, client);
  out.seconds_since_renewal =
      std::chrono::duration_cast<std::chrono::seconds>(state.now() - client.renewed).count();
  out.sessions = sessions_of(state, client.id);
  out.opens = state.opens.held(client.id);
  out.delegations = state.delegations.table().held(client.id);
  return out;
}

std::string_view word(OneClient::Phase phase) {
  switch (phase) {
    case OneClient::Phase::kActive:
      return "active";
    case OneClient::Phase::kCourteous:
      return "courteous";
    case OneClient::Phase::kExpired:
      break;
  }
  return "expired";
}

StateReport::Refused refused_of(const Refusals& refusals) {
  const auto count = [&refusals](Limit limit) { return refusals.count(limit); };
  StateReport::Refused out;
  out.clients = count(Limit::kClients);
  out.sessions = count(Limit::kSessionsOfClient) + count(Limit::kSlots);
  out.opens = count(Limit::kOpensOfClient) + count(Limit::kOpens);
  out.files = count(Limit::kFiles);
  out.locks = count(Limit::kLocksOfClient) + count(Limit::kLocks);
  out.locks_per_file = count(Limit::kLocksOfFile);
  out.delegations = count(Limit::kDelegationsOfClient) + count(Limit::kDelegations);
  out.owners = count(Limit::kOwnersOfClient) + count(Limit::kOwners);
  out.gave_way = refusals.gave_way();
  return out;
}

void write_sessions(JsonWriter& json, const StateReport::Sessions& sessions) {
  json.field("sessions", sessions.count);
  json.field("sessions_called_back", sessions.called_back);
  json.field("session_connections", sessions.connections);
  json.field("slots", sessions.slots);
  json.field("slots_in_use", sessions.slots_in_use);
  json.field("kept_reply_bytes", sessions.reply_bytes);
}

void write_opens(JsonWriter& json, const OpenStates::Held& held) {
  json.field("opens", held.opens);
  json.field("files", held.files);
  json.field("lock_owners", held.lock_states);
  json.field("locks", held.locks);
}

void write_client(JsonWriter& json, const OneClient& client) {
  json.begin_object();
  json.field("id", fmt::format("{:016x}", client.id));
  json.field("name", client.name);
  json.field("address", client.address);
  if (client.locks_by_nlm) {
    json.field("protocol", "NLM");
  } else {
    json.field("protocol", fmt::format("4.{}", client.minor_version));
    json.field("minor_version", client.minor_version);
  }
  json.field("state", word(client.phase));
  json.field("seconds_since_renewal", client.seconds_since_renewal);
  write_sessions(json, client.sessions);
  write_opens(json, client.opens);
  json.field("delegations", client.delegations.live);
  json.field("delegations_recalled", client.delegations.recalled);
  json.field("delegations_revoked", client.delegations.revoked);
  json.end_object();
}

void write_limits(JsonWriter& json, const Limits& limits) {
  json.begin_object();
  json.field("clients", limits.clients);
  json.field("sessions_per_client", limits.sessions.sessions_per_client);
  json.field("slots_per_session", limits.slots);
  json.field("slots", limits.sessions.slots);
  json.field("kept_reply_bytes_per_slot", limits.reply_bytes);
  json.field("opens_per_client", limits.opens.opens.per_client);
  json.field("opens", limits.opens.opens.all);
  json.field("files", limits.opens.files.all);
  json.field("locks_per_client", limits.opens.locks.per_client);
  json.field("locks", limits.opens.locks.all);
  json.field("locks_per_file", limits.opens.locks_per_file);
  json.field("delegations_per_client", limits.delegations.per_client);
  json.field("delegations", limits.delegations.all);
  json.field("owners_per_client", limits.owners);
  json.end_object();
}

}  // namespace

StateReport::Sessions& StateReport::Sessions::operator+=(const Sessions& more) {
  count += more.count;
  slots += more.slots;
  slots_in_use += more.slots_in_use;
  reply_bytes += more.reply_bytes;
  called_back += more.called_back;
  connections += more.connections;
  return *this;
}

StateReport report_state(ServerState& state, std::size_t most) {
  StateReport out;
  std::vector<ClientId> ids;
  {
    std::lock_guard lock(state.mutex);
    ids = state.clients.ids();
    out.confirmed = ids.size();
    out.unconfirmed = state.clients.size() - ids.size();
    out.opens = state.opens.held_by_all();
    out.refused = refused_of(state.refusals);
    out.delegations = state.delegations.table().size();
    out.delegations_recalled = state.delegations.table().recalled();
    out.in_grace = !state.grace.over(state.now());
  }
  out.lease_seconds = state.lease_seconds();
  out.limits = state.limits();
  std::vector<std::pair<std::size_t, ClientId>> by_holds;
  by_holds.reserve(ids.size());
  for_each(state, ids, [&](const Client& client) {
    const OneClient::Phase phase = phase_of(state, client);
    ++(phase == OneClient::Phase::kActive      ? out.active
       : phase == OneClient::Phase::kCourteous ? out.courteous
                                               : out.expired);
    out.sessions += sessions_of(state, client.id);
    by_holds.emplace_back(client.holds, client.id);
  });
  const auto shown =
      by_holds.begin() + static_cast<std::ptrdiff_t>(std::min(most, by_holds.size()));
  std::partial_sort(by_holds.begin(), shown, by_holds.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<ClientId> first;
  for (auto one = by_holds.begin(); one != shown; ++one)
    first.push_back(one->second);
  for_each(state, first,
           [&](const Client& client) { out.clients.push_back(describe(state, client)); });
  return out;
}

void write_state(JsonWriter& json, const StateReport& report) {
  json.begin_object();
  json.field("clients", report.confirmed);
  json.field("clients_active", report.active);
  json.field("clients_courteous", report.courteous);
  json.field("clients_expired", report.expired);
  json.field("clients_unconfirmed", report.unconfirmed);
  json.field("lease_seconds", report.lease_seconds);
  json.field("in_grace", report.in_grace);
  write_sessions(json, report.sessions);
  write_opens(json, report.opens);
  json.field("delegations", report.delegations);
  json.field("delegations_recalled", report.delegations_recalled);
  json.key("refused");
  json.begin_object();
  json.field("clients", report.refused.clients);
  json.field("sessions", report.refused.sessions);
  json.field("opens", report.refused.opens);
  json.field("files", report.refused.files);
  json.field("locks", report.refused.locks);
  json.field("locks_per_file", report.refused.locks_per_file);
  json.field("delegations", report.refused.delegations);
  json.field("owners", report.refused.owners);
  json.end_object();
  json.field("clients_that_gave_way", report.refused.gave_way);
  json.key("limits");
  write_limits(json, report.limits);
  json.key("client_list");
  json.begin_array();
  for (const OneClient& client : report.clients)
    write_client(json, client);
  json.end_array();
  json.end_object();
}

}  // namespace nfsrdma::nfs4
