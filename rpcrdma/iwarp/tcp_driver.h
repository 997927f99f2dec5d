// SPDX-License-Identifier: Apache-2.0
// A queue pair on a TCP socket: moves bytes between the engine and the socket in as few system
// calls as the peer allows, and ends the connection in order.
//
// The socket is watched edge-triggered for both directions. Work that is posted goes out at the end
// of the loop's turn, or at once when much is waiting. Calls to the user (completions,
// on_disconnected) come from the loop, never from inside post() or disconnect().
#pragma once

#include <memory>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/iwarp/completion_queue.h"
#include "rpcrdma/iwarp/device.h"
#include "rpcrdma/iwarp/engine.h"
#include "rpcrdma/iwarp/receive_queue.h"

namespace nfsrdma::iwarp {

/// The connector, while the initiator's ready-to-receive message is under way.
class RtrWaiter {
 public:
  virtual ~RtrWaiter() = default;
  virtual void on_rtr_done() = 0;
  virtual void on_rtr_failed(Error error) = 0;
};

class IwarpQueuePair final : public QueuePair,
                             private FdWatcher,
                             private Deferred,
                             private Starved,
                             private BegunSend,
                             private EngineEvents {
 public:
  struct Setup {
    UniqueFd fd;
    SocketAddress local;
    SocketAddress peer;
    MpaAgreement agreed;
    bool initiator = false;
    PcapTap::Stream tap;
    RtrWaiter* waiter = nullptr;
  };
  IwarpQueuePair(IwarpDevice& device, const QueuePairOptions& options, Setup setup);
  ~IwarpQueuePair() override;

  /// Starts to watch the socket (responder: once the Reply is out).
  Result<void> start();

  Result<void> post(std::span<const WorkRequest> requests, std::size_t* posted) override;
  void disconnect() override;
  const QueuePairInfo& info() const override { return info_; }

  std::uint64_t number() const { return number_; }
  void region_gone(std::uint32_t stag) { engine_.region_gone(stag); }
  /// The initiator's first message, when one was agreed on; before start().
  void post_rtr(RtrKind kind) { engine_.post_rtr(kind); }
  PcapTap::Stream& tap_stream() { return tap_; }
  int fd() const { return fd_.get(); }

 private:
  static EngineOptions engine_options(IwarpQueuePair& self, const QueuePairOptions& options,
                                      const Setup& setup);
  void on_fd_ready(std::uint32_t events) override;
  void run_deferred() override;
  void resume_receiving() override;
  void send_overdue() override;
  // EngineEvents
  void on_completion(const WorkCompletion& completion) override;
  bool take_receive(std::uint64_t* wr_id, Sge* buffer) override;
  void return_receive(std::uint64_t wr_id, Sge buffer) override;
  void on_first_fpdu() override;
  void on_rtr_done() override;
  bool may_send_read(std::size_t ahead) override;
  void on_engine_failed() override;

  void read_socket(bool to_the_end);
  void peer_closed();
  bool received(ReceiveStatus status);
  void flush();
  ssize_t send_coalesced(const TransmitScratch& batch);
  ssize_t send_separately(const TransmitScratch& batch);
  void after_events();
  void finish();
  void on_timer();
  void arm_nudge();
  void refresh_segment_size();

  IwarpDevice& device_;
  IwarpCompletionQueue& completions_;
  IwarpReceiveQueue& receives_;
  QueuePairHandler* handler_;
  RtrWaiter* waiter_;
  UniqueFd fd_;
  std::uint64_t number_;
  QueuePairInfo info_;
  PcapTap::Stream tap_;
  Engine engine_;
  Timer timer_;         // nudge, later the limit for closing
  Timer window_timer_;  // looks again whether a Read Request may go out
  std::chrono::milliseconds window_wait_;
  bool* destroyed_ = nullptr;
  std::uint32_t fpdus_until_refresh_ = 0;
  std::uint8_t nudges_ = 0;
  bool blocked_ = false;     // the socket is full
  bool read_again_ = false;  // stopped for fairness
  bool established_now_ = false;
  bool rtr_done_now_ = false;
  bool closing_ = false;
  bool finished_ = false;
};

}  // namespace nfsrdma::iwarp
