// SPDX-License-Identifier: Apache-2.0
// Work requests of a VerbsQueuePair: posting and completion. Plain ibv_post_send (wire.md 6.3).
#include <algorithm>
#include <array>

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/queue_pair.h"

namespace nfsrdma::verbs {

namespace {

constexpr std::size_t kChain = 32;
constexpr std::size_t kMaxSges = 16;  // VerbsDevice caps max_send_sge at this
constexpr std::size_t kBinds = 8;     // of a chain, in front of the requests

ibv_wr_opcode opcode_of(const WorkRequest& request, bool with_invalidate) {
  switch (request.opcode) {
    case WorkOpcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case WorkOpcode::kRead:
      return IBV_WR_RDMA_READ;
    case WorkOpcode::kSendWithInvalidate:
      return with_invalidate ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
    default:
      return IBV_WR_SEND;
  }
}

/// Says the provider so of what it does not know? Some do of a queue pair that is broken, too.
bool is_refusal(int err) {
  return err == EINVAL || err == EOPNOTSUPP;
}

/// ibv_post_send's answer as an errno: providers also give it negated, or -1 with errno (siw).
int post_errno(int result) {
  if (result == -1) return errno != 0 ? errno : EIO;
  return result < 0 ? -result : result;
}

/// Did the way to the peer, or the adapter, fail? Of work that may be whole.
bool is_outage(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
      return true;
    default:
      return false;
  }
}

/// The ibv form of a chain; lives on the stack of one post.
struct Chain {
  std::array<ibv_send_wr, kChain> requests;
  std::array<ibv_sge, kChain * kMaxSges> sges;

  void fill(std::size_t index, const WorkRequest& from, std::uint64_t wr_id,
            const DeviceInfo& device, std::uint32_t max_inline) {
    ibv_send_wr& to = requests[index];
    to = {};
    to.wr_id = wr_id;
    to.opcode = opcode_of(from, device.send_with_invalidate);
    to.sg_list = &sges[index * kMaxSges];
    const bool reads = from.opcode == WorkOpcode::kRead;
    std::uint32_t total = 0;
    for (const Sge& sge : from.sges) {
      if (sge.length == 0) continue;  // some providers take 0 for 2^31
      const bool sink = reads && from.read_sink != nullptr;
      to.sg_list[to.num_sge++] = {reinterpret_cast<std::uintptr_t>(sge.address), sge.length,
                                  sink ? from.read_sink->lkey() : sge.lkey};
      total += sge.length;
    }
    // SendRing::Entry::adapter_reports() says why Reads always are.
    if (from.signaled || reads) to.send_flags |= IBV_SEND_SIGNALED;
    if (from.fence) to.send_flags |= IBV_SEND_FENCE;
    // siw's kernel side takes inline data with Send and Write alone.
    const bool may_inline = !reads && to.opcode != IBV_WR_SEND_WITH_INV;
    if (may_inline && total > 0 && total <= max_inline) to.send_flags |= IBV_SEND_INLINE;
    if (reads || from.opcode == WorkOpcode::kWrite) {
      to.wr.rdma.remote_addr = from.remote_offset;
      to.wr.rdma.rkey = from.remote_handle;
    } else if (to.opcode == IBV_WR_SEND_WITH_INV) {
      to.invalidate_rkey = from.remote_handle;
      to.wr.rdma.rkey = from.remote_handle;  // where siw's provider looks (wire.md 6.4)
    }
    if (index > 0) requests[index - 1].next = &to;
  }

  /// Not signalled: the bind is done before what follows it in the queue starts.
  void bind(std::size_t index, const Window& window, std::uint64_t wr_id) {
    ibv_send_wr& to = requests[index];
    to = {};
    to.wr_id = wr_id;
    to.opcode = IBV_WR_BIND_MW;
    to.bind_mw.mw = window.mw;
    to.bind_mw.rkey = window.handle;
    to.bind_mw.bind_info.mr = window.parent != nullptr ? window.parent->region : window.own_region;
    to.bind_mw.bind_info.addr = reinterpret_cast<std::uintptr_t>(window.bytes.data());
    to.bind_mw.bind_info.length = window.bytes.size();
    to.bind_mw.bind_info.mw_access_flags = static_cast<unsigned>(window.access);
    if (index > 0) requests[index - 1].next = &to;
  }
};

}  // namespace

Result<void> VerbsQueuePair::post(std::span<const WorkRequest> requests, std::size_t* posted) {
  *posted = 0;
  if (state_ >= State::kClosing || qp_ == nullptr) return Error{Errc::kClosed, 0, "post"};
  for (const WorkRequest& request : requests) {
    const std::size_t limit = request.opcode == WorkOpcode::kRead ? device_.info().max_read_sge
                                                                  : device_.info().max_send_sge;
    if (request.sges.size() > limit || request.opcode == WorkOpcode::kReceive) {
      return Error{Errc::kInvalid, 0, "work request"};
    }
  }
  if (windows_.waiting().size() > kBinds) NFSRDMA_CHECK_OK(post_binds());
  while (*posted < requests.size()) {
    if (ring_.room() == 0) return Error{Errc::kExhausted, 0, "send queue full"};
    std::size_t done = 0;
    const std::size_t count =
        std::min({kChain - kBinds, requests.size() - *posted, std::size_t{ring_.room()}});
    auto part = requests.subspan(*posted, count);
    auto result = post_chain(part, &done);
    *posted += done;
    if (!result.ok()) {
      // What was posted of the chain must not run on alone: the peer would see half a reply.
      drain(result.error());
      return result;
    }
  }
  return {};
}

/// The first windows that wait to be bound, and all of `requests`.
Result<void> VerbsQueuePair::post_chain(std::span<const WorkRequest> requests,
                                        std::size_t* posted) {
  Chain chain;
  const auto next_id = [this] {
    return WorkId{WorkKind::kSendQueue, owner_, ring_.next()}.encode();
  };
  const std::size_t binds = std::min(kBinds, windows_.waiting().size());
  for (std::size_t i = 0; i < binds; ++i) {
    Window& window = *windows_.waiting()[i];
    window.sequence = ring_.next();
    chain.bind(i, window, next_id());
    ring_.push_bind();
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const WorkRequest& request = requests[i];
    chain.fill(binds + i, request, next_id(), device_.info(), max_inline_);
    ring_.push(request.wr_id, request.opcode, request.signaled);
  }
  const std::size_t size = binds + requests.size();
  ibv_send_wr* bad = nullptr;
  const auto post_from = [&](ibv_send_wr* first) {
    return post_errno(device_.data_call([&] { return ::ibv_post_send(qp_, first, &bad); }));
  };
  int err = post_from(chain.requests.data());
  if (is_refusal(err) && bad != nullptr && bad->opcode == IBV_WR_SEND_WITH_INV) {
    for (ibv_send_wr* request = bad; request != nullptr; request = request->next) {
      if (request->opcode == IBV_WR_SEND_WITH_INV) request->opcode = IBV_WR_SEND;
    }
    err = post_from(bad);
    if (err == 0) device_.forget_send_with_invalidate();
  }
  std::size_t done = size;
  if (err != 0) done = bad == nullptr ? 0 : static_cast<std::size_t>(bad - chain.requests.data());
  windows_bound(std::min(done, binds));
  *posted = done - std::min(done, binds);
  if (err == 0) return {};
  const bool refused_bind = is_refusal(err) && bad != nullptr && bad->opcode == IBV_WR_BIND_MW;
  if (refused_bind && is_whole()) device_.forget_memory_windows();
  ring_.unpush(static_cast<std::uint32_t>(size - done));
  return system_error("ibv_post_send", err);
}

bool VerbsQueuePair::is_whole() {
  ibv_qp_attr attr{};
  ibv_qp_init_attr ignored{};
  const int err =
      device_.commands().run([&] { return ::ibv_query_qp(qp_, &attr, IBV_QP_STATE, &ignored); });
  return err == 0 && attr.qp_state == IBV_QPS_RTS;
}

void VerbsQueuePair::windows_bound(std::size_t count) {
  // libibverbs leaves it to us to note the new key.
  for (Window* window : windows_.waiting().first(count))
    window->mw->rkey = window->handle;
  windows_.bound(count);
}

Result<void> VerbsQueuePair::post_binds() {
  while (!windows_.waiting().empty()) {
    std::size_t none = 0;
    if (auto result = post_chain({}, &none); !result.ok()) {
      drain(result.error());
      return result;
    }
  }
  return {};
}

Result<void> VerbsQueuePair::bind(Window& window) {
  if (state_ >= State::kClosing || qp_ == nullptr) return Error{Errc::kClosed, 0, "expose"};
  if (ring_.bind_room() <= windows_.waiting().size()) {
    return Error{Errc::kExhausted, ENOMEM, "send queue full of binds"};
  }
  window.queue_pair = this;
  windows_.wait(window);
  loop_.defer(*this);
  return {};
}

bool VerbsQueuePair::unbind(Window& window) {
  const bool out_of_reach = windows_.forget(window);
  if (!out_of_reach && ring_.is_outstanding(window.sequence)) unbound_early_ = true;
  return out_of_reach;
}

void VerbsQueuePair::post_empty_read() {
  if (ring_.outstanding() > 0) return;  // the last one is not answered yet
  ibv_sge nothing{};                    // without an SGE siw would take what the slot held before
  ibv_send_wr request{};
  request.wr_id = WorkId{WorkKind::kSendQueue, owner_, ring_.next()}.encode();
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &nothing;
  request.num_sge = 1;
  ring_.push_internal(WorkOpcode::kRead);
  ibv_send_wr* bad = nullptr;
  const int err =
      post_errno(device_.data_call([&] { return ::ibv_post_send(qp_, &request, &bad); }));
  if (err == 0) return;
  ring_.unpush(1);
  log_debug("verbs: {}: {}", info_.peer.text(), system_error("ibv_post_send", err).message());
}

void VerbsQueuePair::send_ended(std::uint32_t sequence, ibv_wc_status status) {
  const bool flushed = status == IBV_WC_WR_FLUSH_ERR || failed_;
  // kFailed counts against whoever wanted the work (PoisonTable), kFlushed against nobody.
  const bool blameless = flushed || is_outage(status);
  const WorkStatus result = status == IBV_WC_SUCCESS ? WorkStatus::kSuccess
                            : blameless              ? WorkStatus::kFlushed
                                                     : WorkStatus::kFailed;
  if (!ring_.complete(sequence, result)) return;
  if (status == IBV_WC_MW_BIND_ERR && !unbound_early_) device_.forget_memory_windows();
  if (status != IBV_WC_SUCCESS) {
    failed_ = true;
    drain({flushed ? Errc::kClosed : Errc::kProtocol, 0, ::ibv_wc_status_str(status)});
  }
  SendRing::Entry entry;
  while (ring_.pop_ended(&entry)) {
    if (entry.reported()) report(entry);
  }
  if (ring_.outstanding() == 0) queue_emptied();
}

void VerbsQueuePair::report(const SendRing::Entry& entry) {
  WorkCompletion completion;
  completion.wr_id = entry.wr_id;
  completion.opcode = entry.opcode;
  completion.status = entry.status;
  completion.queue_pair = this;
  completions_.report(completion);
}

void VerbsQueuePair::receive_failed(ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS) return;
  drain({status == IBV_WC_WR_FLUSH_ERR ? Errc::kClosed : Errc::kProtocol, 0,
         ::ibv_wc_status_str(status)});
}

}  // namespace nfsrdma::verbs
