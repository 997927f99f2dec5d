// SPDX-License-Identifier: Apache-2.0
// RdmaClient's connection: how it comes up, how it ends, and who is told. rdma_client_call.cc
// marshals calls and takes replies, rdma_client_backward.cc answers the server's own calls.
#include "rpcrdma/requester.h"

#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/rdma_client.h"

namespace nfsrdma {

namespace {

RdmaClientOptions in_range(RdmaClientOptions options) {
  options.inline_bytes = valid_inline_size(options.inline_bytes);
  options.max_credits = std::clamp(options.max_credits, 1u, 1024u);
  return options;
}

/// Calls that `device` has room for in a queue pair's queues, beside what else is posted there.
/// Without shared receive queues its limit is the same for receives.
std::uint32_t calls_beside_others(const DeviceInfo& device, std::uint32_t receives) {
  const std::uint32_t limit = std::min(device.max_send_depth - 1, receives);
  return std::max(limit, kSpareReceives + 1) - kSpareReceives;
}

/// For the messages of both directions: as many calls as there may be credits must find room.
/// Virtual memory until used.
std::size_t message_budget(const RdmaClientOptions& options) {
  constexpr std::size_t kLeast = std::size_t{32} << 20;
  const std::size_t messages = 2 * std::size_t{options.max_credits + kSpareReceives};
  return std::max(kLeast, messages * BufferPool::charge(options.inline_bytes));
}

}  // namespace

std::unique_ptr<ClientTransport> make_rdma_transport(EventLoop& loop, Fabric& fabric,
                                                     const SocketAddress& server,
                                                     const RdmaClientOptions& options,
                                                     ClientTransportHandler& handler) {
  auto client = std::make_unique<RdmaClient>(loop, fabric, server, options, handler);
  client->start();
  return client;
}

RdmaClient::RdmaClient(EventLoop& loop, Fabric& fabric, const SocketAddress& server,
                       const RdmaClientOptions& options, ClientTransportHandler& handler)
    : loop_(loop),
      fabric_(fabric),
      server_(server),
      options_(in_range(options)),
      id_(next_connection_id()),
      handler_(handler),
      pool_(std::make_unique<BufferPool>(loop, message_budget(options_))),
      connect_timer_([this] {
        shut(Error{Errc::kTimedOut, ETIMEDOUT, "connect"}, "no answer");
      }),
      room_timer_([this] { pump(); }),
      since_(loop.now()),
      last_heard_(since_) {}

RdmaClient::~RdmaClient() {
  connector_.reset();
  state_ = State::kClosed;
  if (why_.where[0] == '\0') why_ = Error{Errc::kClosed, 0, "transport destroyed"};
  tear_down();
  fail_calls();
  for (auto& exchange : exchanges_)
    exchange->message_.reset();
  backward_replies_.clear();
  endpoint_.reset();
}

void RdmaClient::start() {
  connect_timer_.arm_after(loop_, options_.connect_timeout);
  auto connector = fabric_.connect(loop_, server_, *this);
  if (!connector.ok()) {
    shut(connector.error(), "cannot start connecting");
    return;
  }
  if (state_ == State::kConnecting) connector_ = std::move(connector).value();
}

Result<QueuePairOptions> RdmaClient::on_device(Device& device) {
  device_ = device.info();
  if (endpoint_ == nullptr) {
    RdmaEndpoint::Shape shape;
    shape.receive_bytes = options_.inline_bytes;
    shape.receive_depth = options_.max_credits + kSpareReceives;
    shape.send_completions = 2 * (options_.max_credits + kSpareReceives);
    NFSRDMA_TRY(endpoint_, RdmaEndpoint::create(loop_, device, *pool_, shape, *this));
    options_.max_credits =
        std::min(options_.max_credits, calls_beside_others(device_, endpoint_->receives().depth()));
    endpoint_->ensure_receives(1 + kSpareReceives);
    if (endpoint_->receive_count() == 0) return pool_->why_not();
  }
  QueuePairOptions options;
  options.domain = &endpoint_->domain();
  options.completions = &endpoint_->completions();
  options.receives = &endpoint_->receives();
  options.handler = this;
  options.send_depth = options_.max_credits + 1 + kSpareReceives;
  options.inbound_reads = std::min(options_.inbound_reads, device_.max_inbound_reads);
  options.outbound_reads = 0;  // a client never reads from its server
  private_data_ =
      PrivateData{options_.inline_bytes, options_.inline_bytes, device_.remote_invalidation}
          .encode();
  options.private_data = private_data_;
  return options;
}

void RdmaClient::on_connected(std::unique_ptr<QueuePair> queue_pair, ByteSpan private_data) {
  connect_timer_.cancel();
  queue_pair_ = std::move(queue_pair);
  queue_pair_->context = this;
  if (state_ != State::kConnecting) {
    queue_pair_->disconnect();
    return;
  }
  info_ = queue_pair_->info();
  const PrivateData ours{options_.inline_bytes, options_.inline_bytes, device_.remote_invalidation};
  inline_ = InlineThresholds::negotiate(ours, PrivateData::parse(private_data));
  state_ = State::kReady;
  since_ = last_heard_ = loop_.now();
  handler_.on_transport_ready();
}

void RdmaClient::on_connect_failed(Error error, const std::string& detail) {
  shut(error, detail);
}

void RdmaClient::on_disconnected(Error why) {
  const bool ours = state_ == State::kClosing;
  shut(why, ours ? "closed" : "connection lost: " + why.message());
}

/// The end of it all, reported from the loop.
void RdmaClient::shut(Error why, std::string detail) {
  if (state_ == State::kClosed) return;
  connect_timer_.cancel();
  state_ = State::kClosed;
  why_ = why;
  detail_ = std::move(detail);
  loop_.defer(*this);
}

void RdmaClient::close() {
  if (state_ == State::kReady) {
    state_ = State::kClosing;
    queue_pair_->disconnect();
  } else if (state_ == State::kConnecting) {
    connector_.reset();
    shut(Error{Errc::kClosed, 0, "close"}, "closed before it was connected");
  }
}

void RdmaClient::run_deferred() {
  if (state_ != State::kClosed) {
    pump();
    return;
  }
  connector_.reset();
  tear_down();
  fail_calls();
  handler_.on_transport_closed(why_, detail_);
}

void RdmaClient::tear_down() {
  if (endpoint_ == nullptr) return;
  endpoint_->retire(std::move(queue_pair_));
  for (auto& exchange : exchanges_) {
    endpoint_->work().forget(*exchange);
    exchange->withdraw();
  }
  for (auto& reply : backward_replies_) {
    endpoint_->work().forget(*reply);
    reply->message_.reset();
  }
}

void RdmaClient::fail_calls() {
  const Error gone{Errc::kClosed, why_.sys, "connection"};
  for (auto& exchange : exchanges_) {
    exchange->sending_ = exchange->awaiting_reply_ = false;
    ClientCall* call = std::exchange(exchange->call_, nullptr);
    if (call == nullptr) continue;
    call->transport_state = nullptr;
    call->ok = false;
    call->error = gone;
    call->on_complete();
  }
  outstanding_ = 0;
  while (ClientCall* call = waiting_.pop_front()) {
    call->ok = false;
    call->error = gone;
    call->on_complete();
  }
}

TransportKind RdmaClient::kind() const {
  switch (fabric_.kind()) {
    case FabricKind::kVerbs:
      return TransportKind::kVerbs;
    case FabricKind::kIwarp:
      return TransportKind::kIwarp;
    case FabricKind::kSimulated:
      break;
  }
  return TransportKind::kSimulated;
}

ConnectionInfo RdmaClient::describe() const {
  ConnectionInfo out;
  out.id = id_;
  out.transport = kind();
  out.device = device_.name;
  out.local = info_.local;
  out.peer = server_;
  out.inline_send = inline_.send;
  out.inline_recv = inline_.receive;
  out.credits = credits_;
  out.calls_in_progress = outstanding_;
  out.ord = info_.max_outbound_reads;
  out.ird = info_.max_inbound_reads;
  out.remote_invalidation = device_.remote_invalidation;
  out.crc = info_.crc;
  out.detail = info_.detail;
  out.age_seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(loop_.now() - since_).count());
  out.stats = stats_;
  return out;
}

}  // namespace nfsrdma
