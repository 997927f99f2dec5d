// SPDX-License-Identifier: Apache-2.0
// CallTap: takes down the answered calls of one shard and hands them over in batches, so that
// somebody who watches costs the shard neither a lock nor a wake-up per call. What the taker has
// not come round to is bounded: beyond it calls are counted, not kept.
//
// On the shard's thread; `sink` is called there and passes batches on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "server/dispatch.h"

namespace nfsrdma {

/// Some calls, in the order of their answers, and how many before them were not kept.
struct CallBatch {
  std::vector<CallRecord> calls;
  std::uint64_t lost = 0;
};

class CallTap final : public CallObserver {
 public:
  static constexpr std::size_t kBatch = 256;
  static constexpr std::size_t kMostUnderWay = 64;
  static constexpr std::chrono::milliseconds kDelay{50};
  /// Gets a batch, which counts as under way for as long as anybody has it.
  using Sink = std::function<void(std::shared_ptr<const CallBatch>)>;

  CallTap(EventLoop& loop, Sink sink);

  void on_call_answered(const CallRecord& record) override;

 private:
  void flush();

  EventLoop& loop_;
  Sink sink_;
  CallBatch batch_;
  std::shared_ptr<std::atomic<std::size_t>> under_way_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  Timer timer_;
};

}  // namespace nfsrdma
