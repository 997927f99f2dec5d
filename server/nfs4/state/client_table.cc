// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/client_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rpcrdma/base/check.h"
#include "server/nfs4/state/state_number.h"

namespace nfsrdma::nfs4 {

// --- the tables
// -----------------------------------------------------------------------------------

Client* ClientTable::find(const Table& table, ClientId id) {
  const auto found = table.find(id);
  return found == table.end() ? nullptr : found->second.get();
}

Client* ClientTable::find(ClientId id) {
  return find(confirmed_, id);
}
const Client* ClientTable::find_any(ClientId id) {
  const Client* client = find(id);
  return client != nullptr ? client : find(unconfirmed_, id);
}

std::vector<ClientId> ClientTable::ids() const {
  std::vector<ClientId> out;
  out.reserve(confirmed_.size());
  for (const auto& [id, client] : confirmed_)
    out.push_back(id);
  return out;
}

bool ClientTable::is_gone(ClientId id) const {
  const auto number = static_cast<std::uint32_t>(id);
  return id >> 32 == boot_ && number != 0 && number <= last_number_ && !confirmed_.contains(id) &&
         !unconfirmed_.contains(id);
}

bool ClientTable::may_own(std::uint64_t number) const {
  const auto its = [number](const auto& one) { return may_be_of(number, one.first); };
  return std::any_of(confirmed_.begin(), confirmed_.end(), its) ||
         std::any_of(unconfirmed_.begin(), unconfirmed_.end(), its);
}

Client* ClientTable::confirmed_of(const std::string& owner) {
  const auto found = confirmed_by_owner_.find(owner);
  return found == confirmed_by_owner_.end() ? nullptr : find(confirmed_, found->second);
}

std::unique_ptr<Client> ClientTable::take(Table& table, Owners& by_owner, Queue& queue,
                                          Client& client) {
  by_owner.erase(client.owner.id);
  queue.erase(client.place);
  auto node = table.extract(client.id);
  NFSRDMA_CHECK(!node.empty());
  return std::move(node.mapped());
}

std::unique_ptr<Client> ClientTable::end(Client& client) {
  if (client.locks_by_nlm) --hosts_;
  return take(confirmed_, confirmed_by_owner_, confirmed_queue_, client);
}

/// An unconfirmed client holds nothing: nobody needs to hear of it.
void ClientTable::drop_unconfirmed(Client& client) {
  take(unconfirmed_, unconfirmed_by_owner_, unconfirmed_queue_, client);
}

void ClientTable::drop_unconfirmed_of(const std::string& owner) {
  const auto found = unconfirmed_by_owner_.find(owner);
  if (found != unconfirmed_by_owner_.end()) drop_unconfirmed(*unconfirmed_.at(found->second));
}

void ClientTable::renew(Client& client, TimePoint now) {
  client.renewed = now;
  Queue& queue = client.confirmed ? confirmed_queue_ : unconfirmed_queue_;
  queue.splice(queue.end(), queue, client.place);
}

std::vector<ClientId> ClientTable::longest_expired(std::size_t most, TimePoint now) const {
  std::vector<ClientId> out;
  for (const Client* client : confirmed_queue_) {
    if (out.size() == most || !lease_over(*client, now)) break;
    if (expired(*client, now)) out.push_back(client->id);
  }
  return out;
}

std::vector<std::unique_ptr<Client>> ClientTable::sweep(TimePoint now) {
  std::vector<Client*> over;
  for (Client* client : confirmed_queue_) {
    if (!lease_over(*client, now)) break;
    if (!expired(*client, now)) continue;
    const bool forgotten = now - client->renewed > limits_.lease + limits_.courtesy;
    if (forgotten || client->holds == 0) over.push_back(client);
  }
  std::vector<std::unique_ptr<Client>> ended;
  ended.reserve(over.size());
  for (Client* client : over)
    ended.push_back(end(*client));
  while (!unconfirmed_queue_.empty() && expired(*unconfirmed_queue_.front(), now))
    drop_unconfirmed(*unconfirmed_queue_.front());
  return ended;
}

/// For one more client. Those that are expired give way, with what they hold, and those that are
/// not confirmed, the oldest first: nobody can keep others out by names alone, nor, by many of
/// them, take from those who are away what they hold.
bool ClientTable::make_room(Answer& answer, TimePoint now) {
  if (size() < limits_.clients) return true;
  for (std::unique_ptr<Client>& swept : sweep(now))
    answer.ended.push_back(std::move(swept));
  if (size() < limits_.clients) return true;
  const bool many_names = unconfirmed_.size() > limits_.clients / 8;
  const std::vector<ClientId> longest = longest_expired(1, now);
  if (!many_names && !longest.empty()) {
    answer.ended.push_back(end(*find(longest.front())));
    answer.gave_way = true;
    return true;
  }
  if (!unconfirmed_queue_.empty()) {
    drop_unconfirmed(*unconfirmed_queue_.front());
    return true;
  }
  answer.status = Status::kFull;
  return false;
}

Client* ClientTable::add_unconfirmed(const ClientOwner& owner, const std::string& principal,
                                     ClientId id, TimePoint now) {
  auto client = std::make_unique<Client>();
  client->id = id;
  client->owner = owner;
  client->principal = principal;
  client->renewed = now;
  unconfirmed_by_owner_[owner.id] = id;
  client->place = unconfirmed_queue_.insert(unconfirmed_queue_.end(), client.get());
  return (unconfirmed_[id] = std::move(client)).get();
}

/// The owner's client from before, another life of it, ends.
Client* ClientTable::confirm(Client& unconfirmed, Answer& answer) {
  if (Client* before = confirmed_of(unconfirmed.owner.id)) answer.ended.push_back(end(*before));
  auto client = take(unconfirmed_, unconfirmed_by_owner_, unconfirmed_queue_, unconfirmed);
  client->confirmed = true;
  client->place = confirmed_queue_.insert(confirmed_queue_.end(), client.get());
  confirmed_by_owner_[client->owner.id] = client->id;
  return (confirmed_[client->id] = std::move(client)).get();
}

// --- minor version 1 and later
// --------------------------------------------------------------------

/// The cases are those of RFC 8881 18.35.5.
ClientTable::Answer ClientTable::exchange_id(const ClientOwner& owner, const std::string& principal,
                                             bool update, TimePoint now) {
  Answer answer;
  if (owner.id.starts_with(kHostPrefix)) {
    answer.status = Status::kInvalid;
    return answer;
  }
  Client* known = confirmed_of(owner.id);
  if (update) {
    if (known == nullptr) {
      answer.status = Status::kNoEnt;  // 7
    } else if (!known->has_sessions) {
      answer.status = Status::kInvalid;  // there is nothing that EXCHANGE_ID could update
    } else if (known->principal != principal) {
      answer.status = Status::kPerm;  // 9
    } else if (known->owner.verifier != owner.verifier) {
      answer.status = Status::kNotSame;  // 8
    } else {
      answer.client = known;  // 6
    }
    return answer;
  }
  if (known != nullptr && known->principal != principal) {  // 3
    if (known->holds > 0 && !expired(*known, now)) {
      answer.status = Status::kInUse;
      return answer;
    }
    answer.ended.push_back(end(*known));
  } else if (known != nullptr && known->has_sessions &&
             known->owner.verifier == owner.verifier) {  // 2
    answer.client = known;
    return answer;
  }
  // 1, 4 and 5: the one that is confirmed, if any, stays until this one is.
  drop_unconfirmed_of(owner.id);
  if (!make_room(answer, now)) return answer;
  answer.client = add_unconfirmed(owner, principal, next_id(), now);
  answer.client->has_sessions = true;
  return answer;
}

/// The phases are those of RFC 8881 18.36.4.
ClientTable::Answer ClientTable::create_session(ClientId id, SequenceId sequence,
                                                std::uint64_t fingerprint,
                                                const std::string& principal, TimePoint now) {
  Answer answer;
  Client* client = find(confirmed_, id);
  if (client == nullptr) client = find(unconfirmed_, id);
  if (client == nullptr || !client->has_sessions) {
    answer.status = Status::kStale;
    return answer;
  }
  // Somebody else cannot confirm it, nor use up its first sequence id.
  if (!client->confirmed && client->principal != principal) {
    answer.status = Status::kInUse;
    return answer;
  }
  answer.client = client;
  answer.verdict = client->create_session.begin(0, sequence, fingerprint);
  if (answer.verdict != SlotTable::Verdict::kNew) {
    answer.status = Status::kRetry;
    return answer;
  }
  if (!client->confirmed) answer.client = confirm(*client, answer);
  renew(*answer.client, now);
  return answer;
}

ClientTable::Answer ClientTable::destroy_client_id(ClientId id) {
  Answer answer;
  Client* client = find(confirmed_, id);
  Client* unconfirmed = client == nullptr ? find(unconfirmed_, id) : nullptr;
  // Those of version 4.0 and hosts of NFSv3 have no such request, and IDs can be guessed.
  if (client != nullptr && client->has_sessions) {
    if (client->holds > 0) {
      answer.status = Status::kBusy;
    } else {
      answer.ended.push_back(end(*client));
    }
  } else if (unconfirmed != nullptr && unconfirmed->has_sessions) {
    drop_unconfirmed(*unconfirmed);
  } else {
    answer.status = Status::kStale;
  }
  return answer;
}

// --- NLM
// ------------------------------------------------------------------------------------------

ClientTable::Answer ClientTable::add_host(const std::string& name, TimePoint now) {
  Answer answer;
  const std::string owner = host_owner(name);
  answer.client = confirmed_of(owner);
  if (answer.client != nullptr) {
    renew(*answer.client, now);
    return answer;
  }
  const std::string address = name.substr(0, name.find(' ') + 1);
  const std::vector<Client*> there = hosts_with(address);
  if (there.size() >= limits_.hosts_per_address) {
    // One that holds nothing gives way: programs that lock have a name each, and end.
    Client* idle = nullptr;
    for (Client* host : there) {
      if (host->holds == 0 && (idle == nullptr || host->renewed < idle->renewed)) idle = host;
    }
    if (idle != nullptr) answer.ended.push_back(end(*idle));
  }
  if (hosts_ >= limits_.clients / 2 ||
      there.size() - answer.ended.size() >= limits_.hosts_per_address) {
    answer.status = Status::kFull;
    return answer;
  }
  if (!make_room(answer, now)) return answer;
  ++hosts_;
  auto client = std::make_unique<Client>();
  client->id = next_id();
  client->owner.id = owner;
  client->confirmed = true;
  client->locks_by_nlm = true;
  client->renewed = now;
  client->place = confirmed_queue_.insert(confirmed_queue_.end(), client.get());
  confirmed_by_owner_[owner] = client->id;
  answer.client = client.get();
  confirmed_[client->id] = std::move(client);
  return answer;
}

Client* ClientTable::find_host(const std::string& name) {
  return confirmed_of(host_owner(name));
}

std::vector<Client*> ClientTable::hosts_with(const std::string& prefix) {
  std::vector<Client*> out;
  const std::string begin = host_owner(prefix);
  for (auto at = confirmed_by_owner_.lower_bound(begin);
       at != confirmed_by_owner_.end() && at->first.starts_with(begin); ++at) {
    out.push_back(find(confirmed_, at->second));
  }
  return out;
}

// --- minor version 0
// ------------------------------------------------------------------------------

ClientTable::Answer ClientTable::set_client_id(const ClientOwner& owner,
                                               const std::string& principal,
                                               const std::string& callback, TimePoint now) {
  Answer answer;
  if (owner.id.starts_with(kHostPrefix)) {
    answer.status = Status::kInvalid;
    return answer;
  }
  const Client* known = confirmed_of(owner.id);
  if (known != nullptr && known->holds > 0 && !expired(*known, now) &&
      (known->has_sessions || known->principal != principal)) {
    answer.status = Status::kInUse;
    return answer;
  }
  drop_unconfirmed_of(owner.id);
  if (!make_room(answer, now)) return answer;
  // The same life of the client with another callback keeps its id; making room may have ended it.
  known = confirmed_of(owner.id);
  const bool same_life = known != nullptr && !known->has_sessions &&
                         known->principal == principal && known->owner.verifier == owner.verifier;
  answer.client = add_unconfirmed(owner, principal, same_life ? known->id : next_id(), now);
  answer.client->callback = callback;
  const std::uint64_t confirm = ++last_confirm_;
  std::memcpy(answer.client->confirm.data(), &confirm, sizeof confirm);
  return answer;
}

ClientTable::Answer ClientTable::set_client_id_confirm(ClientId id, const Verifier& confirm,
                                                       const std::string& principal,
                                                       TimePoint now) {
  Answer answer;
  Client* known = find(confirmed_, id);
  Client* waiting = find(unconfirmed_, id);
  if ((known != nullptr && known->principal != principal) ||
      (waiting != nullptr && waiting->principal != principal)) {
    answer.status = Status::kInUse;
    return answer;
  }
  if (waiting != nullptr && !waiting->has_sessions && waiting->confirm == confirm) {
    if (known != nullptr) {  // another callback, and all state stays
      known->callback = waiting->callback;
      known->confirm = confirm;
      drop_unconfirmed(*waiting);
      answer.client = known;
    } else {
      Client* before = confirmed_of(waiting->owner.id);
      if (before != nullptr && before->holds > 0 && !expired(*before, now) &&
          before->principal != principal) {
        answer.status = Status::kInUse;  // it came to hold something meanwhile
        return answer;
      }
      answer.client = this->confirm(*waiting, answer);
    }
  } else if (known != nullptr && !known->has_sessions && known->confirm == confirm) {
    answer.client = known;  // a retry
  } else {
    answer.status = Status::kStale;
    return answer;
  }
  renew(*answer.client, now);
  return answer;
}

}  // namespace nfsrdma::nfs4
