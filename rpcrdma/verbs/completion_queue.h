// SPDX-License-Identifier: Apache-2.0
// VerbsCompletionQueue: one ibv_cq with its completion channel in the loop. The channel is armed
// when the queue was found empty, and then one more look is taken, so that nothing slips between.
// That is done after the handler has done its work, not before: what it posts is often done at once
// (always with siw, which sends within the doorbell's system call), and raises no event then. While
// the loop polls, the queue is polled instead, and armed before the loop blocks: that saves the
// event and, on rxe and siw, a system call.
//
// Queue pairs reserve room for their completions before they exist (reserve()).
//
// Completions are taken out of the ibv_cq before a queue pair is destroyed, and again behind that
// (take_out()): hardware drivers drop what it left there, and the receives of an SRQ with it, which
// nobody would post again; software drivers leave it there and use queue pair numbers again at
// once.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "rpcrdma/base/log.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/verbs/device.h"
#include "rpcrdma/verbs/handles.h"
#include "rpcrdma/verbs/work_id.h"

namespace nfsrdma::verbs {

class ReceiveQueue;
class VerbsQueuePair;

class VerbsCompletionQueue final : public CompletionQueue,
                                   private FdWatcher,
                                   private Deferred,
                                   private Polled {
 public:
  static Result<std::unique_ptr<CompletionQueue>> create(VerbsDevice& device, EventLoop& loop,
                                                         CompletionHandler& handler,
                                                         std::uint32_t depth);
  ~VerbsCompletionQueue() override;
  std::size_t poll(std::span<WorkCompletion> out) override;

  ibv_cq* get() const { return cq_.get(); }
  /// What a queue pair can leave here before anybody looks.
  struct Demand {
    std::uint32_t sends;         // places of its send queue
    std::uint32_t own_receives;  // that it holds at most; 0: they are an SRQ's
  };
  /// Makes room for a queue pair that `receives` feeds; an overrun would end every connection of
  /// the queue. kExhausted when the adapter has no larger queue.
  Result<void> reserve(const Demand& demand, const ReceiveQueue& receives);
  void release(const Demand& demand, const ReceiveQueue& receives);
  /// A number for a queue pair's send queue in wr_ids.
  std::uint32_t attach(VerbsQueuePair& queue_pair, std::uint32_t number);
  /// Takes what there is out of the ibv_cq, for later.
  void take_out();
  /// After the ibv_qp is destroyed, before ReceiveQueue::detach(), which takes for unused what is
  /// not given back: gives back the receives that it ended and nobody looked at.
  void discard_receives(VerbsQueuePair& queue_pair, std::uint32_t number);
  /// After that: drops what is left of the queue pair.
  void forget(VerbsQueuePair& queue_pair, std::uint32_t owner);
  /// A queue pair's work ended. Tells the handler soon, when it is not polling already.
  void report(const WorkCompletion& completion);
  /// Lets the handler poll now. Did it empty the queue?
  bool run_handler();

 private:
  // A receive leaves its slot only when poll() gives it, so that one that nobody saw can be given
  // back.
  struct Ready {
    WorkCompletion completion;
    WorkId receive;
  };

  VerbsCompletionQueue(VerbsDevice& device, EventLoop& loop, CompletionHandler& handler)
      : device_(device), loop_(loop), handler_(handler) {
    device.add_user();
  }
  void on_fd_ready(std::uint32_t events) override;
  void run_deferred() override;
  bool look(bool last) override;
  void drive();
  bool fetch();
  bool wait_for_more();
  bool deliver(const Ready& ready, WorkCompletion* out);
  std::size_t take_ready(std::span<WorkCompletion> out);
  /// Makes something ready, unless it is nobody's; false when there was nothing.
  bool translate_some();
  void translate(const ibv_wc& wc);
  void translate_receive(const ibv_wc& wc, const WorkId& id);
  bool arm();
  void acknowledge();
  bool grow(std::uint64_t entries);

  VerbsDevice& device_;
  EventLoop& loop_;
  CompletionHandler& handler_;
  CompChannelHandle channel_;
  CqHandle cq_;
  bool watching_ = false;
  bool armed_ = false;
  bool dry_ = false;
  bool polling_ = false;
  bool emptied_ = false;  // by the latest poll()
  bool driving_ = false;  // drive() is under way, and arms
  bool* gone_ = nullptr;  // of drive(): set by the destructor
  unsigned unacknowledged_ = 0;
  std::uint64_t reserved_ = 0;  // at most what the ibv_cq holds
  // And how many receives its queue pairs can take, each by itself.
  std::unordered_map<const ReceiveQueue*, std::uint64_t> fed_by_;
  RateLimit refusals_{1, std::chrono::seconds(60)};
  std::uint32_t next_owner_ = 1;
  std::unordered_map<std::uint32_t, VerbsQueuePair*> by_owner_;
  std::unordered_map<std::uint32_t, VerbsQueuePair*> by_number_;
  std::deque<ibv_wc> taken_;  // taken out early by take_out()
  std::deque<Ready> ready_;   // in the order in which poll() gives them
};

}  // namespace nfsrdma::verbs
