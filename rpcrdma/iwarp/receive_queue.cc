// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/receive_queue.h"

namespace nfsrdma::iwarp {

IwarpReceiveQueue::IwarpReceiveQueue(EventLoop& loop, std::uint32_t depth)
    : loop_(loop), depth_(depth) {
  posted_.reserve(depth);
}

Result<void> IwarpReceiveQueue::post(std::uint64_t wr_id, Sge buffer) {
  if (posted_.size() >= depth_) return Error{Errc::kExhausted, 0, "shared receive queue full"};
  posted_.push_back({wr_id, buffer});
  if (!starved_.empty()) loop_.defer(*this);
  return {};
}

bool IwarpReceiveQueue::take(std::uint64_t* wr_id, Sge* buffer) {
  if (posted_.empty()) return false;
  *wr_id = posted_.back().wr_id;
  *buffer = posted_.back().buffer;
  posted_.pop_back();
  return true;
}

void IwarpReceiveQueue::give_back(std::uint64_t wr_id, Sge buffer) {
  posted_.push_back({wr_id, buffer});
  if (!starved_.empty()) loop_.defer(*this);
}

void IwarpReceiveQueue::run_deferred() {
  while (!posted_.empty()) {
    Starved* starved = starved_.pop_front();
    if (starved == nullptr) return;
    starved->resume_receiving();
  }
}

}  // namespace nfsrdma::iwarp
