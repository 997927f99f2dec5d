// SPDX-License-Identifier: Apache-2.0
// Interrupt: the caller of one FUSE request was killed while waiting. Like NFS in the kernel, only
// signals that end the process count; an alarm clock must not fail a write. Only who waits for a
// lock is called back by any signal, as fcntl(2) has it.
//
// Whoever waits on behalf of the request sets on_raise for as long as it can give up.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string_view>

#include "client/op_context.h"
#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

struct Interrupt : public ListNode<Interrupt> {
  pid_t pid = 0;
  bool raised = false;
  bool by_any_signal = false;
  std::function<void()> on_raise;
  /// Ends the calls to the server. Shared, since the last call that it ends may end the request,
  /// and this with it, while the token still goes through its list.
  std::shared_ptr<CancelToken> token = std::make_shared<CancelToken>();

  void raise() {
    if (raised) return;
    raised = true;
    unlink();
    // Whoever waits, waits either in a call or behind on_raise; each may destroy this.
    const std::shared_ptr<CancelToken> keep = token;
    const std::function<void()> wake = on_raise;
    keep->cancel();
    if (wake) wake();
  }
};

/// Is a signal on its way that will end thread `pid`, is one ending it now, or is it gone already?
bool fatal_signal_pending(pid_t pid);

/// From a /proc/PID/stat: is the thread on its way out because of a signal?
bool ended_by_signal(std::string_view stat);

}  // namespace nfsrdma
