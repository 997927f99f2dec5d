// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/iwarp_fabric.h"

#include "rpcrdma/iwarp/connector.h"
#include "rpcrdma/iwarp/fabric_impl.h"
#include "rpcrdma/iwarp/listener.h"

namespace nfsrdma::iwarp {

std::unique_ptr<Fabric> make_fabric(const IwarpOptions& options) {
  return std::make_unique<IwarpFabric>(options);
}

IwarpDevice& IwarpFabric::device_for(EventLoop& loop) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<LoopState>& mine = devices_[&loop];
  if (mine == nullptr) {
    mine = std::make_unique<LoopState>(state_, loop, [this, &loop] { forget(loop); });
    loop.at_end(mine->end);
  }
  return mine->device;
}

Result<std::unique_ptr<Listener>> IwarpFabric::listen(EventLoop& loop, const SocketAddress& address,
                                                      IncomingHandler& handler) {
  return IwarpListener::create(*this, loop, address, handler);
}

Result<std::unique_ptr<Connector>> IwarpFabric::connect(EventLoop& loop, const SocketAddress& peer,
                                                        ConnectHandler& handler) {
  auto connector = std::make_unique<IwarpConnector>(device_for(loop), peer, handler);
  connector->start();
  return connector;
}

void IwarpFabric::forget(EventLoop& loop) {
  std::unique_ptr<LoopState> state;
  {
    std::lock_guard lock(mutex_);
    auto found = devices_.find(&loop);
    if (found == devices_.end()) return;
    state = std::move(found->second);
    devices_.erase(found);
  }
}

std::size_t IwarpFabric::exposed_regions(EventLoop& loop) {
  std::lock_guard lock(mutex_);
  auto found = devices_.find(&loop);
  return found == devices_.end() ? 0 : found->second->device.stags().in_use();
}

}  // namespace nfsrdma::iwarp
