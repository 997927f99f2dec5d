// SPDX-License-Identifier: Apache-2.0
// RdmaEndpoint: what the connections on one device and one loop share: protection domain,
// completion queue, and the shared queue of receive buffers. It dispatches completions, a few
// batches in each turn of the loop: with busy peers there are always more, and timers, sockets and
// what other threads post have to have their turn.
//
// Lifetimes: outlives its queue pairs, which end through retire(). The receive buffers stay with
// the endpoint; who is given a message hands its buffer back with repost().
#pragma once

#include <memory>
#include <vector>

#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/work_table.h"

namespace nfsrdma {

/// A Send of the peer. `bytes` stay valid until repost(slot).
struct ReceivedMessage {
  std::uint32_t slot = 0;
  ByteSpan bytes;
  QueuePair* queue_pair = nullptr;
  bool invalidated = false;
  std::uint32_t invalidated_handle = 0;
};

class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void on_message(const ReceivedMessage& message) = 0;
  /// The endpoint's device is gone: destroy the endpoint after its last connection.
  virtual void on_device_gone() {}
};

class RdmaEndpoint final : private CompletionHandler, private Deferred {
 public:
  struct Shape {
    std::uint32_t receive_bytes = 4096;    // size of each receive buffer
    std::uint32_t receive_depth = 32'768;  // receives at most
    std::uint32_t send_completions = 65'536;
    BufferStage receive_stage = BufferStage::kWithHandler;  // what of the pool they may take
  };
  static Result<std::unique_ptr<RdmaEndpoint>> create(EventLoop& loop, Device& device,
                                                      BufferPool& pool, const Shape& shape,
                                                      MessageHandler& handler);
  ~RdmaEndpoint() override;

  Device& device() { return device_; }
  ProtectionDomain& domain() { return *domain_; }
  CompletionQueue& completions() { return *completions_; }
  SharedReceiveQueue& receives() { return *receives_; }
  WorkTable& work() { return work_; }
  std::uint32_t lkey(const Buffer& buffer) const { return pool_.lkey(buffer, *domain_); }

  /// Sees to it that `count` receives are posted or with a message handler, as far as buffers and
  /// the queue's depth allow. What is missing is made up for later.
  void ensure_receives(std::uint32_t count);
  /// Receives posted or with a message handler.
  std::uint32_t receive_count() const {
    return static_cast<std::uint32_t>(slots_.size()) - broken_;
  }
  /// Gives a message's buffer back to the queue.
  void repost(std::uint32_t slot);
  /// Destroys a queue pair so that none of its completions is left behind. Work that never
  /// completed is for the caller to forget().
  void retire(std::unique_ptr<QueuePair> queue_pair);

  /// Completions that matched nothing; 0 in a healthy process.
  std::uint64_t stale_completions() const { return stale_; }

 private:
  struct ReceiveSlot {
    Buffer buffer;
    std::uint32_t generation = 0;
    bool posted = false;
  };

  RdmaEndpoint(EventLoop& loop, Device& device, BufferPool& pool, const Shape& shape,
               MessageHandler& handler)
      : loop_(loop), device_(device), pool_(pool), shape_(shape), handler_(handler) {}
  /// Handles a few batches of completions; true: perhaps more wait.
  bool poll();
  void poll_all();
  void on_completions() override;
  void run_deferred() override { on_completions(); }
  void on_device_gone() override { handler_.on_device_gone(); }
  void dispatch(const WorkCompletion& completion);
  void received(const WorkCompletion& completion);
  bool add_receive();

  EventLoop& loop_;
  Device& device_;
  BufferPool& pool_;
  Shape shape_;
  MessageHandler& handler_;
  std::unique_ptr<ProtectionDomain> domain_;
  WorkTable work_;
  std::vector<ReceiveSlot> slots_;  // declared before the queues: they go first
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<SharedReceiveQueue> receives_;
  std::uint32_t wanted_receives_ = 0;
  const QueuePair* retired_ = nullptr;  // its messages are nobody's any more
  std::uint32_t broken_ = 0;            // slots that could not be posted again
  std::uint64_t stale_ = 0;
  bool polling_ = false;
};

}  // namespace nfsrdma
