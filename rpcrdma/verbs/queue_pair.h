// SPDX-License-Identifier: Apache-2.0
// VerbsQueuePair: one connection. Owns its rdma_cm_id and through it the ibv_qp.
//
// States: Connecting -> Ready -> Closing (orderly: waits for the send queue) -> Draining (the
// ibv_qp is in error, waits for the flushed work, at most drain_timeout) -> Closed (the handler
// heard on_disconnected). Failures go to Draining from anywhere. Should the adapter owe completions
// at the end of the drain time, the ibv_qp is destroyed first, so that nothing touches the memory,
// and the missing completions are made up as flushed.
#pragma once

#include <memory>
#include <optional>

#include "rpcrdma/fabric.h"
#include "rpcrdma/verbs/async_events.h"
#include "rpcrdma/verbs/cm_channel.h"
#include "rpcrdma/verbs/completion_queue.h"
#include "rpcrdma/verbs/device.h"
#include "rpcrdma/verbs/receive_queue.h"
#include "rpcrdma/verbs/send_ring.h"
#include "rpcrdma/verbs/window.h"

namespace nfsrdma::verbs {

class VerbsQueuePair final : public QueuePair,
                             public CmUser,
                             private AsyncTarget,
                             private Deferred {
 public:
  enum class Role : std::uint8_t { kClient, kServer };

  /// Creates the ibv_qp on `id`, which stays the caller's until take_id().
  static Result<std::unique_ptr<VerbsQueuePair>> create(rdma_cm_id* id, VerbsDevice& device,
                                                        const QueuePairOptions& options,
                                                        const VerbsOptions& verbs_options,
                                                        Role role);
  ~VerbsQueuePair() override;

  Result<void> post(std::span<const WorkRequest> requests, std::size_t* posted) override;
  void disconnect() override;
  const QueuePairInfo& info() const override { return info_; }

  /// From now on the id's events come here and it is ours.
  void take_id(CmIdHandle id);
  /// Limits that the handshake settled.
  void set_reads(std::uint32_t outbound, std::uint32_t inbound);
  /// Client: the handshake is done.
  void set_ready() { state_ = State::kReady; }
  /// Server: the accept is on its way, the client's first message may be. Towards siw, see nudge().
  void accepted();

  void on_cm_event(const CmEvent& event) override;

  // For VerbsProtectionDomain.
  /// Is memory exposed to this peer by windows, and only by them?
  bool exposes_by_window() const { return exposes_by_window_; }
  /// Will bind `window` before whatever is posted next, at the latest when the loop comes round.
  Result<void> bind(Window& window);
  /// As WindowList::forget().
  bool unbind(Window& window);
  /// A command told what the device's event has not told yet.
  void device_failed(Error why) { drain(why); }

  // For VerbsCompletionQueue.
  /// The peer's message came with the invalidation of `handle`.
  void invalidated(std::uint32_t handle) { windows_.ended(handle); }
  bool closed() const { return state_ == State::kClosed; }
  void send_ended(std::uint32_t sequence, ibv_wc_status status);
  void receive_failed(ibv_wc_status status);
  void message_arrived() {
    if (!established_) establish();
  }

 private:
  enum class State : std::uint8_t { kConnecting, kReady, kClosing, kDraining, kClosed };

  VerbsQueuePair(VerbsDevice& device, const QueuePairOptions& options,
                 const VerbsOptions& verbs_options, Role role);
  Result<void> create_qp(rdma_cm_id* id, const QueuePairOptions& options);
  Result<void> post_chain(std::span<const WorkRequest> requests, std::size_t* posted);
  Result<void> post_binds();
  void windows_bound(std::size_t count);
  /// Does the adapter still send for it?
  bool is_whole();
  void end_windows();
  void on_async_event(ibv_event_type type, const void* queue) override;
  void run_deferred() override;
  void establish();
  /// Linux's siw, accepting, overlooks what arrives between its reply and the moment that its queue
  /// pair takes the socket over (siw_cm_llp_data_ready() ignores it), until more arrives; a client
  /// that waits for the answer to its first call sends no more. Reading nothing makes it answer.
  void nudge();
  void post_empty_read();
  VerbsCompletionQueue::Demand demand() const { return {ring_.places(), own_receives_}; }
  void drain(Error why);
  void drain_timed_out();
  /// May the adapter still have a receive of the SRQ that it took for this queue pair? It would be
  /// lost with that. After the last one it sends an event.
  bool waits_for_last_receive();
  void queue_emptied();
  void report(const SendRing::Entry& entry);
  void destroy_qp();
  int cm_disconnect();

  VerbsDevice& device_;
  EventLoop& loop_;
  VerbsOptions options_;
  State state_ = State::kConnecting;
  bool established_ = false;
  bool failed_ = false;
  Error why_{Errc::kClosed, 0, "disconnected"};
  VerbsCompletionQueue& completions_;
  ReceiveQueue& receives_;
  std::uint32_t own_receives_;  // that it holds at most; 0: they are an SRQ's
  bool last_receive_ended_;
  bool waits_for_last_receive_ = false;
  QueuePairHandler& handler_;
  QueuePairInfo info_;
  bool exposes_by_window_;
  SendRing ring_;
  bool unbound_early_ = false;  // perhaps before the adapter came to the bind, which fails then
  WindowList windows_;
  std::uint32_t owner_ = 0;
  std::uint32_t number_ = 0;
  bool reserved_ = false;  // completions_ has room for demand()
  std::uint32_t max_inline_ = 0;
  rdma_cm_id* id_ = nullptr;  // set while there is an ibv_qp on it
  ibv_qp* qp_ = nullptr;
  CmIdHandle owned_id_;
  std::optional<AsyncEvents::Registration> async_;
  Timer timer_;
  Timer nudge_timer_;
  std::size_t nudges_ = 0;
};

}  // namespace nfsrdma::verbs
