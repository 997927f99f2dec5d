// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "rpcrdma/iwarp/device.h"

namespace nfsrdma::iwarp {

class IwarpFabric final : public Fabric {
 public:
  explicit IwarpFabric(const IwarpOptions& options) : state_(options) {}

  FabricKind kind() const override { return FabricKind::kIwarp; }
  Result<void> available() const override { return {}; }
  Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const SocketAddress& address,
                                           IncomingHandler& handler) override;
  Result<std::unique_ptr<Connector>> connect(EventLoop& loop, const SocketAddress& peer,
                                             ConnectHandler& handler) override;
  void forget(EventLoop& loop) override;
  std::size_t exposed_regions(EventLoop& loop) override;

  FabricState& state() { return state_; }
  /// `loop`'s device; made when it is asked for first.
  IwarpDevice& device_for(EventLoop& loop);

 private:
  struct LoopState {
    LoopState(FabricState& fabric, EventLoop& loop, std::function<void()> forget)
        : end(std::move(forget)), device(fabric, loop) {}

    LoopEnd end;
    IwarpDevice device;
  };

  FabricState state_;
  std::mutex mutex_;
  std::map<EventLoop*, std::unique_ptr<LoopState>> devices_;  // guarded by mutex_
};

}  // namespace nfsrdma::iwarp
