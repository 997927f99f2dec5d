// SPDX-License-Identifier: Apache-2.0
// SimNetwork: virtual time, the queue of things that will happen, and the faults that a test
// orders. Everything that a simulated fabric does later goes through schedule(); the seed decides
// how long each thing takes, so one seed is one run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

/// Faults by number, counted from 1 in the order in which things happen; 0: never.
struct SimFaults {
  std::uint64_t fail_work = 0;      // this work request fails and breaks its queue pair
  std::uint64_t fail_post = 0;      // this post() takes only part of its chain
  std::uint64_t fail_register = 0;  // this registration of memory fails
  std::uint64_t fail_connect = 0;   // this connection attempt fails
  std::uint64_t cut_event = 0;      // at this network event all connections break
  Duration max_delay = std::chrono::microseconds(50);
};

class SimNetwork final : public Clock {
 public:
  explicit SimNetwork(std::uint64_t seed, const SimFaults& faults = {})
      : random_(seed), faults_(faults) {}

  TimePoint now() const override { return now_; }
  SimFaults& faults() { return faults_; }
  std::uint64_t random() { return random_(); }
  /// Between nothing and max_delay.
  Duration jitter();

  void schedule(Duration delay, std::function<void()> what);
  /// Called when `cut_event` comes.
  void on_cut(std::function<void()> cut) { cut_ = std::move(cut); }

  /// Lets `loop` do what it has to do and the network its next event, until neither has anything
  /// left or `steps` are used up. Returns the steps taken.
  std::size_t run(EventLoop& loop, std::size_t steps = 1'000'000);
  /// Moves the clock, and everything due with it.
  void advance(EventLoop& loop, Duration by);

  bool count_work() { return ++works_ == faults_.fail_work; }
  bool count_post() { return ++posts_ == faults_.fail_post; }
  bool count_register() { return ++registers_ == faults_.fail_register; }
  bool count_connect() { return ++connects_ == faults_.fail_connect; }
  std::uint64_t works() const { return works_; }
  std::uint64_t posts() const { return posts_; }
  std::uint64_t registers() const { return registers_; }
  std::uint64_t events() const { return events_; }

 private:
  bool step();

  std::mt19937_64 random_;
  SimFaults faults_;
  TimePoint now_{std::chrono::hours(1)};
  std::multimap<TimePoint, std::function<void()>> queue_;
  std::function<void()> cut_;
  std::uint64_t works_ = 0;
  std::uint64_t posts_ = 0;
  std::uint64_t registers_ = 0;
  std::uint64_t connects_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace nfsrdma
