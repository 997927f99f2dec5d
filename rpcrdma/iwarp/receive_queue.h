// SPDX-License-Identifier: Apache-2.0
// A shared receive queue. A connection whose peer sends while it is empty stops reading its socket
// and waits here, in order, until buffers are posted.
#pragma once

#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma::iwarp {

/// A connection that waits for a receive buffer.
class Starved : public ListNode<Starved> {
 public:
  virtual ~Starved() = default;
  /// A buffer is there. May wait again.
  virtual void resume_receiving() = 0;
};

class IwarpReceiveQueue final : public SharedReceiveQueue, private Deferred {
 public:
  IwarpReceiveQueue(EventLoop& loop, std::uint32_t depth);

  Result<void> post(std::uint64_t wr_id, Sge buffer) override;
  std::uint32_t depth() const override { return depth_; }

  bool take(std::uint64_t* wr_id, Sge* buffer);
  void give_back(std::uint64_t wr_id, Sge buffer);
  void wait(Starved& starved) { starved_.push_back(starved); }

 private:
  struct Posted {
    std::uint64_t wr_id = 0;
    Sge buffer;
  };
  void run_deferred() override;

  EventLoop& loop_;
  std::uint32_t depth_;
  std::vector<Posted> posted_;  // last in, first out: stays warm in the cache
  IntrusiveList<Starved, Starved> starved_;
};

}  // namespace nfsrdma::iwarp
