// SPDX-License-Identifier: Apache-2.0
// A shared receive queue. A connection whose peer sends while it is empty stops reading its socket
// and waits here, in order, until buffers are posted.
//
// A Send takes its buffer when its first segment comes, and nothing above knows of it before the
// last one is there. So a peer that begins a Send and never ends it keeps a buffer that no account
// of credits has; with enough connections all of them, and everybody else waits (RFC 5042 wants one
// stream not to starve the others of a shared queue). Where somebody waits, Sends have a limit of
// time: who has taken longest ends first, and no more of them than wait.
#pragma once

#include <chrono>
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

/// A connection whose peer is in the middle of a Send: from take() until it unlinks itself.
class BegunSend : public ListNode<BegunSend> {
 public:
  virtual ~BegunSend() = default;
  /// It took too long, and others wait. Ends the connection, whose buffer comes back by
  /// give_back(); not from inside this call.
  virtual void send_overdue() = 0;

 private:
  friend class IwarpReceiveQueue;
  TimePoint since_{};
};

class IwarpReceiveQueue final : public SharedReceiveQueue, private Deferred {
 public:
  /// What a Send may take from its first segment to the last while somebody waits for a receive.
  /// TCP sends what was lost four times in it.
  static constexpr std::chrono::seconds kMostForASend{5};

  IwarpReceiveQueue(EventLoop& loop, std::uint32_t depth);

  Result<void> post(std::uint64_t wr_id, Sge buffer) override;
  std::uint32_t depth() const override { return depth_; }

  /// For a Send of `sender` that begins now; false when there is none: it may wait().
  bool take(BegunSend& sender, std::uint64_t* wr_id, Sge* buffer);
  /// The Send broke off.
  void give_back(std::uint64_t wr_id, Sge buffer);
  void wait(Starved& starved);

 private:
  struct Posted {
    std::uint64_t wr_id = 0;
    Sge buffer;
  };
  void run_deferred() override;
  /// Looks at who takes long when the first of them is due, if somebody waits.
  void watch();
  void on_overdue();

  EventLoop& loop_;
  std::uint32_t depth_;
  std::vector<Posted> posted_;  // last in, first out: stays warm in the cache
  IntrusiveList<Starved, Starved> starved_;
  IntrusiveList<BegunSend, BegunSend> begun_;  // the oldest first
  Timer overdue_;
};

}  // namespace nfsrdma::iwarp
