// SPDX-License-Identifier: Apache-2.0
// Patience: a time limit for one call to the server, of somebody who has an answer without it.
//
//   Patience patience(loop, context);
//   patience.arm_after(as_long_as_it_may_take);
//   auto answer = co_await remote.getattr(context, file);
//   if (!answer.ok() && patience.ran_out(answer.error())) ...
//
// `context` gets an interrupt of its own until this ends, so that other calls of the same request
// are not ended with this one; what ends the request ends the call as before.
#pragma once

#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "client/fuse/interrupt.h"
#include "client/fuse/remote.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class Patience {
 public:
  Patience(EventLoop& loop, RequestContext& context)
      : loop_(loop), context_(context), outer_(context.interrupt), timer_([this] { end_call(); }) {
    context_.interrupt = &own_;
    if (outer_ == nullptr) return;
    if (outer_->raised) own_.token->cancel();
    outer_on_raise_ = std::exchange(outer_->on_raise, [token = own_.token] { token->cancel(); });
  }
  ~Patience() {
    context_.interrupt = outer_;
    if (outer_ != nullptr) outer_->on_raise = std::move(outer_on_raise_);
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  void arm_after(Duration time) { timer_.arm_after(loop_, time); }
  /// It was this, and nobody else, that ended the call with this error.
  bool ran_out(const Error& error) const {
    return ran_out_ && errno_of(error) == EINTR && (outer_ == nullptr || !outer_->raised);
  }

 private:
  void end_call() {
    ran_out_ = true;
    // Posted, since cancelling ends the call and with it this timer.
    loop_.post([token = own_.token] { token->cancel(); });
  }

  EventLoop& loop_;
  RequestContext& context_;
  Interrupt* outer_;
  std::function<void()> outer_on_raise_;
  Interrupt own_;
  bool ran_out_ = false;
  Timer timer_;
};

}  // namespace nfsrdma
