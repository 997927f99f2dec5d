// SPDX-License-Identifier: Apache-2.0
// ResponderShard: what the connections on one device share.
#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/responder.h"

namespace nfsrdma {

namespace {
// Receives are posted for every grant in force; together they may use so many eighths of the pool:
// with the default budget that is enough for ten thousand clients that are idle.
constexpr std::size_t kReceiveEighths = 3;

// So many have receives before anybody comes.
constexpr std::uint32_t kFirstClients = 8;

// A free call is kept, for the next message, up to this many ...
constexpr std::size_t kFreeCalls = 1024;
// ... and with its buffers up to this many, or a 64th of the pool.
constexpr std::size_t kWarmCalls = 128;

CreditLimits credit_limits(const RdmaServerLimits& limits, const BufferPool& pool) {
  CreditLimits credits = limits.credits;
  const std::size_t affordable =
      pool.budget() / 8 * kReceiveEighths / BufferPool::charge(limits.inline_bytes);
  credits.receives =
      static_cast<std::uint32_t>(std::min<std::size_t>(credits.receives, affordable));
  return credits;
}
}  // namespace

ResponderShard::ResponderShard(RdmaServer& server, Device& device)
    : server_(server),
      device_(device),
      ledger_(credit_limits(server.limits_, server.pool_)),
      warm_calls_(std::min(kWarmCalls, server.pool_.budget() / 64 /
                                           (BufferPool::charge(server.limits_.inline_bytes) +
                                            BufferPool::charge(Call::kInlineReply)))) {}

Result<std::unique_ptr<ResponderShard>> ResponderShard::create(RdmaServer& server, Device& device) {
  std::unique_ptr<ResponderShard> shard(new ResponderShard(server, device));
  RdmaEndpoint::Shape shape;
  shape.receive_bytes = server.limits_.inline_bytes;
  shape.receive_depth = shard->ledger_.limits().receives;
  shape.receive_stage = BufferStage::kReceive;
  NFSRDMA_TRY(shard->endpoint_,
              RdmaEndpoint::create(server.loop_, device, server.pool_, shape, *shard));
  shard->ledger_.limit_receives(shard->endpoint_->receives().depth());
  // Under load receives do not get more, and some clients have to find a place then as well.
  shard->cover_credits(kFirstClients * shard->ledger_.limits().initial);
  return shard;
}

ResponderShard::~ResponderShard() {
  while (ResponderCall* call = free_.pop_front())
    delete call;
}

BufferPool& ResponderShard::pool() {
  return server_.pool_;
}

void ResponderShard::accept(std::unique_ptr<ConnectRequest> request) {
  static thread_local RateLimit limit(10, std::chrono::seconds(10));
  const PrivateData theirs = PrivateData::parse(request->private_data());
  const RdmaServerLimits& limits = server_.limits_;
  auto connection = std::make_unique<ResponderConnection>(*this, request->peer(), theirs);
  if (!connection->reserve_credits()) {
    if (limit.allow()) {
      log_warning("{}: refused: no receive buffers left", request->peer().text());
    }
    request->reject({});
    if (ledger_.headroom() == 0) server_.make_room_on(*this);  // for the next attempt
    return;
  }
  const auto private_data = PrivateData{limits.inline_bytes, limits.inline_bytes, true}.encode();
  QueuePairOptions options;
  options.domain = &endpoint_->domain();
  options.completions = &endpoint_->completions();
  options.receives = &endpoint_->receives();
  options.handler = connection.get();
  options.send_depth = connection->send_queue_.depth();
  options.outbound_reads = std::min(
      {limits.outbound_reads, device_.info().max_outbound_reads, request->peer_inbound_reads()});
  options.private_data = private_data;
  auto queue_pair = request->accept(options);
  if (!queue_pair.ok()) {
    if (limit.allow()) {
      log_info("{}: accept: {}", request->peer().text(), queue_pair.error().message());
    }
    // The adapter has no more of something: for the next attempt.
    const Error& error = queue_pair.error();
    const bool full = error.code == Errc::kExhausted || error.sys == ENOMEM || error.sys == ENOSPC;
    if (full) server_.make_room_on(*this);
    return;
  }
  connections_.push_back(*connection);
  ++server_.connection_count_;
  connection.release()->start(std::move(queue_pair).value());
}

void ResponderShard::cover_credits(std::uint32_t more) {
  endpoint_->ensure_receives(ledger_.receives_needed() + more);
  ledger_.set_posted(endpoint_->receive_count());
}

std::uint32_t ResponderShard::receives_left() const {
  const std::uint32_t all = endpoint_->receive_count();
  return all - std::min(all, receives_held_);
}

void ResponderShard::receive_held(ResponderConnection& connection) {
  ++connection.receives_held_;
  ++receives_held_;
  // Grants leave the whole reserve: somebody uses receives that were not granted.
  if (receives_left() <= ledger_.limits().reserve / 2) cut_who_has_too_many();
}

void ResponderShard::receive_given_back(ResponderConnection& connection, std::uint32_t slot) {
  --connection.receives_held_;
  --receives_held_;
  endpoint_->repost(slot);
}

void ResponderShard::cut_who_has_too_many() {
  ResponderConnection* worst = nullptr;
  std::uint32_t most = 0;
  connections_.for_each([&](ResponderConnection& c) {
    const std::uint32_t allowed = c.credits_.allowed();
    if (!c.usable() || c.draining_ || c.receives_held_ <= allowed + most) return;
    most = c.receives_held_ - allowed;
    worst = &c;
  });
  if (worst != nullptr) worst->cut_off("more calls than it was granted, and receives run low");
}

ResponderCall* ResponderShard::take_call() {
  if (ResponderCall* call = free_.pop_front()) {
    --free_count_;
    return call;
  }
  return new ResponderCall(*this);
}

void ResponderShard::recycle(ResponderCall& call) {
  call.ListNode<WaitingTag>::unlink();
  call.BufferWaiter::unlink();
  call.Call::unlink();
  call.state_ = ResponderCall::State::kFree;
  call.payload_.reset();
  call.long_reply_buffer_.reset();
  call.header_.chunks.clear();
  if (free_count_ >= warm_calls_ || memory_is_short()) {
    call.send_buffer_.reset();
    call.reply_buffer_.reset();
    if (free_count_ >= kFreeCalls) {
      delete &call;
      return;
    }
    free_.push_back(call);
  } else {
    free_.push_front(call);
  }
  ++free_count_;
}

void ResponderShard::on_device_gone() {
  device_gone_ = true;
  server_.reap();
}

void ResponderShard::on_message(const ReceivedMessage& message) {
  static_cast<ResponderConnection*>(message.queue_pair->context)->on_message(message);
}

}  // namespace nfsrdma
