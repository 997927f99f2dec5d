// SPDX-License-Identifier: Apache-2.0
// EventLoop: one thread's epoll set, timers, deferred work and mailbox. A shard is a thread that
// runs one. Everything here belongs to the loop's thread except post(), wake() and stop().
//
// Lifetimes: watchers, deferred items and timers are owned by their users and are linked into the
// loop by address; each unlinks itself when destroyed. An fd must be removed from the loop before
// it is closed.
//
// Waiting: turn() blocks in epoll_wait. With set_spin() it first polls for a short while, as long
// as events come soon after each other (adaptive_spin.h), because a wake-up across cores costs more
// than a whole small operation (decisions.md 5); an idle loop never spins. Who would have to ask
// for an event may be polled instead meanwhile (Polled).
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "rpcrdma/base/adaptive_spin.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

class EventLoop;

/// Told when its fd is ready. `events` are EPOLL* bits.
class FdWatcher {
 public:
  virtual ~FdWatcher() = default;
  virtual void on_fd_ready(std::uint32_t events) = 0;
};

/// Work to run once at the end of the current turn (flush a queue, poll a CQ again). Linking an
/// item that is already linked changes nothing.
class Deferred : public ListNode<Deferred> {
 public:
  virtual ~Deferred() = default;
  virtual void run_deferred() = 0;
};

/// Something to look at while the loop polls, and once before it blocks. Enlisted for one look, as
/// with Deferred, but nothing is kept from blocking by it.
class Polled : public ListNode<Polled> {
 public:
  virtual ~Polled() = default;
  /// Does what there is to do; false when there was nothing, then enlist again to be looked at
  /// again. `last`: the loop blocks next, so see to it that an event comes.
  virtual bool look(bool last) = 0;
};

/// What somebody keeps for a loop and gives back when the loop is destroyed, if not before: then
/// nobody hears of the end.
class LoopEnd : public ListNode<LoopEnd> {
 public:
  /// `give_back` may destroy the LoopEnd.
  explicit LoopEnd(std::function<void()> give_back) : give_back_(std::move(give_back)) {}

 private:
  friend class EventLoop;
  std::function<void()> give_back_;
};

/// One-shot timer. Rearming moves it; destruction cancels it.
class Timer {
 public:
  explicit Timer(std::function<void()> fire) : fire_(std::move(fire)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }
  void arm(EventLoop& loop, TimePoint when);
  void arm_after(EventLoop& loop, Duration delay);
  void cancel();
  bool armed() const { return loop_ != nullptr; }

 private:
  friend class EventLoop;
  std::function<void()> fire_;
  EventLoop* loop_ = nullptr;
  TimePoint when_{};
};

class EventLoop : public Clock {
 public:
  static Result<std::unique_ptr<EventLoop>> create();
  ~EventLoop() override;

  /// Starts watching. `events` are EPOLLIN etc., level-triggered unless EPOLLET is given. `watcher`
  /// must outlive the watch.
  Result<void> add(int fd, std::uint32_t events, FdWatcher& watcher);
  Result<void> modify(int fd, std::uint32_t events, FdWatcher& watcher);
  /// After this no more events reach `watcher`, not even ones already fetched in this turn.
  void remove(int fd, FdWatcher& watcher);

  void defer(Deferred& item) {
    if (!item.linked()) deferred_.push_back(item);
  }

  /// Will look at `item` while it polls, or before it blocks.
  void look_at(Polled& item) {
    if (!item.linked()) polled_.push_back(item);
  }
  /// Does the loop poll these days?
  bool polls() const { return spin_.length() > Duration::zero(); }

  /// The destructor runs it, on whatever thread that is, while everything here still works.
  void at_end(LoopEnd& item) { ends_.push_back(item); }

  /// Any thread: runs `work` on the loop's thread soon. Allocates (std::function): not for the
  /// fast path.
  void post(std::function<void()> work);
  /// Any thread: makes a blocked turn() return.
  void wake();

  /// Turns until stop().
  void run();
  /// Any thread.
  void stop();
  /// One round: waits at most `max_wait` (negative: as long as it takes) for something to do, then
  /// does all of it. Returns true when it did anything.
  bool turn(Duration max_wait);

  /// Poll at most this long before blocking; 0 (the default) never polls. Loop thread.
  void set_spin(Duration spin) { spin_.set_limit(spin); }

  /// Takes the time from `clock` (virtual, for the simulator) instead of the system. Timers then
  /// fire in the turn that finds them due; turn() itself never waits for virtual time.
  void set_clock(const Clock* clock) {
    clock_ = clock;
    refresh_now();
  }

  /// Time read at the start of the current turn (refreshed after waiting).
  TimePoint now() const override { return now_; }
  TimePoint refresh_now() {
    return now_ = clock_ != nullptr ? clock_->now() : std::chrono::steady_clock::now();
  }

 private:
  friend class Timer;
  struct LaterFirst {
    bool operator()(const Timer* a, const Timer* b) const {
      return a->when_ != b->when_ ? a->when_ < b->when_ : a < b;
    }
  };

  EventLoop() = default;
  int wait(Duration max_wait, epoll_event* events, int capacity);
  bool look(bool last);
  void note_event();
  bool run_posted();
  bool run_deferred();
  bool fire_timers();
  Duration until_next_timer(Duration max_wait) const;

  UniqueFd epoll_;
  UniqueFd wake_fd_;
  const Clock* clock_ = nullptr;
  TimePoint now_{};
  TimePoint idle_since_ = TimePoint::max();  // max(): in a turn that had an event
  AdaptiveSpin spin_;
  bool looked_ = false;  // wait() ended because of something polled
  IntrusiveList<Deferred, Deferred> deferred_;
  IntrusiveList<Polled, Polled> polled_;
  IntrusiveList<LoopEnd, LoopEnd> ends_;
  std::set<Timer*, LaterFirst> timers_;
  // Events fetched in this turn; remove() blanks what it removes.
  static constexpr int kMaxEvents = 64;
  epoll_event events_[kMaxEvents];
  int event_count_ = 0;
  int event_next_ = 0;

  std::atomic<bool> stop_{false};
  std::atomic<bool> wake_pending_{false};
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by posted_mutex_
  std::vector<std::function<void()>> posted_running_;
};

}  // namespace nfsrdma
