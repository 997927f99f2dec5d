// SPDX-License-Identifier: Apache-2.0
// AsyncEvents: brings a device's asynchronous events (ibv_get_async_event) to the queue pairs they
// are about. librdmacm opens each device once per process, so all loops share one event fd and any
// of them may read an event that belongs to another: the registry finds the owner and posts to its
// loop. One per fabric, thread-safe.
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
  /// On the target's own loop.
  virtual void on_async_event(ibv_event_type type) = 0;
};

class AsyncEvents {
 public:
  /// Registers while it lives. Belongs to the target's thread.
  class Registration {
   public:
    Registration(AsyncEvents& events, ibv_qp* queue_pair, EventLoop& loop, AsyncTarget& target);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    AsyncEvents& events_;
    ibv_qp* queue_pair_;
    std::shared_ptr<AsyncTarget*> anchor_;  // *anchor_ is null once the target is gone
  };

  /// Reads and hands on whatever waits on `context`. Any thread.
  void drain(ibv_context* context);

 private:
  struct Owner {
    EventLoop* loop;
    std::shared_ptr<AsyncTarget*> anchor;
  };
  void dispatch(const ibv_async_event& event, const char* device);

  std::mutex mutex_;
  std::unordered_map<ibv_qp*, Owner> owners_;  // guarded by mutex_
};

}  // namespace nfsrdma::verbs
