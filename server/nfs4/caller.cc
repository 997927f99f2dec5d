// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/caller.h"

#include <array>
#include <utility>

#include "rpcrdma/base/event_loop.h"
#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr std::size_t kLongest = 2048;  // of a message: a lock-owner's name may have 1,024 bytes
constexpr std::size_t kMostWaiting = 4096;  // for slots, of one client

}  // namespace

/// One call under way in a session.
class Caller::Sent final : public BackwardCall {
 public:
  Sent(Caller& its_caller, std::uint64_t its_key) : caller(its_caller), key(its_key) {}
  void on_complete() override { caller.completed(*this); }

  /// False: it does not fit into what the connection takes.
  bool encode(const CallbackTarget& target, const ReferringCall* about) {
    sequence = callback_sequence(session, ticket);
    if (about != nullptr) sequence.csa_referring_call_lists = encode_referring(*about, referring);
    message = callback->encode(MutableByteSpan(room).first(std::min(room.size(), most)), target,
                               &sequence);
    return !message.empty();
  }

  Caller& caller;
  const std::uint64_t key;
  ClientId client = 0;
  std::unique_ptr<Callback> callback;
  ConnectionId connection = 0;
  SessionId session{};
  CallbackSlots::Ticket ticket;
  xdr::CB_SEQUENCE4args sequence;
  std::size_t most = kLongest;
  std::array<std::byte, kLongest> room;
  std::array<std::byte, kReferringBytes> referring;
};

/// Only while the client may not have seen that reply: it has sent nothing else in the slot.
const ReferringCall* Caller::about(const Callback& callback) const {
  const ReferringCall* request = callback.about();
  if (request == nullptr) return nullptr;
  const Session* session = state_.sessions.find(request->session);
  const bool last =
      session != nullptr && session->slots.next(request->slot) == request->sequence + 1;
  return last ? request : nullptr;
}

Caller::Caller(ServerState& state) : state_(state), lines_(state) {}
Caller::~Caller() = default;

void Caller::connection_opened(ServerConnection& connection) {
  connections_[connection.id] = &connection;
}

bool Caller::reaches(ClientId client) const {
  return state_.sessions.to_call_back(client) != nullptr ||
         lines_.state(client) == CallbackLines::State::kUp;
}

bool Caller::call(ClientId client, std::unique_ptr<Callback> callback) {
  if (lines_.state(client) != CallbackLines::State::kNone) {
    return lines_.call(client, std::move(callback));
  }
  switch (start(client, callback)) {
    case Start::kSent:
      return true;
    case Start::kNoWay:
      return false;
    case Start::kNoSlot:
      break;
  }
  Waiting& waiting = waiting_[client];
  if (waiting.size() >= kMostWaiting) return false;
  waiting.push_back(std::move(callback));
  return true;
}

Caller::Start Caller::start(ClientId client, std::unique_ptr<Callback>& callback) {
  Session* session = state_.sessions.to_call_back(client);
  if (session == nullptr) return Start::kNoWay;
  const auto connection = connections_.find(session->backchannel.back());
  if (connection == connections_.end()) return Start::kNoWay;
  const auto ticket = session->back_channel->slots.take();
  if (!ticket) return Start::kNoSlot;
  auto sent = std::make_unique<Sent>(*this, ++last_key_);
  sent->client = client;
  sent->callback = std::move(callback);
  sent->connection = connection->first;
  sent->session = session->id;
  sent->ticket = *ticket;
  sent->most =
      std::min<std::size_t>(connection->second->max_backward_call(), session->back.max_request);
  if (!sent->encode(session->back_channel->target, about(*sent->callback))) {
    session->back_channel->slots.gave_up(*ticket);
    callback = std::move(sent->callback);
    return Start::kNoWay;
  }
  // While it is in connections_ its loop has not ended.
  connection->second->loop().post([this, key = sent->key] { transmit(key); });
  sent_.emplace(sent->key, std::move(sent));
  return Start::kSent;
}

/// A slot of the client's has become free, or there are none any more.
void Caller::start_waiting(ClientId client) {
  const auto its = waiting_.find(client);
  if (its == waiting_.end()) return;
  Waiting waiting = std::move(its->second);
  waiting_.erase(its);
  Waiting lost;
  while (!waiting.empty()) {
    const Start started = start(client, waiting.front());
    if (started == Start::kNoSlot) break;
    if (started == Start::kNoWay) lost.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  if (!waiting.empty()) waiting_[client] = std::move(waiting);
  for (const auto& callback : lost)
    callback->finished(nullptr);
}

void Caller::transmit(std::uint64_t key) {
  Sent* sent = nullptr;
  ServerConnection* connection = nullptr;
  {
    std::lock_guard lock(state_.mutex);
    sent = sent_.at(key).get();
    const auto found = connections_.find(sent->connection);
    // It closes on this thread, so it stays until this function is done.
    if (found != connections_.end()) connection = found->second;
  }
  if (connection != nullptr) {
    const Result<void> taken = connection->send_backward(*sent);
    if (taken.ok()) return;
    sent->error = taken.error();
  } else {
    sent->error = Error{Errc::kClosed, 0, "the connection"};
  }
  sent->ok = false;
  completed(*sent);
}

const CallbackReply* Caller::judge(Sent& sent, CallbackReply* reply, bool* again) {
  Session* session = state_.sessions.find(sent.session);
  BackChannel* channel =
      session != nullptr && session->back_channel ? &*session->back_channel : nullptr;
  if (channel == nullptr) return nullptr;
  if (!sent.ok) {
    channel->slots.gave_up(sent.ticket);
    // A connection that is gone is no longer in the session; the next one may do.
    if (sent.error.code != Errc::kClosed) channel->failed = true;
    return nullptr;
  }
  *reply = read_callback_reply(sent.reply, &sent.sequence, sent.callback->operation());
  if (reply->sequence_done) {
    channel->slots.succeeded(sent.ticket, reply->target_highest_slot);
    return reply->kind == CallbackReply::Kind::kDone ? reply : nullptr;
  }
  if (reply->kind != CallbackReply::Kind::kSequence) {
    channel->slots.gave_up(sent.ticket);
    channel->failed = true;
    return nullptr;
  }
  switch (channel->slots.refused(&sent.ticket, sequence_refusal(reply->status))) {
    case CallbackSlots::Next::kLater:
      channel->slots.gave_up(sent.ticket);
      break;
    case CallbackSlots::Next::kAgain:
      *again = sent.encode(channel->target, about(*sent.callback));
      if (!*again) channel->slots.gave_up(sent.ticket);
      break;
    case CallbackSlots::Next::kOtherSlot:
      break;
    case CallbackSlots::Next::kLost:
      channel->failed = true;
      break;
  }
  return nullptr;
}

void Caller::completed(Sent& sent) {
  std::unique_ptr<Sent> done;
  bool again = false;
  {
    std::lock_guard lock(state_.mutex);
    CallbackReply reply;
    const CallbackReply* said = judge(sent, &reply, &again);
    if (!again) {
      done = std::move(sent_.at(sent.key));
      sent_.erase(sent.key);
      done->callback->finished(said);
      start_waiting(done->client);
    }
  }
  if (again) transmit(sent.key);
}

}  // namespace nfsrdma::nfs4
