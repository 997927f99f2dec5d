// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/session_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nfsrdma::nfs4 {

bool negotiate(const ChannelAttributes& most, ChannelAttributes* asked) {
  if (asked->max_request < kSmallestMessage || asked->max_response < kSmallestMessage ||
      asked->max_operations == 0 || asked->max_requests == 0) {
    return false;
  }
  asked->header_pad = std::min(asked->header_pad, most.header_pad);
  asked->max_request = std::min(asked->max_request, most.max_request);
  asked->max_response = std::min(asked->max_response, most.max_response);
  // No reply that is kept is longer than a reply may be.
  asked->max_response_cached =
      std::min({asked->max_response_cached, most.max_response_cached, asked->max_response});
  asked->max_operations = std::min(asked->max_operations, most.max_operations);
  asked->max_requests = std::min(asked->max_requests, most.max_requests);
  return true;
}

Limit SessionTable::check_room(ClientId client, std::uint32_t slots) const {
  if (sessions_of(client) >= limits_.sessions_per_client) return Limit::kSessionsOfClient;
  return slots_ + slots > limits_.slots ? Limit::kSlots : Limit::kNone;
}

Session* SessionTable::create(Client& client, const ChannelAttributes& fore,
                              const ChannelAttributes& back, ConnectionId connection,
                              bool call_back_on_it, std::optional<BackChannel> back_channel) {
  if (check_room(client.id, fore.max_requests) != Limit::kNone) return nullptr;
  std::set<Session*>& its = by_client_[client.id];
  slots_ += fore.max_requests;
  SessionId id{};
  // Client, number, boot: nobody who sees one can take it for another server life's.
  const std::uint64_t number = ++last_number_;
  const auto low = static_cast<std::uint32_t>(number);
  std::memcpy(id.data(), &client.id, sizeof client.id);
  std::memcpy(id.data() + 8, &low, sizeof low);
  std::memcpy(id.data() + 12, &boot_, sizeof boot_);
  std::unique_ptr<Session>& slot = sessions_[id];
  slot = std::make_unique<Session>(
      Session{id, &client, fore, back, SlotTable(fore.max_requests), {}, {}, false, {}});
  slot->back_channel = std::move(back_channel);
  its.insert(slot.get());
  ++client.holds;
  bind(*slot, connection, true, call_back_on_it);
  return slot.get();
}

Session* SessionTable::find(const SessionId& id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

/// As it gets tight, later ones get less: an eighth, as in Linux's server, of what is left beside
/// one slot for each session that is yet to come; and one at least.
std::uint32_t SessionTable::share(std::uint32_t asked, std::size_t taken,
                                  std::size_t sessions) const {
  constexpr std::size_t kPart = 8;
  const std::size_t left = limits_.slots - taken;
  const std::size_t due = limits_.sessions - std::min(limits_.sessions, sessions);
  const std::size_t spare = left - std::min(left, due);
  const std::size_t part = std::max<std::size_t>(1, spare / kPart + (spare % kPart != 0 ? 1 : 0));
  return static_cast<std::uint32_t>(std::min({std::size_t{asked}, part, left}));
}

Session* SessionTable::to_call_back(ClientId client) const {
  const auto its = by_client_.find(client);
  if (its == by_client_.end()) return nullptr;
  for (Session* session : its->second) {
    const bool works = session->back_channel && !session->back_channel->failed;
    if (works && !session->backchannel.empty()) return session;
  }
  return nullptr;
}

void SessionTable::bind(Session& session, ConnectionId connection, bool fore, bool back) {
  if (!fore && !back) return;
  if (fore) session.connections.insert(connection);
  std::erase(session.backchannel, connection);
  if (back) {
    session.backchannel.push_back(connection);
    session.was_called_back = true;
    if (session.back_channel) session.back_channel->failed = false;
  }
  by_connection_[connection].insert(&session);
}

void SessionTable::use(Session& session, ConnectionId connection) {
  session.connections.insert(connection);
  by_connection_[connection].insert(&session);
}

SessionTable::Status SessionTable::destroy(const SessionId& id, ConnectionId connection,
                                           bool own_request) {
  Session* session = find(id);
  if (session == nullptr) return Status::kBadSession;
  const bool bound = session->connections.contains(connection) ||
                     std::find(session->backchannel.begin(), session->backchannel.end(),
                               connection) != session->backchannel.end();
  if (!bound) return Status::kNotBound;
  if (session->slots.running() > (own_request ? 1u : 0u)) return Status::kDelay;
  end(*session);
  return Status::kOk;
}

void SessionTable::end(Session& session) {
  std::set<ConnectionId> connections = session.connections;
  connections.insert(session.backchannel.begin(), session.backchannel.end());
  for (const ConnectionId connection : connections) {
    const auto entry = by_connection_.find(connection);
    entry->second.erase(&session);
    if (entry->second.empty()) by_connection_.erase(entry);
  }
  const auto its = by_client_.find(session.client->id);
  its->second.erase(&session);
  if (its->second.empty()) by_client_.erase(its);
  --session.client->holds;
  slots_ -= session.slots.size();
  sessions_.erase(SessionId(session.id));
}

void SessionTable::end_client(const Client& client) {
  const auto its = by_client_.find(client.id);
  if (its == by_client_.end()) return;
  const std::set<Session*> all = its->second;
  for (Session* session : all)
    end(*session);
}

void SessionTable::connection_lost(ConnectionId connection) {
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return;
  for (Session* session : found->second) {
    session->connections.erase(connection);
    std::erase(session->backchannel, connection);
  }
  by_connection_.erase(found);
}

}  // namespace nfsrdma::nfs4
