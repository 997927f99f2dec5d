// SPDX-License-Identifier: Apache-2.0
// Channel: where FUSE requests come from. The one place that knows how they get into the process:
// today the session's own /dev/fuse descriptor, non-blocking in the event loop. Cloned descriptors
// per shard or FUSE over io_uring would stand behind the same few functions.
//
// Requests are received into pool blocks. While a request is being dispatched, block() is the one
// it lies in: who keeps it keeps the request's data without a copy, and the channel goes on with
// another.
#pragma once

#include <functional>

#include "client/fuse/block_pool.h"
#include "client/fuse/fuse_api.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class Channel final : public FdWatcher {
 public:
  /// `ended` is called once, from the loop, when the file system was unmounted or the connection to
  /// the kernel was cut.
  Channel(EventLoop& loop, fuse_session* session, BlockPool& pool, std::function<void()> ended);
  ~Channel() override;

  Result<void> start();
  void stop();
  const BlockRef& block() const { return block_; }

  void on_fd_ready(std::uint32_t events) override;

 private:
  /// False when there is nothing more to receive now.
  bool receive_one();
  void end();

  EventLoop& loop_;
  fuse_session* session_;
  BlockPool& pool_;
  std::function<void()> ended_;
  BlockRef block_;
  int fd_ = -1;
};

}  // namespace nfsrdma
