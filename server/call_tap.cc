// SPDX-License-Identifier: Apache-2.0
#include "server/call_tap.h"

#include <utility>

namespace nfsrdma {

CallTap::CallTap(EventLoop& loop, Sink sink)
    : loop_(loop), sink_(std::move(sink)), timer_([this] { flush(); }) {
  batch_.calls.reserve(kBatch);
}

void CallTap::on_call_answered(const CallRecord& record) {
  if (batch_.calls.size() >= kBatch) {
    ++batch_.lost;
    return;
  }
  batch_.calls.push_back(record);
  if (batch_.calls.size() == kBatch) {
    flush();
  } else if (!timer_.armed()) {
    timer_.arm_after(loop_, kDelay);
  }
}

void CallTap::flush() {
  if (batch_.calls.empty()) return;
  if (under_way_->load(std::memory_order_acquire) >= kMostUnderWay) {
    // Full is full: the timer looks again.
    timer_.arm_after(loop_, kDelay);
    return;
  }
  under_way_->fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<const CallBatch> taken(new CallBatch(std::exchange(batch_, {})),
                                         [count = under_way_](const CallBatch* batch) {
                                           delete batch;
                                           count->fetch_sub(1, std::memory_order_release);
                                         });
  batch_.calls.reserve(kBatch);
  sink_(std::move(taken));
}

}  // namespace nfsrdma
