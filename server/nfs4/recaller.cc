// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/recaller.h"

#include <array>

#include "rpcrdma/base/event_loop.h"
#include "server/nfs4/callback.h"
#include "server/nfs4/server_state.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;

constexpr Duration kPause = std::chrono::seconds(1);  // before the same is asked again
constexpr std::size_t kLongest = 1024;                // of a CB_RECALL

}  // namespace

/// One CB_RECALL under way.
class Recaller::Sent final : public BackwardCall {
 public:
  Sent(Recaller& its_recaller, std::uint64_t its_key) : recaller(its_recaller), key(its_key) {}
  void on_complete() override { recaller.completed(*this); }

  /// False: it does not fit into what the connection takes.
  bool encode(const CallbackTarget& target, std::size_t most) {
    sequence = callback_sequence(session, ticket);
    xdr::CB_RECALL4args args;
    args.stateid = to_wire(stateid);
    args.fh.data = handle;
    message = encode_callback(MutableByteSpan(room).first(std::min(room.size(), most)), target,
                              &sequence, args);
    return !message.empty();
  }

  Recaller& recaller;
  const std::uint64_t key;
  DelegationNumber number = 0;
  ClientId client = 0;
  Stateid stateid;
  std::vector<std::byte> handle;
  ConnectionId connection = 0;
  SessionId session{};
  CallbackSlots::Ticket ticket;
  xdr::CB_SEQUENCE4args sequence;
  std::array<std::byte, kLongest> room;
};

Recaller::Recaller(ServerState& state) : state_(state) {}
Recaller::~Recaller() = default;

void Recaller::connection_opened(ServerConnection& connection) {
  connections_[connection.id] = &connection;
}

void Recaller::begin(DelegationNumber number) {
  send(number, recalls_[number]);
}

void Recaller::tick() {
  const TimePoint now = state_.now();
  waiting_.clear();  // all that is due is tried again now
  for (auto next = recalls_.begin(); next != recalls_.end();) {
    auto& [number, recall] = *next;
    const Delegation* delegation = state_.delegations.table().find(number);
    if (delegation == nullptr || delegation->phase != Delegation::Phase::kRecalled) {
      next = recalls_.erase(next);
      continue;
    }
    if (!recall.under_way && !recall.understood && now >= recall.next) send(number, recall);
    ++next;
  }
}

void Recaller::send(DelegationNumber number, Recall& recall) {
  recall.next = state_.now() + kPause;
  const Delegation* delegation = state_.delegations.table().find(number);
  if (delegation == nullptr) return;
  Session* session = state_.sessions.to_call_back(delegation->client);
  if (session == nullptr) return;
  const auto connection = connections_.find(session->backchannel.back());
  if (connection == connections_.end()) return;
  const auto ticket = session->back_channel->slots.take();
  if (!ticket) {
    waiting_[delegation->client].push_back(number);
    return;
  }
  auto sent = std::make_unique<Sent>(*this, ++last_key_);
  sent->number = number;
  sent->client = delegation->client;
  sent->stateid = state_.delegations.table().stateid_of(*delegation);
  sent->handle = delegation->handle;
  sent->connection = connection->first;
  sent->session = session->id;
  sent->ticket = *ticket;
  const std::size_t most =
      std::min<std::size_t>(connection->second->max_backward_call(), session->back.max_request);
  if (!sent->encode(session->back_channel->target, most)) {
    session->back_channel->slots.gave_up(*ticket);
    session->back_channel->failed = true;
    return;
  }
  recall.under_way = true;
  // While it is in connections_ its loop has not ended.
  connection->second->loop().post([this, key = sent->key] { transmit(key); });
  sent_.emplace(sent->key, std::move(sent));
}

/// A slot of the client's has become free.
void Recaller::send_waiting(ClientId client) {
  const auto its = waiting_.find(client);
  if (its == waiting_.end()) return;
  while (!its->second.empty()) {
    const DelegationNumber number = its->second.front();
    its->second.pop_front();
    const auto recall = recalls_.find(number);
    if (recall == recalls_.end() || recall->second.under_way || recall->second.understood) continue;
    send(number, recall->second);
    break;
  }
  if (its->second.empty()) waiting_.erase(its);
}

void Recaller::transmit(std::uint64_t key) {
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

/// What came back: how the slot stands, whether the channel works, whether the client knows.
void Recaller::judge(Sent& sent, Recall* recall, bool* again) {
  Session* session = state_.sessions.find(sent.session);
  BackChannel* channel =
      session != nullptr && session->back_channel ? &*session->back_channel : nullptr;
  if (channel == nullptr) return;
  if (!sent.ok) {
    channel->slots.gave_up(sent.ticket);
    // A connection that is gone is no longer in the session; the next one may do.
    if (sent.error.code != Errc::kClosed) channel->failed = true;
    return;
  }
  const CallbackReply reply =
      read_callback_reply(sent.reply, &sent.sequence, xdr::nfs_cb_opnum4::OP_CB_RECALL);
  if (reply.sequence_done) {
    channel->slots.succeeded(sent.ticket, reply.target_highest_slot);
    // Any other answer to it (the OPEN's reply may still be on its way) is asked for again.
    if (recall != nullptr && reply.kind == CallbackReply::Kind::kDone) {
      recall->understood = reply.status == nfsstat4::NFS4_OK;
    }
    return;
  }
  if (reply.kind != CallbackReply::Kind::kSequence) {
    channel->slots.gave_up(sent.ticket);
    channel->failed = true;
    return;
  }
  switch (channel->slots.refused(&sent.ticket, sequence_refusal(reply.status))) {
    case CallbackSlots::Next::kLater:
      channel->slots.gave_up(sent.ticket);
      return;
    case CallbackSlots::Next::kAgain:
      *again = sent.encode(channel->target, sent.room.size());
      if (!*again) channel->slots.gave_up(sent.ticket);
      return;
    case CallbackSlots::Next::kOtherSlot:
      return;
    case CallbackSlots::Next::kLost:
      channel->failed = true;
      return;
  }
}

void Recaller::completed(Sent& sent) {
  std::unique_ptr<Sent> done;
  bool again = false;
  {
    std::lock_guard lock(state_.mutex);
    const auto recall = recalls_.find(sent.number);
    judge(sent, recall == recalls_.end() ? nullptr : &recall->second, &again);
    if (!again) {
      done = std::move(sent_.at(sent.key));
      sent_.erase(sent.key);
      if (recall != recalls_.end()) recall->second.under_way = false;
      send_waiting(done->client);
    }
  }
  if (again) transmit(sent.key);
}

}  // namespace nfsrdma::nfs4
