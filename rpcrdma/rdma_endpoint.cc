// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/rdma_endpoint.h"

#include <algorithm>
#include <array>

namespace nfsrdma {

namespace {
constexpr std::size_t kBatch = 64;  // completions
constexpr int kBatchesInOneTurn = 4;
}  // namespace

Result<std::unique_ptr<RdmaEndpoint>> RdmaEndpoint::create(EventLoop& loop, Device& device,
                                                           BufferPool& pool, const Shape& shape,
                                                           MessageHandler& handler) {
  std::unique_ptr<RdmaEndpoint> made(new RdmaEndpoint(loop, device, pool, shape, handler));
  NFSRDMA_TRY(made->domain_, device.create_protection_domain());
  NFSRDMA_CHECK_OK(pool.add_domain(*made->domain_));
  NFSRDMA_TRY(made->completions_, device.create_completion_queue(
                                      loop, *made, shape.receive_depth + shape.send_completions));
  NFSRDMA_TRY(made->receives_,
              device.create_shared_receive_queue(*made->domain_, shape.receive_depth));
  made->shape_.receive_depth = std::min(shape.receive_depth, made->receives_->depth());
  return made;
}

RdmaEndpoint::~RdmaEndpoint() {
  receives_.reset();
  completions_.reset();
  slots_.clear();
  if (domain_ != nullptr) pool_.remove_domain(*domain_);
}

void RdmaEndpoint::ensure_receives(std::uint32_t count) {
  wanted_receives_ = std::min(count, shape_.receive_depth);
  while (slots_.size() < wanted_receives_ && add_receive()) {
  }
}

bool RdmaEndpoint::add_receive() {
  Buffer buffer = pool_.acquire(shape_.receive_bytes, shape_.receive_stage);
  if (!buffer) return false;
  slots_.push_back({});
  slots_.back().buffer = std::move(buffer);
  repost(static_cast<std::uint32_t>(slots_.size() - 1));
  return true;
}

void RdmaEndpoint::repost(std::uint32_t slot) {
  ReceiveSlot& receive = slots_[slot];
  NFSRDMA_DCHECK(!receive.posted);
  receive.generation = (receive.generation + 1) & 0xffffff;
  const Sge sge{receive.buffer.data(), shape_.receive_bytes, lkey(receive.buffer)};
  receive.posted =
      receives_->post(make_wr_id(WorkKind::kReceive, receive.generation, slot), sge).ok();
  if (!receive.posted) ++broken_;
  if (slots_.size() < wanted_receives_) add_receive();
}

/// The queue tells of what comes, not of what was left in it.
void RdmaEndpoint::on_completions() {
  if (poll()) loop_.defer(*this);
}

bool RdmaEndpoint::poll() {
  if (polling_) return false;  // the loop below, of a caller, goes on
  polling_ = true;
  std::array<WorkCompletion, kBatch> batch;
  bool more = true;
  for (int i = 0; more && i < kBatchesInOneTurn; ++i) {
    const std::size_t count = completions_->poll(batch);
    for (std::size_t j = 0; j < count; ++j)
      dispatch(batch[j]);
    more = count == batch.size();
  }
  polling_ = false;
  return more;
}

void RdmaEndpoint::poll_all() {
  while (poll()) {
  }
}

void RdmaEndpoint::dispatch(const WorkCompletion& completion) {
  switch (wr_kind(completion.wr_id)) {
    case WorkKind::kReceive:
      received(completion);
      return;
    case WorkKind::kOwned:
      if (!work_.complete(completion.wr_id, completion.status)) ++stale_;
      return;
    case WorkKind::kLink:
      return;  // failed; the chain's last request reports for all
  }
  ++stale_;
}

void RdmaEndpoint::received(const WorkCompletion& completion) {
  const std::uint32_t slot = wr_slot(completion.wr_id);
  if (slot >= slots_.size() || !slots_[slot].posted ||
      slots_[slot].generation != wr_generation(completion.wr_id)) {
    ++stale_;
    return;
  }
  slots_[slot].posted = false;
  const bool usable = completion.status == WorkStatus::kSuccess &&
                      completion.queue_pair != nullptr && completion.queue_pair != retired_;
  if (!usable) {
    repost(slot);
    return;
  }
  ReceivedMessage message;
  message.slot = slot;
  message.bytes = {slots_[slot].buffer.data(),
                   std::min(completion.byte_count, shape_.receive_bytes)};
  message.queue_pair = completion.queue_pair;
  message.invalidated = completion.invalidated;
  message.invalidated_handle = completion.invalidated_handle;
  handler_.on_message(message);
}

void RdmaEndpoint::retire(std::unique_ptr<QueuePair> queue_pair) {
  if (queue_pair == nullptr) return;
  poll_all();
  retired_ = queue_pair.get();
  queue_pair.reset();
  poll_all();
  retired_ = nullptr;
}

}  // namespace nfsrdma
