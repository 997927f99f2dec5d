// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/receive_queue.h"

namespace nfsrdma::iwarp {

IwarpReceiveQueue::IwarpReceiveQueue(EventLoop& loop, std::uint32_t depth)
    : loop_(loop), depth_(depth), overdue_([this] { on_overdue(); }) {
  posted_.reserve(depth);
}

Result<void> IwarpReceiveQueue::post(std::uint64_t wr_id, Sge buffer) {
  if (posted_.size() >= depth_) return Error{Errc::kExhausted, 0, "shared receive queue full"};
  posted_.push_back({wr_id, buffer});
  if (!starved_.empty()) loop_.defer(*this);
  return {};
}

bool IwarpReceiveQueue::take(BegunSend& sender, std::uint64_t* wr_id, Sge* buffer) {
  if (posted_.empty()) return false;
  sender.since_ = loop_.now();
  begun_.push_back(sender);
  *wr_id = posted_.back().wr_id;
  *buffer = posted_.back().buffer;
  posted_.pop_back();
  if (!starved_.empty()) watch();
  return true;
}

void IwarpReceiveQueue::give_back(std::uint64_t wr_id, Sge buffer) {
  posted_.push_back({wr_id, buffer});
  if (!starved_.empty()) loop_.defer(*this);
}

void IwarpReceiveQueue::wait(Starved& starved) {
  starved_.push_back(starved);
  watch();
}

void IwarpReceiveQueue::run_deferred() {
  while (!posted_.empty()) {
    Starved* starved = starved_.pop_front();
    if (starved == nullptr) return;
    starved->resume_receiving();
  }
  if (!starved_.empty()) watch();
}

void IwarpReceiveQueue::watch() {
  BegunSend* oldest = begun_.front();
  if (oldest == nullptr || overdue_.armed()) return;
  overdue_.arm(loop_, oldest->since_ + kMostForASend);
}

void IwarpReceiveQueue::on_overdue() {
  std::size_t waiting = 0;
  starved_.for_each([&waiting](Starved&) { ++waiting; });
  bool ended = false;
  for (; waiting > 0; --waiting) {
    BegunSend* oldest = begun_.front();
    if (oldest == nullptr || loop_.now() < oldest->since_ + kMostForASend) break;
    oldest->unlink();
    oldest->send_overdue();
    ended = true;
  }
  // Else when the buffers of those are back: until then it is not known who still waits.
  if (!ended && waiting > 0) watch();
}

}  // namespace nfsrdma::iwarp
