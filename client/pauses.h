// SPDX-License-Identifier: Apache-2.0
// Pauses: coroutines that wait for a time to pass, with one alarm for all of them, which
// wakes those alone whose time is over. Unlike RpcClient::sleep() a pause is over within
// CancelToken::cancel() and nudge(). On one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

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
      : environment_(environment), alarm_(environment.make_alarm([this] { wake_due(); })) {}
  Pauses(const Pauses&) = delete;
  Pauses& operator=(const Pauses&) = delete;

  /// Until `duration` is over, or `cancel` (may be null) was cancelled, or *enough (may be null) is
  /// true at a nudge().
  Task<void> pause(Duration duration, CancelToken* cancel, const bool* enough = nullptr) {
    const TimePoint until = environment_.now() + duration;
    while (environment_.now() < until && (enough == nullptr || !*enough)) {
      if (!alarm_->armed() || until < alarm_at_) set_alarm(until);
      Row& row = rows_[until];
      if (row.gate.empty()) row.since = ++last_;
      const bool woken = co_await row.gate.wait(cancel);
      if (!woken) co_return forget(until);
    }
  }
  /// All look at *enough again, who has waited longest first.
  void nudge() {
    // Whoever waits again does so in another row.
    Rows all;
    all.swap(rows_);
    std::vector<Row*> order;
    for (auto& [until, row] : all)
      order.push_back(&row);
    std::sort(order.begin(), order.end(),
              [](const Row* a, const Row* b) { return a->since < b->since; });
    for (Row* const row : order)
      row->gate.wake_all();
  }

 private:
  /// Those whose pauses end together. Of thousands nearly each has one of its own: to wake all for
  /// the sake of one, again and again, would take longer than their pauses.
  struct Row {
    Gate gate;
    std::uint64_t since = 0;
  };
  using Rows = std::map<TimePoint, Row>;

  void set_alarm(TimePoint when) {
    alarm_at_ = when;
    alarm_->set(when);
  }
  void wake_due() {
    Rows due;
    const TimePoint now = environment_.now();
    while (!rows_.empty() && rows_.begin()->first <= now)
      due.insert(rows_.extract(rows_.begin()));
    if (!rows_.empty()) set_alarm(rows_.begin()->first);
    // Whoever goes on may be the end of this.
    for (auto& [until, row] : due)
      row.gate.wake_all();
  }
  void forget(TimePoint until) {
    const auto row = rows_.find(until);
    if (row != rows_.end() && row->second.gate.empty()) rows_.erase(row);
  }

  ClientEnvironment& environment_;
  Rows rows_;
  std::uint64_t last_ = 0;
  std::unique_ptr<Alarm> alarm_;
  TimePoint alarm_at_{};
};

}  // namespace nfsrdma
