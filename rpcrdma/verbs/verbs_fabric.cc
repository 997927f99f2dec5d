// SPDX-License-Identifier: Apache-2.0
// The fabric object: what each loop has of event channel and devices, and whether this host can use
// verbs at all.
#include "rpcrdma/verbs/verbs_fabric.h"

#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "rpcrdma/base/log.h"
#include "rpcrdma/verbs/addresses.h"
#include "rpcrdma/verbs/cm.h"
#include "rpcrdma/verbs/memlock.h"

namespace nfsrdma::verbs {

namespace {

class VerbsFabric final : public Fabric, private LoopResources {
 public:
  explicit VerbsFabric(const VerbsOptions& options) : options_(options) {}

  FabricKind kind() const override { return FabricKind::kVerbs; }

  Result<void> available() const override {
    int count = 0;
    if (ibv_device** list = ::ibv_get_device_list(&count); list != nullptr) {
      ::ibv_free_device_list(list);
    }
    if (count == 0) return Error{Errc::kUnsupported, 0, "no RDMA device on this host"};
    // Not by trying: librdmacm opens every device when first used, and that belongs on the command
    // thread of a process that is past its daemon(3).
    if (::access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
      return Error{Errc::kUnsupported, errno,
                   "RDMA device present but no connection manager (modprobe rdma_ucm)"};
    }
    return {};
  }

  Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const SocketAddress& address,
                                           IncomingHandler& handler) override {
    NFSRDMA_CHECK_OK(available());
    std::call_once(memlock_told_, [this] { tell_of_memlock(); });
    return VerbsListener::create(*this, loop, address, handler);
  }

  Result<std::unique_ptr<Connector>> connect(EventLoop& loop, const SocketAddress& peer,
                                             ConnectHandler& handler) override {
    NFSRDMA_CHECK_OK(available());
    return VerbsConnector::create(*this, loop, peer, handler);
  }

  void forget(EventLoop& loop) override {
    std::unique_ptr<LoopState> state;
    {
      std::lock_guard lock(mutex_);
      auto found = loops_.find(&loop);
      if (found == loops_.end()) return;
      state = std::move(found->second);
      loops_.erase(found);
    }
  }

 private:
  /// Or the administrator would hear of it with the first client that finds no room.
  void tell_of_memlock() {
    const MemlockLimit limit = commands_.run([] { return memlock_limit(); });
    if (!limit.is_little()) return;
    log_warning("verbs: {} bytes of memory may be locked, which is little for a server; {}",
                limit.bytes, memlock_remedy());
  }

  // Made and used on its loop's thread; only the map is shared.
  struct LoopState {
    explicit LoopState(std::function<void()> forget) : end(std::move(forget)) {}

    LoopEnd end;
    std::unique_ptr<CmChannel> channel;
    std::map<ibv_context*, std::unique_ptr<VerbsDevice>> devices;
    std::vector<std::unique_ptr<VerbsDevice>> gone;  // callers may still know their addresses
  };

  LoopState& state(EventLoop& loop) {
    std::lock_guard lock(mutex_);
    auto& state = loops_[&loop];
    if (!state) {
      state = std::make_unique<LoopState>([this, &loop] { forget(loop); });
      loop.at_end(state->end);
    }
    return *state;
  }

  Result<CmChannel*> channel(EventLoop& loop) override {
    LoopState& mine = state(loop);
    if (!mine.channel) {
      NFSRDMA_TRY(mine.channel, CmChannel::create(loop, commands_));
    }
    return mine.channel.get();
  }

  Result<VerbsDevice*> device(EventLoop& loop, rdma_cm_id* id) override {
    ibv_context* context = id->verbs;
    if (context == nullptr) return Error{Errc::kUnsupported, ENODEV, "no RDMA device"};
    NFSRDMA_TRY(CmChannel * own_channel, channel(loop));
    LoopState& mine = state(loop);
    std::unique_ptr<VerbsDevice>& device = mine.devices[context];
    if (device && device->released()) mine.gone.push_back(std::exchange(device, nullptr));
    if (!device) {
      NFSRDMA_TRY(device, VerbsDevice::create(loop, *own_channel, context,
                                              address_of(::rdma_get_local_addr(id)), async_,
                                              commands_, options_));
    }
    if (device->gone()) return Error{Errc::kClosed, ENODEV, "the RDMA device was removed"};
    return device.get();
  }

  const VerbsOptions& options() const override { return options_; }
  CommandThread& commands() override { return commands_; }

  VerbsOptions options_;
  CommandThread& commands_ = CommandThread::of_process();
  AsyncEvents async_;
  std::once_flag memlock_told_;
  std::mutex mutex_;
  std::map<EventLoop*, std::unique_ptr<LoopState>> loops_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Fabric> make_fabric(const VerbsOptions& options) {
  return std::make_unique<VerbsFabric>(options);
}

}  // namespace nfsrdma::verbs
