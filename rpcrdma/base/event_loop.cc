// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace nfsrdma {

void Timer::arm(EventLoop& loop, TimePoint when) {
  cancel();
  loop_ = &loop;
  when_ = when;
  loop.timers_.insert(this);
}

void Timer::arm_after(EventLoop& loop, Duration delay) {
  arm(loop, loop.refresh_now() + delay);
}

void Timer::cancel() {
  if (loop_ == nullptr) return;
  loop_->timers_.erase(this);
  loop_ = nullptr;
}

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  std::unique_ptr<EventLoop> loop(new EventLoop());
  loop->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_) return system_error("epoll_create1");
  loop->wake_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!loop->wake_fd_) return system_error("eventfd");
  epoll_event event{};
  // Edge-triggered, and never read: each write is told of once, and resets nothing. Its 64 bits
  // take more writes than there will be.
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;  // marks the wake-up descriptor
  if (::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wake_fd_.get(), &event) != 0) {
    return system_error("epoll_ctl");
  }
  loop->refresh_now();
  return loop;
}

EventLoop::~EventLoop() {
  while (LoopEnd* item = ends_.pop_front()) {
    const std::function<void()> give_back = std::move(item->give_back_);
    give_back();
  }
  for (Timer* timer : timers_)
    timer->loop_ = nullptr;
}

Result<void> EventLoop::add(int fd, std::uint32_t events, FdWatcher& watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watcher;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return system_error("epoll add");
  return {};
}

Result<void> EventLoop::modify(int fd, std::uint32_t events, FdWatcher& watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &watcher;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
    return system_error("epoll modify");
  }
  return {};
}

void EventLoop::remove(int fd, FdWatcher& watcher) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (int i = event_next_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].events = 0;
  }
}

void EventLoop::post(std::function<void()> work) {
  {
    std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(work));
  }
  wake();
}

void EventLoop::wake() {
  if (wake_pending_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  // The counter cannot overflow: it is written at most once per wake-up consumed.
  [[maybe_unused]] ssize_t n = ::write(wake_fd_.get(), &one, sizeof one);
}

void EventLoop::stop() {
  stop_.store(true, std::memory_order_release);
  wake();
}

void EventLoop::run() {
  while (!stop_.load(std::memory_order_acquire))
    turn(Duration(-1));
  stop_.store(false, std::memory_order_release);
}

Duration EventLoop::until_next_timer(Duration max_wait) const {
  if (timers_.empty()) return max_wait;
  Duration left = std::max((*timers_.begin())->when_ - now_, Duration::zero());
  return max_wait < Duration::zero() ? left : std::min(left, max_wait);
}

int EventLoop::wait(Duration max_wait, epoll_event* events, int capacity) {
  const auto poll_once = [&] {
    return std::max(::epoll_wait(epoll_.get(), events, capacity, 0), 0);
  };
  if (max_wait == Duration::zero()) {
    looked_ = look(false);
    return poll_once();
  }
  const TimePoint start = now_;
  for (;;) {
    const Duration spent = now_ - start;
    const bool last = spent >= spin_.length() || (max_wait > Duration::zero() && spent >= max_wait);
    // Who found nothing to tell may have put off what it found all the same.
    looked_ = look(last) || !deferred_.empty();
    if (looked_) return poll_once();
    if (last) break;
    if (const int n = poll_once(); n != 0) return n;
    refresh_now();
  }
  max_wait = until_next_timer(max_wait);  // a look may have armed one
  // Round up: waking early would only spin through empty turns.
  int timeout_ms =
      max_wait < Duration::zero()
          ? -1
          : static_cast<int>(std::min<std::int64_t>(
                std::chrono::ceil<std::chrono::milliseconds>(max_wait).count(), 3'600'000));
  return std::max(::epoll_wait(epoll_.get(), events, capacity, timeout_ms), 0);
}

bool EventLoop::look(bool last) {
  if (polled_.empty()) return false;
  IntrusiveList<Polled, Polled> batch;
  batch.splice_back(polled_);
  bool worked = false;
  while (Polled* item = batch.pop_front())
    worked |= item->look(last && !worked);
  return worked;
}

/// Something came that was waited for.
void EventLoop::note_event() {
  if (spin_.limit() == Duration::zero() || idle_since_ == TimePoint::max()) return;
  spin_.event_after(now_ - idle_since_);
  idle_since_ = TimePoint::max();  // until the end of the turn
}

bool EventLoop::turn(Duration max_wait) {
  refresh_now();
  if (!deferred_.empty()) max_wait = Duration::zero();
  event_count_ = wait(until_next_timer(max_wait), events_, kMaxEvents);
  refresh_now();
  bool worked = looked_;
  if (worked) note_event();
  for (event_next_ = 0; event_next_ < event_count_;) {
    epoll_event event = events_[event_next_++];
    if (event.data.ptr == nullptr) {
      worked = true;
    } else if (event.events != 0) {
      note_event();
      static_cast<FdWatcher*>(event.data.ptr)->on_fd_ready(event.events);
      worked = true;
    }
  }
  event_count_ = event_next_ = 0;
  worked |= run_posted();
  worked |= fire_timers();
  worked |= run_deferred();
  if (idle_since_ == TimePoint::max() && spin_.limit() > Duration::zero()) {
    idle_since_ = refresh_now();
  }
  return worked;
}

bool EventLoop::run_posted() {
  // Cleared before the queue is read: a post() that comes later writes the eventfd again.
  if (!wake_pending_.exchange(false, std::memory_order_acq_rel)) return false;
  {
    std::lock_guard lock(posted_mutex_);
    posted_running_.swap(posted_);
  }
  for (std::function<void()>& work : posted_running_)
    work();
  bool worked = !posted_running_.empty();
  posted_running_.clear();
  if (worked) note_event();
  return worked;
}

bool EventLoop::run_deferred() {
  // Only what is queued now: an item that defers itself again waits for the next turn.
  IntrusiveList<Deferred, Deferred> batch;
  batch.splice_back(deferred_);
  bool worked = false;
  while (Deferred* item = batch.pop_front()) {
    item->run_deferred();
    worked = true;
  }
  return worked;
}

bool EventLoop::fire_timers() {
  bool worked = false;
  // Not those that become due meanwhile. One that fires and arms itself for now, or earlier, would
  // fire in this pass again: nobody does.
  const TimePoint due = now_;
  while (!timers_.empty()) {
    Timer* timer = *timers_.begin();
    if (timer->when_ > due) break;
    timers_.erase(timers_.begin());
    timer->loop_ = nullptr;
    timer->fire_();
    worked = true;
  }
  return worked;
}

}  // namespace nfsrdma
