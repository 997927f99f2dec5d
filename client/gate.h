// SPDX-License-Identifier: Apache-2.0
// Gate: where coroutines wait for something that others bring about, unless their operation is
// cancelled first. On one thread.
#pragma once

#include <coroutine>
#include <utility>

#include "client/op_context.h"
#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

class Gate {
 public:
  class Waiter final : public ListNode<Waiter>, public Cancellable {
   public:
    Waiter(Gate& gate, CancelToken* cancel) : gate_(gate), cancel_(cancel) {}
    bool await_ready() {
      cancelled_ = cancel_ != nullptr && cancel_->cancelled();
      return cancelled_;
    }
    void await_suspend(std::coroutine_handle<> self) {
      self_ = self;
      gate_.waiters_.push_back(*this);
      if (cancel_ != nullptr) cancel_->enlist(*this);
    }
    /// False: cancelled.
    [[nodiscard]] bool await_resume() const { return !cancelled_; }

   private:
    friend class Gate;
    void on_cancel() override {
      cancelled_ = true;
      ListNode<Waiter>::unlink();
      std::exchange(self_, nullptr).resume();
    }
    void go_on() {
      Cancellable::unlink();
      std::exchange(self_, nullptr).resume();
    }

    Gate& gate_;
    CancelToken* cancel_;
    std::coroutine_handle<> self_;
    bool cancelled_ = false;
  };

  /// False: cancelled. Else look again at what was waited for. In a statement of its own: g++ 12
  /// lays out some frames wrongly that have `if (!co_await gate.wait(cancel))`.
  Waiter wait(CancelToken* cancel) { return Waiter(*this, cancel); }
  void wake_one() {
    if (Waiter* waiter = waiters_.pop_front()) waiter->go_on();
  }
  /// Those that wait now; who waits again stays.
  void wake_all() {
    IntrusiveList<Waiter, Waiter> batch;
    batch.splice_back(waiters_);
    while (Waiter* waiter = batch.pop_front())
      waiter->go_on();
  }
  bool empty() const { return waiters_.empty(); }

 private:
  IntrusiveList<Waiter, Waiter> waiters_;
};

}  // namespace nfsrdma
