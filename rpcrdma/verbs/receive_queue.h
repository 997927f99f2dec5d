// SPDX-License-Identifier: Apache-2.0
// ReceiveQueue: the seam's shared receive queue on a verbs SRQ or, for devices without one, a
// stock of buffers dealt out to the receive queues of the queue pairs (each then holds up to
// share() of them even when idle; a client's, which is alone, all of them). What a device promises
// of SRQs it need not have: one that makes none as deep as wanted is asked for less, then for none.
//
// Every posted buffer has a slot; the adapter sees the slot's number, and what it flushes goes
// back to the queue, so that a dying connection costs nobody a receive.
#pragma once

#include <memory>
#include <vector>

#include "rpcrdma/fabric.h"
#include "rpcrdma/verbs/handles.h"

namespace nfsrdma::verbs {

class VerbsDevice;
class VerbsProtectionDomain;

class ReceiveQueue final : public SharedReceiveQueue {
 public:
  static Result<std::unique_ptr<SharedReceiveQueue>> create(VerbsDevice& device,
                                                            VerbsProtectionDomain& domain,
                                                            std::uint32_t depth, std::uint32_t id);
  ~ReceiveQueue() override;

  Result<void> post(std::uint64_t wr_id, Sge buffer) override;
  std::uint32_t depth() const override { return static_cast<std::uint32_t>(slots_.size()); }

  /// Null when buffers are dealt out instead.
  ibv_srq* srq() const { return srq_.get(); }
  /// Receives that the own queue of one of several queue pairs must hold; 0 with a real SRQ.
  std::uint32_t share() const { return share_; }
  /// That of the only one; 0 with a real SRQ.
  std::uint32_t whole() const { return whole_; }

  /// Without SRQ: deals `most` receives at a time to `queue_pair`; kExhausted when none is left for
  /// it.
  Result<void> attach(ibv_qp* queue_pair, std::uint32_t most);
  /// Takes back what a destroyed queue pair held.
  void detach(ibv_qp* queue_pair);

  /// A message arrived in `slot`: gives the poster's wr_id and frees the slot. False when nothing
  /// is posted there.
  bool take(std::uint32_t slot, std::uint64_t* wr_id);
  /// The adapter gave `slot` back unused.
  void give_back(std::uint32_t slot);

 private:
  struct Slot {
    std::uint64_t wr_id = 0;
    Sge buffer;
    ibv_qp* holder = nullptr;  // dealt out to, without SRQ
    enum class State : std::uint8_t { kFree, kStock, kPosted } state = State::kFree;
  };
  struct Member {
    ibv_qp* queue_pair;
    std::uint32_t most;
    std::uint32_t held;
    bool full() const { return held >= most; }
  };

  ReceiveQueue(VerbsDevice& device, SrqHandle srq, std::uint32_t depth, std::uint32_t id);
  Result<void> post_slot(std::uint32_t slot);
  Result<void> post_to(Member& member, std::uint32_t slot);
  void deal();
  Member* member_of(ibv_qp* queue_pair);

  VerbsDevice& device_;
  std::uint32_t id_;
  std::uint32_t share_ = 0;
  std::uint32_t whole_ = 0;
  SrqHandle srq_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> stock_;  // filled, held by no queue pair
  std::vector<Member> members_;
};

}  // namespace nfsrdma::verbs
