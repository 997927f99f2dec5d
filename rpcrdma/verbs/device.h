// SPDX-License-Identifier: Apache-2.0
// VerbsDevice: one adapter as one loop sees it. What it can do is probed once (probe()), never
// assumed from its name. The ibv_context belongs to librdmacm and lives as long as the process.
#pragma once

#include <memory>
#include <unordered_map>

#include "rpcrdma/fabric.h"
#include "rpcrdma/verbs/async_events.h"
#include "rpcrdma/verbs/doorbell.h"
#include "rpcrdma/verbs/handles.h"
#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma::verbs {

class ReceiveQueue;

/// What the seam does not say about a device.
struct DeviceTraits {
  bool iwarp = false;                 // transport, else InfiniBand or RoCE
  bool posts_by_system_call = false;  // and arms completion queues: siw, rxe, Omni-Path
  bool siw = false;                   // the kernel's software iWARP
  std::uint32_t doorbell_driver = 0;  // for Doorbell; 0: its doorbells are not known to us
  bool shared_receive_queue = false;
  std::uint32_t max_receive_depth = 0;  // of a (shared) receive queue
  std::uint32_t max_completions = 0;    // of a completion queue
  std::uint32_t connect_room = 0;       // private data: bytes that fit
  std::uint32_t accept_room = 0;
  std::uint32_t reject_room = 0;
  bool sink_needs_remote_write = false;  // hardware iWARP: target of an RDMA Read
};

class VerbsDevice final : public Device, private FdWatcher {
 public:
  static Result<std::unique_ptr<VerbsDevice>> create(EventLoop& loop, ibv_context* context,
                                                     AsyncEvents& async, CommandThread& commands,
                                                     const VerbsOptions& options);
  ~VerbsDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() override;
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(EventLoop& loop,
                                                                   CompletionHandler& handler,
                                                                   std::uint32_t depth) override;
  Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(
      ProtectionDomain& domain, std::uint32_t depth) override;

  EventLoop& loop() { return loop_; }
  ibv_context* context() { return context_; }
  const DeviceTraits& traits() const { return traits_; }
  AsyncEvents& async() { return async_; }
  CommandThread& commands() { return commands_; }
  /// Runs a call of the data path that is a system call on some devices.
  template <typename Call>
  auto data_call(Call&& call) -> std::invoke_result_t<Call&> {
    if (!traits_.posts_by_system_call) return call();
    if (traits_.doorbell_driver == 0 || !Doorbell::available()) return commands_.run(call);
    const Doorbell bell(context_->cmd_fd, traits_.doorbell_driver, commands_);
    return call();
  }
  /// The provider refused a Send with Invalidate although the device promised it.
  void forget_send_with_invalidate();

  void add_receive_queue(std::uint32_t id, ReceiveQueue& queue) { receive_queues_[id] = &queue; }
  void remove_receive_queue(std::uint32_t id) { receive_queues_.erase(id); }
  /// Null when it is gone.
  ReceiveQueue* receive_queue(std::uint32_t id) {
    auto found = receive_queues_.find(id);
    return found == receive_queues_.end() ? nullptr : found->second;
  }

 private:
  VerbsDevice(EventLoop& loop, ibv_context* context, AsyncEvents& async, CommandThread& commands,
              const VerbsOptions& options)
      : loop_(loop), context_(context), async_(async), commands_(commands), options_(options) {}
  Result<void> probe();
  void on_fd_ready(std::uint32_t events) override;

  EventLoop& loop_;
  ibv_context* context_;
  AsyncEvents& async_;
  CommandThread& commands_;
  VerbsOptions options_;
  DeviceInfo info_;
  DeviceTraits traits_;
  std::uint32_t next_receive_queue_ = 1;
  std::unordered_map<std::uint32_t, ReceiveQueue*> receive_queues_;
  bool watching_ = false;
};

}  // namespace nfsrdma::verbs
