// SPDX-License-Identifier: Apache-2.0
// A completion queue: a ring that grows to what was ever waiting in it at once. The handler is told
// at the end of a socket event, or at the end of the loop's turn when completions came up
// elsewhere.
#pragma once

#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma::iwarp {

class IwarpCompletionQueue final : public CompletionQueue, private Deferred {
 public:
  IwarpCompletionQueue(EventLoop& loop, CompletionHandler& handler, std::uint32_t depth);

  std::size_t poll(std::span<WorkCompletion> out) override;

  void push(const WorkCompletion& completion);
  /// Calls the handler when something waits and it was not told yet. The caller's object may be
  /// gone afterwards.
  void notify();
  /// `queue_pair` goes away: what it left here names it no more.
  void forget(const QueuePair& queue_pair);

 private:
  void run_deferred() override;
  void grow();

  EventLoop& loop_;
  CompletionHandler& handler_;
  std::vector<WorkCompletion> ring_;  // a power of two
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace nfsrdma::iwarp
