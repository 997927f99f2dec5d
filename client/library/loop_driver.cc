// SPDX-License-Identifier: Apache-2.0
#include "client/library/loop_driver.h"

#include <algorithm>
#include <csignal>
#include <system_error>

#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

// No polling before blocking. Measured on two cores with the server on the same machine, which the
// scheduler likes to put on the poller's core: 50 us of it cost three quarters of the calls per
// second at depth 1 (NULL p50 104 us instead of 23 us) and half of the bandwidth.
constexpr Duration kSpin = Duration::zero();

}  // namespace

Result<std::unique_ptr<LoopDriver>> LoopDriver::create() {
  std::unique_ptr<LoopDriver> driver(new LoopDriver());
  NFSRDMA_TRY(driver->loop_, EventLoop::create());
  driver->loop_->set_spin(kSpin);
  return driver;
}

LoopDriver::~LoopDriver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    keeper_wakes_.notify_all();
    if (loop_ != nullptr) loop_->wake();
  }
  if (keeper_.joinable()) keeper_.join();
}

void LoopDriver::drive(JobBase& job) {
  std::unique_lock lock(mutex_);
  new_jobs_.push_back(&job);
  ++waiting_;
  while (!job.done) {
    if (!has_leader_) {
      lead(job, lock);
      continue;
    }
    loop_->wake();
    changed_.wait(lock, [&] { return job.done || !has_leader_; });
  }
  --waiting_;
}

void LoopDriver::step_back() {
  has_leader_ = false;
  led_until_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void LoopDriver::keep() {
  const std::lock_guard lock(mutex_);
  if (keeper_.joinable()) return;
  // Signals are for the threads of the program, not for this one.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    keeper_ = std::thread([this] { keeper(); });
  } catch (const std::system_error& error) {
    log_warning("libnfsrdma has no thread to renew its lease with: {}", error.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void LoopDriver::keeper() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const bool idle =
        !has_leader_ && waiting_ == 0 && std::chrono::steady_clock::now() - led_until_ >= kIdle;
    if (idle) {
      lead_idly(lock);
    } else {
      keeper_wakes_.wait_for(lock, kIdle, [this] { return ending_; });
    }
  }
}

void LoopDriver::lead_idly(std::unique_lock<std::mutex>& lock) {
  has_leader_ = true;
  while (waiting_ == 0 && !ending_) {
    lock.unlock();
    loop_->refresh_now();
    loop_->turn(Duration(-1));
    lock.lock();
  }
  step_back();
}

void LoopDriver::while_it_stands(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  while (has_leader_) {
    loop_->wake();
    changed_.wait(lock, [this] { return !has_leader_; });
  }
  has_leader_ = true;
  lock.unlock();
  work();
  lock.lock();
  --waiting_;
  step_back();
}

bool LoopDriver::any_finished() const {
  return std::any_of(started_.begin(), started_.end(),
                     [](const JobBase* one) { return one->finished; });
}

void LoopDriver::lead(JobBase& job, std::unique_lock<std::mutex>& lock) {
  has_leader_ = true;
  while (!job.done) {
    std::vector<JobBase*> fresh;
    fresh.swap(new_jobs_);
    lock.unlock();
    loop_->refresh_now();
    for (JobBase* next : fresh) {
      started_.push_back(next);
      running_.spawn(next->body());
    }
    // Whoever waits for a job that ended as it began has used up his wake(): nothing need happen
    // for as long as the others' calls take.
    if (!job.finished) loop_->turn(Duration(any_finished() ? 0 : -1));
    lock.lock();
    if (!any_finished()) continue;
    std::erase_if(started_, [](JobBase* one) {
      one->done = one->finished;
      return one->done;
    });
    changed_.notify_all();
  }
  step_back();
}

}  // namespace nfsrdma
