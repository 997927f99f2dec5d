// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/callback_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "rpcrdma/base/host_name.h"
#include "server/nfs4/caller.h"
#include "server/nfs4/limits.h"
#include "server/nfs4/server_state.h"
#include "xdr/universal_address.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr std::size_t kMostClients = 1024;  // each costs a descriptor, and a sixteenth is theirs
constexpr Duration kProbePause = std::chrono::seconds(5);
/// The same for clients that hold nothing for which they would have to be called.
constexpr Duration kLookAgain = std::chrono::seconds(60);
constexpr std::size_t kMostUnderWay = 64;  // of one client
constexpr std::size_t kLongest = 2048;

/// Cuts " NUMBER" off the end of `text`.
bool take_number(std::string_view* text, std::uint32_t* number) {
  const std::size_t space = text->rfind(' ');
  if (space == std::string_view::npos) return false;
  const char* const begin = text->data() + space + 1;
  const char* const end = text->data() + text->size();
  const auto [last, error] = std::from_chars(begin, end, *number);
  *text = text->substr(0, space);
  return error == std::errc() && last == end;
}

}  // namespace

std::string CallbackAddress::to_text(std::string_view netid, std::string_view address,
                                     std::uint32_t program, std::uint32_t ident) {
  return std::string(netid) + ' ' + std::string(address) + ' ' + std::to_string(program) + ' ' +
         std::to_string(ident);
}

std::optional<CallbackAddress> CallbackAddress::parse(std::string_view text) {
  CallbackAddress out;
  if (!take_number(&text, &out.ident) || !take_number(&text, &out.program)) return std::nullopt;
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view netid = text.substr(0, space);
  const auto universal = xdr::parse_universal_address(text.substr(space + 1));
  if ((netid != "tcp" && netid != "tcp6") || !universal || universal->port == 0) {
    return std::nullopt;
  }
  auto where = SocketAddress::parse(universal->host, universal->port);
  if (!where.ok() || where->is_v6() != (netid == "tcp6")) return std::nullopt;
  out.where = *where;
  return out;
}

CallbackLines::CallbackLines(ServerState& state)
    : state_(state),
      host_(host_name()),
      most_clients_(std::min(kMostClients, descriptor_limit() / 16)) {}

CallbackLines::~CallbackLines() = default;

void CallbackLines::stop() {
  lines_.clear();
}

void CallbackLines::set(ClientId client, const CallbackAddress& address) {
  if (loop_ == nullptr) return;
  if (!entries_.contains(client) && entries_.size() >= most_clients_) return;
  Entry& entry = entries_[client];
  const bool same = entry.probe != 0 && entry.where.text() == address.where.text() &&
                    entry.target.program == address.program && entry.target.ident == address.ident;
  if (same && (entry.state == State::kUnknown || entry.state == State::kUp)) return;
  entry.where = address.where;
  entry.target.program = address.program;
  entry.target.ident = address.ident;
  use_sys_credential(&entry.target, host_);
  entry.state = probe(client, entry) ? State::kUnknown : State::kDown;
}

bool CallbackLines::probe(ClientId client, Entry& entry) {
  if (entry.under_way >= kMostUnderWay) return false;
  entry.probed = state_.now();
  entry.probe = ++last_key_;
  std::array<std::byte, kLongest> room;
  const ByteSpan message = encode_cb_null(room, entry.target);
  under_way_[entry.probe] = {client, nullptr};
  send(client, entry, entry.probe, message);
  return true;
}

void CallbackLines::end_client(ClientId client) {
  if (entries_.erase(client) == 0) return;
  std::vector<std::unique_ptr<Callback>> lost;
  for (auto next = under_way_.begin(); next != under_way_.end();) {
    if (next->second.client != client) {
      ++next;
      continue;
    }
    if (next->second.callback != nullptr) lost.push_back(std::move(next->second.callback));
    next = under_way_.erase(next);
  }
  loop_->post([this, client] { lines_.erase(client); });
  for (const auto& callback : lost)
    callback->finished(nullptr);
}

CallbackLines::State CallbackLines::state(ClientId client) const {
  const auto entry = entries_.find(client);
  return entry == entries_.end() ? State::kNone : entry->second.state;
}

void CallbackLines::look_again(ClientId client) {
  const auto found = entries_.find(client);
  const bool is_down = found != entries_.end() && found->second.state == State::kDown;
  if (is_down && state_.now() >= found->second.probed + kLookAgain) probe(client, found->second);
}

bool CallbackLines::call(ClientId client, std::unique_ptr<Callback> callback) {
  const auto found = entries_.find(client);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  if (entry.state == State::kDown && state_.now() >= entry.probed + kProbePause) {
    probe(client, entry);
  }
  if (entry.state != State::kUp || entry.under_way >= kMostUnderWay) return false;
  std::array<std::byte, kLongest> room;
  const ByteSpan message = callback->encode(room, entry.target, nullptr);
  if (message.empty()) return false;
  const std::uint64_t key = ++last_key_;
  under_way_[key] = {client, std::move(callback)};
  send(client, entry, key, message);
  return true;
}

void CallbackLines::send(ClientId client, Entry& entry, std::uint64_t key, ByteSpan message) {
  ++entry.under_way;
  loop_->post([this, client, where = entry.where, key,
               bytes = std::vector<std::byte>(message.begin(), message.end())]() mutable {
    transmit(client, where, key, std::move(bytes));
  });
}

void CallbackLines::transmit(ClientId client, const SocketAddress& where, std::uint64_t key,
                             std::vector<std::byte> message) {
  auto found = lines_.find(client);
  if (found != lines_.end() && found->second->where().text() != where.text()) {
    // It moved. What was said to its old place is lost, and is told so.
    found->second->give_up();
    lines_.erase(found);
    found = lines_.end();
  }
  if (found == lines_.end()) {
    const auto on_end = [this](std::uint64_t of, ByteSpan reply, bool) { ended(of, reply); };
    found = lines_.emplace(client, std::make_unique<CallbackLine>(*loop_, where, on_end)).first;
  }
  found->second->send(key, std::move(message));
}

void CallbackLines::ended(std::uint64_t key, ByteSpan reply) {
  std::lock_guard lock(state_.mutex);
  const auto found = under_way_.find(key);
  if (found == under_way_.end()) return;  // its client is gone
  const UnderWay done = std::move(found->second);
  under_way_.erase(found);
  Entry& entry = entries_.at(done.client);
  --entry.under_way;
  if (done.callback == nullptr) {
    // Of an address that it had before, it says nothing.
    if (entry.probe != key) return;
    const bool up = !reply.empty() && read_cb_null_reply(reply).kind == CallbackReply::Kind::kDone;
    entry.state = up ? State::kUp : State::kDown;
    return;
  }
  CallbackReply answer;
  if (!reply.empty()) answer = read_callback_reply(reply, nullptr, done.callback->operation());
  const bool ran = answer.kind == CallbackReply::Kind::kDone;
  // Refused as a whole, denied, unreadable or not answered: nobody there knows what we want.
  if (!ran && entry.state == State::kUp) entry.state = State::kDown;
  done.callback->finished(ran ? &answer : nullptr);
}

}  // namespace nfsrdma::nfs4
