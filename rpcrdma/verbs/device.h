// SPDX-License-Identifier: Apache-2.0
// VerbsDevice: one adapter as one loop sees it. What it can do is probed once (probe()), never
// assumed from its name.
//
// The ibv_context belongs to librdmacm, which may close that of a device that was removed when no
// id refers to it any more. So each VerbsDevice has an id of its own on the device: it keeps the
// context alive, and hears of the removal when there is no connection that would. After it (lose())
// whoever has a completion queue is told, and when the last of what was made with the device is
// destroyed, the id is, too (run_deferred()). A kernel driver without disassociation (rxe, siw)
// waits with the removal for the last loop's (context_use.h). A device that comes back has another
// ibv_context.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "rpcrdma/fabric.h"
#include "rpcrdma/verbs/async_events.h"
#include "rpcrdma/verbs/cm_channel.h"
#include "rpcrdma/verbs/context_use.h"
#include "rpcrdma/verbs/doorbell.h"
#include "rpcrdma/verbs/handles.h"
#include "rpcrdma/verbs/verbs_fabric.h"

namespace nfsrdma::verbs {

class ReceiveQueue;
class VerbsCompletionQueue;

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
  bool memory_windows = false;           // of type 2, and wanted (VerbsOptions)
  unsigned invalidated_flag = 0;         // wc_flags of a message that came with an invalidation
};

/// Commands of a device that is being removed, or broke, end so, before its event has come.
inline bool means_broken(int err) {
  return err == EIO || err == ENODEV || err == ENXIO || err == ETIMEDOUT;
}

class VerbsDevice final : public Device,
                          private FdWatcher,
                          private CmUser,
                          private AsyncTarget,
                          private Deferred {
 public:
  /// `local`: an address of the device, for its own id on `channel`.
  static Result<std::unique_ptr<VerbsDevice>> create(EventLoop& loop, CmChannel& channel,
                                                     ibv_context* context,
                                                     const SocketAddress& local, AsyncEvents& async,
                                                     CommandThread& commands,
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
  /// Removed or broken: nothing new can be made with it.
  bool gone() const { return gone_; }
  /// And nothing is left of it here: context() may be another device's by now.
  bool released() const { return released_; }
  /// The error of `call`, which made no queue and left `err`: with the remedy, where there may be
  /// one (MemlockAccount::queue_refusal()).
  Error queue_refusal(const char* call, int err);
  /// Who has something of the device.
  void add_user() { ++users_; }
  void remove_user();
  void add_completion_queue(const ibv_cq* queue, CompletionHandler& handler) {
    completion_queues_.push_back({queue, &handler});
  }
  void remove_completion_queue(const ibv_cq* queue);
  /// The provider refused a Send with Invalidate although the device promised it.
  void forget_send_with_invalidate();
  /// The same of binding a window: connections made from now on expose by registration.
  void forget_memory_windows();
  /// Nor did it make a shared receive queue that is of use: queue pairs have receives of their own
  /// from now on, but for those of queues that are there.
  void forget_shared_receive_queues(const Error& why);

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
  bool try_memory_window();
  void hold(CmChannel& channel, const SocketAddress& local);
  void stop_watching();
  void lose(const char* why);
  void on_fd_ready(std::uint32_t events) override;
  void on_cm_event(const CmEvent& event) override;
  void on_async_event(ibv_event_type type, const void* queue) override;
  bool has(const void* queue) const;
  void run_deferred() override;

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
  bool gone_ = false;
  bool released_ = false;
  std::size_t users_ = 0;
  struct Completions {
    const ibv_cq* queue;
    CompletionHandler* handler;
  };
  std::vector<Completions> completion_queues_;
  CmIdHandle held_;  // keeps context_ alive
  std::optional<ContextUse> use_;
  std::optional<AsyncEvents::Registration> registered_;
};

}  // namespace nfsrdma::verbs
