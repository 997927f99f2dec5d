// SPDX-License-Identifier: Apache-2.0
// AsyncEvents: brings a device's asynchronous events (ibv_get_async_event) to the queue pairs and
// devices they are about. librdmacm opens each device once per process, so all loops share one
// event fd and any of them may read an event that belongs to another: the registry finds the owners
// and posts to their loops. One per fabric, thread-safe.
//
// What becomes of each event, so that no request is lost:
//   the queue pair, its CQ or SRQ, or the device is broken
//                       its connections end; clients connect again and send again. Of the loops
//                       that share the device, those whose queues are whole go on
//   the last receive of a queue pair that has ended came back to its SRQ
//                       it need not be waited for any longer
//   port down, address, path or partition changed
//                       nothing: the adapter sends again until its retries are used up, so a short
//                       outage is survived; after a long one the work fails and the connection ends
//   the rest            written down
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma::verbs {

class AsyncTarget {
 public:
  virtual ~AsyncTarget() = default;
  /// On the target's own loop. `queue`: the completion or receive queue that is broken, or null. It
  /// may be gone by now. Devices hear of those of others, too.
  virtual void on_async_event(ibv_event_type type, const void* queue) = 0;
};

class AsyncEvents {
 public:
  /// Registers while it lives. Belongs to the target's thread.
  class Registration {
   public:
    /// For what breaks `queue_pair`.
    Registration(AsyncEvents& events, ibv_qp* queue_pair, EventLoop& loop, AsyncTarget& target)
        : Registration(events, queue_pair, queue_pair->context, loop, target) {}
    /// For what breaks the device as a whole.
    Registration(AsyncEvents& events, ibv_context* context, EventLoop& loop, AsyncTarget& target)
        : Registration(events, nullptr, context, loop, target) {}
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    Registration(AsyncEvents& events, ibv_qp* queue_pair, ibv_context* context, EventLoop& loop,
                 AsyncTarget& target);
    AsyncEvents& events_;
    std::shared_ptr<AsyncTarget*> anchor_;  // *anchor_ is null once the target is gone
  };

  /// Reads and hands on whatever waits on `context`. Any thread.
  void drain(ibv_context* context);
  /// Hands on one event of `context`. For drain() and tests.
  void dispatch(const ibv_async_event& event, const ibv_context* context);

 private:
  struct Owner {
    const ibv_qp* queue_pair;  // null: the device
    const ibv_context* context;
    EventLoop* loop;
    std::shared_ptr<AsyncTarget*> anchor;
  };
  template <typename Concerned>
  void tell(ibv_event_type type, const void* queue, Concerned concerned);

  std::mutex mutex_;
  std::unordered_map<const void*, Owner> owners_;  // by anchor; guarded by mutex_
};

}  // namespace nfsrdma::verbs
