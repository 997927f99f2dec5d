// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/completion_queue.h"

#include <algorithm>
#include <bit>

namespace nfsrdma::iwarp {

IwarpCompletionQueue::IwarpCompletionQueue(EventLoop& loop, CompletionHandler& handler,
                                           std::uint32_t depth)
    : loop_(loop), handler_(handler), ring_(std::bit_ceil(std::clamp(depth, 16u, 1024u))) {}

std::size_t IwarpCompletionQueue::poll(std::span<WorkCompletion> out) {
  const std::size_t n = std::min(out.size(), count_);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = ring_[(first_ + i) & (ring_.size() - 1)];
  first_ = (first_ + n) & (ring_.size() - 1);
  count_ -= n;
  return n;
}

void IwarpCompletionQueue::push(const WorkCompletion& completion) {
  if (count_ == ring_.size()) grow();
  ring_[(first_ + count_++) & (ring_.size() - 1)] = completion;
  loop_.defer(*this);
}

void IwarpCompletionQueue::grow() {
  std::vector<WorkCompletion> larger(ring_.size() * 2);
  for (std::size_t i = 0; i < count_; ++i)
    larger[i] = ring_[(first_ + i) & (ring_.size() - 1)];
  ring_.swap(larger);
  first_ = 0;
}

void IwarpCompletionQueue::notify() {
  if (!linked()) return;
  unlink();
  if (count_ > 0) handler_.on_completions();
}

void IwarpCompletionQueue::run_deferred() {
  if (count_ > 0) handler_.on_completions();
}

void IwarpCompletionQueue::forget(const QueuePair& queue_pair) {
  for (std::size_t i = 0; i < count_; ++i) {
    WorkCompletion& completion = ring_[(first_ + i) & (ring_.size() - 1)];
    if (completion.queue_pair == &queue_pair) completion.queue_pair = nullptr;
  }
}

}  // namespace nfsrdma::iwarp
