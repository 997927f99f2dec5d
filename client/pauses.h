// SPDX-License-Identifier: Apache-2.0
// Pauses: coroutines that wait for a time to pass, with one alarm for all of them. Unlike
// RpcClient::sleep() a pause is over within CancelToken::cancel() and nudge(). On one thread.
#pragma once

#include <memory>

#include "client/client_environment.h"
#include "client/gate.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

/// Between attempts to get a lock that somebody else has.
inline constexpr Duration kPollFirst = std::chrono::milliseconds(50);
inline constexpr Duration kPollLongest = std::chrono::seconds(1);

class Pauses {
 public:
  /// `environment` outlives this.
  explicit Pauses(ClientEnvironment& environment)
      : environment_(environment), alarm_(environment.make_alarm([this] { gate_.wake_all(); })) {}
  Pauses(const Pauses&) = delete;
  Pauses& operator=(const Pauses&) = delete;

  /// Until `duration` is over, or `cancel` (may be null) was cancelled, or *enough (may be null) is
  /// true at a nudge().
  Task<void> pause(Duration duration, CancelToken* cancel, const bool* enough = nullptr) {
    const TimePoint until = environment_.now() + duration;
    while (environment_.now() < until && (enough == nullptr || !*enough)) {
      if (!alarm_->armed() || until < alarm_at_) {
        alarm_at_ = until;
        alarm_->set(until);
      }
      const bool woken = co_await gate_.wait(cancel);
      if (!woken) co_return;
    }
  }
  /// All look at *enough again.
  void nudge() { gate_.wake_all(); }

 private:
  ClientEnvironment& environment_;
  Gate gate_;
  std::unique_ptr<Alarm> alarm_;
  TimePoint alarm_at_{};
};

}  // namespace nfsrdma
