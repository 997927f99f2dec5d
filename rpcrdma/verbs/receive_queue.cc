// SPDX-License-Identifier: Apache-2.0
// See receive_queue.h.
#include "rpcrdma/verbs/receive_queue.h"

#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/device.h"
#include "rpcrdma/verbs/protection_domain.h"
#include "rpcrdma/verbs/work_id.h"

namespace nfsrdma::verbs {

namespace {

// Without SRQ: receives that one of a server's queue pairs holds, above the credits that a peer is
// granted.
constexpr std::uint32_t kShare = 64;
// An SRQ of fewer receives than were wanted, and than these, serves worse than queue pairs that
// have their own.
constexpr std::uint32_t kLeastShared = 1024;

ibv_sge to_ibv(const Sge& sge) {
  return {reinterpret_cast<std::uintptr_t>(sge.address), sge.length, sge.lkey};
}

/// Of `*depth` receives or, where that is too many, of fewer; null when the device makes none that
/// is of use.
Result<SrqHandle> make_srq(VerbsDevice& device, ibv_pd* domain, std::uint32_t* depth) {
  const std::uint32_t wanted = std::min(*depth, device.traits().max_receive_depth);
  for (std::uint32_t size = wanted;; size /= 2) {
    ibv_srq_init_attr attr{};
    attr.attr.max_wr = size;
    attr.attr.max_sge = 1;
    SrqHandle srq = own(device.commands(), [&] { return ::ibv_create_srq(domain, &attr); });
    const int err = errno;
    if (srq) {
      if (size < wanted) {
        log_notice("verbs: {} makes a shared receive queue of {} receives, not of {}",
                   device.info().name, size, wanted);
      }
      *depth = size;
      return srq;
    }
    if (means_broken(err)) return system_error("ibv_create_srq", err);
    if (size / 2 < kLeastShared) {
      device.forget_shared_receive_queues(device.queue_refusal("ibv_create_srq", err));
      return srq;
    }
  }
}

}  // namespace

ReceiveQueue::ReceiveQueue(VerbsDevice& device, SrqHandle srq, std::uint32_t depth,
                           std::uint32_t id)
    : device_(device), id_(id), srq_(std::move(srq)), slots_(depth) {
  if (!srq_) {
    whole_ = std::min(depth, device.traits().max_receive_depth);
    share_ = std::min(kShare, whole_);
  }
  device.add_user();
  free_.reserve(depth);
  for (std::uint32_t slot = depth; slot-- > 0;)
    free_.push_back(slot);
}

Result<std::unique_ptr<SharedReceiveQueue>> ReceiveQueue::create(VerbsDevice& device,
                                                                 VerbsProtectionDomain& domain,
                                                                 std::uint32_t depth,
                                                                 std::uint32_t id) {
  if (depth == 0) return Error{Errc::kInvalid, 0, "receive queue of depth 0"};
  SrqHandle srq;
  if (device.traits().shared_receive_queue) {
    NFSRDMA_TRY(srq, make_srq(device, domain.get(), &depth));
  }
  std::unique_ptr<ReceiveQueue> queue(new ReceiveQueue(device, std::move(srq), depth, id));
  device.add_receive_queue(id, *queue);
  return std::unique_ptr<SharedReceiveQueue>(std::move(queue));
}

ReceiveQueue::~ReceiveQueue() {
  device_.remove_receive_queue(id_);
  srq_.reset();
  device_.remove_user();
}

Result<void> ReceiveQueue::post(std::uint64_t wr_id, Sge buffer) {
  if (free_.empty()) return Error{Errc::kExhausted, 0, "receive queue full"};
  const std::uint32_t slot = free_.back();
  slots_[slot] = {wr_id, buffer, nullptr, Slot::State::kStock};
  free_.pop_back();
  if (srq_) {
    auto posted = post_slot(slot);
    if (!posted.ok()) {
      slots_[slot].state = Slot::State::kFree;
      free_.push_back(slot);
    }
    return posted;
  }
  stock_.push_back(slot);
  deal();
  return {};
}

Result<void> ReceiveQueue::post_slot(std::uint32_t slot) {
  ibv_sge sge = to_ibv(slots_[slot].buffer);
  ibv_recv_wr request{};
  request.wr_id = WorkId{WorkKind::kReceive, id_, slot}.encode();
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int err = ::ibv_post_srq_recv(srq_.get(), &request, &bad); err != 0) {
    return system_error("ibv_post_srq_recv", err);
  }
  slots_[slot].state = Slot::State::kPosted;
  return {};
}

Result<void> ReceiveQueue::post_to(Member& member, std::uint32_t slot) {
  ibv_sge sge = to_ibv(slots_[slot].buffer);
  ibv_recv_wr request{};
  request.wr_id = WorkId{WorkKind::kReceive, id_, slot}.encode();
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int err = ::ibv_post_recv(member.queue_pair, &request, &bad); err != 0) {
    return system_error("ibv_post_recv", err);
  }
  slots_[slot].state = Slot::State::kPosted;
  slots_[slot].holder = member.queue_pair;
  ++member.held;
  return {};
}

void ReceiveQueue::deal() {
  while (!stock_.empty()) {
    // The hungriest first. A broken queue pair still takes receives and flushes them back; its
    // detach() ends that.
    auto member =
        std::min_element(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
          return std::pair(a.full(), a.held) < std::pair(b.full(), b.held);
        });
    if (member == members_.end() || member->full()) return;
    const std::uint32_t slot = stock_.back();
    if (auto posted = post_to(*member, slot); !posted.ok()) {
      log_debug("verbs: {}", posted.error().message());
      members_.erase(member);  // breaking; what it holds comes back by detach()
      continue;
    }
    stock_.pop_back();
  }
}

ReceiveQueue::Member* ReceiveQueue::member_of(ibv_qp* queue_pair) {
  for (Member& member : members_) {
    if (member.queue_pair == queue_pair) return &member;
  }
  return nullptr;
}

Result<void> ReceiveQueue::attach(ibv_qp* queue_pair, std::uint32_t most) {
  if (srq_) return {};
  members_.push_back({queue_pair, most, 0});
  deal();
  Member* member = member_of(queue_pair);
  // A queue that nobody has filled yet is its user's choice; one that others hold is a limit.
  if (member != nullptr && (member->held > 0 || free_.size() == slots_.size())) return {};
  std::erase_if(members_, [&](const Member& m) { return m.queue_pair == queue_pair; });
  return Error{Errc::kExhausted, 0, "no receive buffers left for another connection"};
}

void ReceiveQueue::detach(ibv_qp* queue_pair) {
  if (srq_) return;
  std::erase_if(members_, [&](const Member& m) { return m.queue_pair == queue_pair; });
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].state == Slot::State::kPosted && slots_[slot].holder == queue_pair) {
      slots_[slot].state = Slot::State::kStock;
      slots_[slot].holder = nullptr;
      stock_.push_back(slot);
    }
  }
  deal();
}

bool ReceiveQueue::take(std::uint32_t slot, std::uint64_t* wr_id) {
  if (slot >= slots_.size() || slots_[slot].state != Slot::State::kPosted) return false;
  *wr_id = slots_[slot].wr_id;
  if (Member* member = member_of(slots_[slot].holder); member != nullptr) --member->held;
  slots_[slot] = {};
  free_.push_back(slot);
  if (!srq_) deal();
  return true;
}

void ReceiveQueue::give_back(std::uint32_t slot) {
  if (slot >= slots_.size() || slots_[slot].state != Slot::State::kPosted) return;
  if (srq_) {
    if (auto posted = post_slot(slot); !posted.ok()) {
      log_warning("verbs: a receive is lost: {}", posted.error().message());
    }
    return;
  }
  // Its queue pair is flushing: dealt again once another one is hungry.
  std::erase_if(members_, [&](const Member& m) { return m.queue_pair == slots_[slot].holder; });
  slots_[slot].state = Slot::State::kStock;
  slots_[slot].holder = nullptr;
  stock_.push_back(slot);
  deal();
}

}  // namespace nfsrdma::verbs
