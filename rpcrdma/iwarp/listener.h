// SPDX-License-Identifier: Apache-2.0
// The passive side: a listening TCP socket and, per connection, the wait for the MPA Request.
#pragma once

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/iwarp/device.h"

namespace nfsrdma::iwarp {

class IwarpFabric;

class IwarpListener final : public Listener, private FdWatcher {
 public:
  static Result<std::unique_ptr<Listener>> create(IwarpFabric& fabric, EventLoop& loop,
                                                  const SocketAddress& address,
                                                  IncomingHandler& handler);
  ~IwarpListener() override;
  const SocketAddress& address() const override { return address_; }

 private:
  IwarpListener(IwarpFabric& fabric, EventLoop& loop, UniqueFd fd, const SocketAddress& address,
                IncomingHandler& handler);
  void on_fd_ready(std::uint32_t events) override;
  void accept_failed(int error);
  void watch();

  IwarpFabric& fabric_;
  EventLoop& loop_;
  UniqueFd fd_;
  SocketAddress address_;
  IncomingHandler& handler_;
  Timer retry_;  // after running out of descriptors
  RateLimit log_limit_{5, std::chrono::seconds(10)};
};

}  // namespace nfsrdma::iwarp
