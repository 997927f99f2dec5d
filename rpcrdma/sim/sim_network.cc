// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/sim/sim_network.h"

namespace nfsrdma {

Duration SimNetwork::jitter() {
  const auto most = static_cast<std::uint64_t>(faults_.max_delay.count());
  return Duration(static_cast<Duration::rep>(most == 0 ? 0 : random_() % most));
}

void SimNetwork::schedule(Duration delay, std::function<void()> what) {
  queue_.emplace(now_ + delay, std::move(what));
}

bool SimNetwork::step() {
  if (queue_.empty()) return false;
  auto first = queue_.begin();
  now_ = std::max(now_, first->first);
  std::function<void()> what = std::move(first->second);
  queue_.erase(first);
  if (++events_ == faults_.cut_event && cut_) cut_();
  what();
  return true;
}

std::size_t SimNetwork::run(EventLoop& loop, std::size_t steps) {
  for (std::size_t taken = 0; taken < steps; ++taken) {
    const bool worked = loop.turn(Duration::zero());
    if (!step() && !worked) return taken;
  }
  return steps;
}

void SimNetwork::advance(EventLoop& loop, Duration by) {
  const TimePoint until = now_ + by;
  while (!queue_.empty() && queue_.begin()->first <= until) {
    step();
    loop.turn(Duration::zero());
  }
  now_ = until;
  loop.turn(Duration::zero());
}

}  // namespace nfsrdma
