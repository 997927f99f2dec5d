// SPDX-License-Identifier: Apache-2.0
// See queue_pair.h: creation, connection state and the way down. queue_pair_post.cc has the work
// requests.
#include "rpcrdma/verbs/queue_pair.h"

#include <algorithm>
#include <utility>

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/addresses.h"
#include "rpcrdma/verbs/protection_domain.h"

namespace nfsrdma::verbs {

namespace {

// Small replies then need no fetch by the adapter; what siw and the hardware drivers have.
constexpr std::uint32_t kWantedInline = 64;
// An orderly close does not know when unsignalled work at the end of the queue is done.
constexpr std::chrono::milliseconds kUnsignaledGrace{100};
// For IBV_EVENT_QP_LAST_WQE_REACHED, which some drivers never send.
constexpr std::chrono::milliseconds kLastReceiveGrace{100};
// Not soon: a siw that is just sending answers a Read of nothing with what it sent last
// (siw_activate_tx() keeps the old sge[0]), which ends the connection.
constexpr std::chrono::seconds kNudges[] = {std::chrono::seconds(2), std::chrono::seconds(8)};

std::uint32_t send_places(const VerbsDevice& device, const QueuePairOptions& options) {
  const std::uint32_t nudge = device.traits().siw ? 1 : 0;
  return std::clamp(options.send_depth + nudge, 1U, device.info().max_send_depth);
}

std::uint32_t bind_places(const VerbsDevice& device, const QueuePairOptions& options) {
  const std::uint32_t sends = send_places(device, options);
  return std::min(binds_beside(sends), device.info().max_send_depth - sends);
}

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsDevice& device, const QueuePairOptions& options,
                               const VerbsOptions& verbs_options, Role role)
    : device_(device),
      loop_(device.loop()),
      options_(verbs_options),
      established_(role == Role::kClient),
      completions_(static_cast<VerbsCompletionQueue&>(*options.completions)),
      receives_(static_cast<ReceiveQueue&>(*options.receives)),
      // A client has its receives for itself, and its server may answer all calls in one go.
      own_receives_(role == Role::kClient ? receives_.whole() : receives_.share()),
      // Software drivers give a receive that they have begun back at once.
      last_receive_ended_(receives_.srq() == nullptr || device.traits().posts_by_system_call),
      handler_(*options.handler),
      exposes_by_window_(role == Role::kClient && device.traits().memory_windows),
      ring_(send_places(device, options), exposes_by_window_ ? bind_places(device, options) : 0),
      timer_([this] { drain_timed_out(); }),
      nudge_timer_([this] { nudge(); }) {}

Result<std::unique_ptr<VerbsQueuePair>> VerbsQueuePair::create(rdma_cm_id* id, VerbsDevice& device,
                                                               const QueuePairOptions& options,
                                                               const VerbsOptions& verbs_options,
                                                               Role role) {
  std::unique_ptr<VerbsQueuePair> pair(new VerbsQueuePair(device, options, verbs_options, role));
  NFSRDMA_CHECK_OK(pair->create_qp(id, options));
  pair->info_.local = address_of(::rdma_get_local_addr(id));
  pair->info_.peer = address_of(::rdma_get_peer_addr(id));
  pair->info_.detail = device.info().name + " port " + std::to_string(id->port_num) +
                       (device.traits().iwarp ? ", iWARP" : ", IB/RoCE");
  return pair;
}

Result<void> VerbsQueuePair::create_qp(rdma_cm_id* id, const QueuePairOptions& options) {
  NFSRDMA_CHECK_OK(completions_.reserve(demand(), receives_));
  reserved_ = true;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions_.get();
  attr.srq = receives_.srq();
  attr.qp_type = IBV_QPT_RC;
  attr.cap.max_send_wr = ring_.places();
  attr.cap.max_send_sge = device_.info().max_send_sge;
  attr.cap.max_recv_wr = own_receives_;
  attr.cap.max_recv_sge = 1;
  auto& domain = static_cast<VerbsProtectionDomain&>(*options.domain);
  ibv_qp_init_attr tried = attr;
  tried.cap.max_inline_data = kWantedInline;
  const auto make = [&] {
    return device_.commands().run([&] { return ::rdma_create_qp(id, domain.get(), &tried); });
  };
  if (make() != 0) {
    tried = attr;  // some providers have no inline data at all
    if (make() != 0) return device_.queue_refusal("rdma_create_qp", errno);
  }
  max_inline_ = tried.cap.max_inline_data;
  id_ = id;
  qp_ = id->qp;
  number_ = qp_->qp_num;
  owner_ = completions_.attach(*this, number_);
  async_.emplace(device_.async(), qp_, loop_, static_cast<AsyncTarget&>(*this));
  return receives_.attach(qp_, own_receives_);
}

VerbsQueuePair::~VerbsQueuePair() {
  timer_.cancel();
  if (owned_id_ && state_ < State::kDraining) cm_disconnect();
  state_ = State::kClosed;
  destroy_qp();
  if (owner_ != 0) completions_.forget(*this, owner_);
  if (reserved_) completions_.release(demand(), receives_);
}

int VerbsQueuePair::cm_disconnect() {
  return device_.commands().run([this] { return ::rdma_disconnect(owned_id_.get()); });
}

void VerbsQueuePair::destroy_qp() {
  if (qp_ == nullptr) return;
  async_.reset();
  end_windows();
  completions_.take_out();
  device_.commands().run([this] { ::rdma_destroy_qp(id_); });
  completions_.discard_receives(*this, number_);
  receives_.detach(qp_);
  qp_ = nullptr;
}

/// Before the ibv_qp goes, which rxe does not let go while windows are bound to it.
void VerbsQueuePair::end_windows() {
  const std::vector<Window*> windows = windows_.take();
  device_.commands().run([&] {
    for (Window* window : windows) {
      if (window->state == Window::State::kBound)
        ::ibv_dealloc_mw(std::exchange(window->mw, nullptr));
      window->state = Window::State::kEnded;
    }
  });
}

void VerbsQueuePair::take_id(CmIdHandle id) {
  id->context = static_cast<CmUser*>(this);
  owned_id_ = std::move(id);
}

void VerbsQueuePair::set_reads(std::uint32_t outbound, std::uint32_t inbound) {
  info_.max_outbound_reads = outbound;
  info_.max_inbound_reads = inbound;
}

void VerbsQueuePair::on_cm_event(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ESTABLISHED:
      // The server of an iWARP connection must not send first; its first message tells.
      if (!device_.traits().iwarp && !established_) establish();
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      return drain({Errc::kClosed, 0, "the peer closed the connection"});
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return drain({Errc::kClosed, ENODEV, "the RDMA device was removed"});
    case RDMA_CM_EVENT_ADDR_CHANGE:
      // Of a bond: the address is on another port now, and with it the way to the peer. A client
      // connects again over that.
      return drain({Errc::kClosed, ENETRESET, "the address moved to another port"});
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      return drain({Errc::kClosed, -event.status, "the handshake failed"});
    default:  // TIMEWAIT_EXIT: the queue pair's number may be used again; nobody here cares
      return;
  }
}

void VerbsQueuePair::on_async_event(ibv_event_type type, const void*) {
  if (type == IBV_EVENT_COMM_EST) {
    // Data came before the last message of the handshake, which may be lost.
    if (!owned_id_) return;
    device_.commands().run([this] { return ::rdma_notify(owned_id_.get(), IBV_EVENT_COMM_EST); });
    return;
  }
  if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
    // Of a queue pair that broke by itself, other events tell.
    last_receive_ended_ = true;
    if (state_ == State::kDraining) loop_.defer(*this);
    return;
  }
  drain({Errc::kProtocol, 0, ::ibv_event_type_str(type)});
}

void VerbsQueuePair::accepted() {
  if (device_.traits().siw && info_.max_outbound_reads > 0)
    nudge_timer_.arm_after(loop_, kNudges[0]);
}

void VerbsQueuePair::nudge() {
  if (established_ || state_ != State::kConnecting) return;
  log_debug("verbs: {}: no first message yet: nudging", info_.peer.text());
  post_empty_read();
  if (++nudges_ < std::size(kNudges)) nudge_timer_.arm_after(loop_, kNudges[nudges_]);
}

void VerbsQueuePair::establish() {
  established_ = true;
  nudge_timer_.cancel();
  if (state_ != State::kConnecting) return;
  state_ = State::kReady;
  handler_.on_established();
}

void VerbsQueuePair::disconnect() {
  if (state_ >= State::kClosing) return;
  if (ring_.outstanding() == 0) return drain({Errc::kClosed, 0, "disconnected"});
  state_ = State::kClosing;
  if (ring_.newest_is_signaled()) {
    timer_.arm_after(loop_, options_.drain_timeout);
  } else {
    timer_.arm_after(loop_, kUnsignaledGrace);
  }
}

void VerbsQueuePair::drain(Error why) {
  if (state_ >= State::kDraining) return;
  state_ = State::kDraining;
  why_ = why;
  // Moves the ibv_qp to the error state, which flushes it, and tells the peer.
  if (owned_id_ && cm_disconnect() != 0) {
    log_debug("verbs: {}: {}", info_.peer.text(), system_error("rdma_disconnect").message());
  }
  timer_.arm_after(loop_, options_.drain_timeout);
  if (ring_.outstanding() == 0) loop_.defer(*this);
}

void VerbsQueuePair::queue_emptied() {
  if (state_ == State::kClosing) drain({Errc::kClosed, 0, "disconnected"});
  if (state_ == State::kDraining) loop_.defer(*this);
}

void VerbsQueuePair::drain_timed_out() {
  if (state_ == State::kClosing) return drain({Errc::kClosed, 0, "disconnected"});
  if (state_ != State::kDraining) return;
  if (waits_for_last_receive_ && !std::exchange(last_receive_ended_, true)) {
    timer_.arm_after(loop_, options_.drain_timeout);
    return loop_.defer(*this);
  }
  log_debug("verbs: {}: {} work requests were never completed", info_.peer.text(),
            ring_.outstanding());
  completions_.run_handler();
  destroy_qp();
  completions_.run_handler();  // sends that the adapter ended meanwhile
  while (ring_.outstanding() > 0) {
    SendRing::Entry entry = ring_.pop();
    if (!entry.done) entry.status = WorkStatus::kFlushed;
    if (entry.reported()) report(entry);
  }
  loop_.defer(*this);
}

bool VerbsQueuePair::waits_for_last_receive() {
  if (last_receive_ended_ || qp_ == nullptr) return false;
  if (!std::exchange(waits_for_last_receive_, true)) timer_.arm_after(loop_, kLastReceiveGrace);
  return true;
}

void VerbsQueuePair::run_deferred() {
  if (state_ < State::kClosing) {
    // A failure drains, and is told then.
    if (!windows_.waiting().empty()) static_cast<void>(post_binds());
    return;
  }
  if (state_ != State::kDraining) return;
  // What arrived before the end is delivered before the end is told.
  if (!completions_.run_handler()) {
    loop_.defer(*this);
    return;
  }
  if (ring_.outstanding() > 0 || state_ != State::kDraining || waits_for_last_receive()) return;
  state_ = State::kClosed;
  timer_.cancel();
  handler_.on_disconnected(why_);
}

}  // namespace nfsrdma::verbs
