// SPDX-License-Identifier: Apache-2.0
#include "client/apart_threads.h"

#include <pthread.h>

#include <csignal>
#include <deque>
#include <mutex>
#include <utility>

namespace nfsrdma {

struct ApartThreads::State {
  struct Errand {
    std::function<void()> work;
    std::function<void()> done;
  };
  using Ref = std::shared_ptr<State>;

  static bool start_thread(const Ref& state);
  static void* serve(void* argument);
  static void carry_out(const Ref& state, Errand errand);

  std::mutex mutex;           // all below
  EventLoop* loop = nullptr;  // null: nobody waits any more
  std::deque<Errand> queue;
  unsigned threads = 0;
};

ApartThreads::ApartThreads(EventLoop& loop) : state_(std::make_shared<State>()) {
  state_->loop = &loop;
}

ApartThreads::~ApartThreads() {
  std::deque<State::Errand> dropped;
  std::lock_guard lock(state_->mutex);
  state_->loop = nullptr;
  dropped.swap(state_->queue);
}

void ApartThreads::run(std::function<void()> work, std::function<void()> done) {
  bool another = false;
  {
    std::lock_guard lock(state_->mutex);
    state_->queue.push_back({std::move(work), std::move(done)});
    another = state_->threads < kMostThreads;
    if (another) ++state_->threads;
  }
  if (!another || State::start_thread(state_)) return;
  std::unique_lock lock(state_->mutex);
  if (--state_->threads > 0) return;
  // No thread at all: late is better than never.
  std::deque<State::Errand> all;
  all.swap(state_->queue);
  lock.unlock();
  for (State::Errand& errand : all)
    State::carry_out(state_, std::move(errand));
}

bool ApartThreads::State::start_thread(const Ref& state) {
  // Signals are for the threads of the program, not for this one.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* argument = new Ref(state);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, nullptr, serve, argument) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) {
    ::pthread_setname_np(thread, "apart");
    ::pthread_detach(thread);
  } else {
    delete argument;
  }
  return started;
}

void* ApartThreads::State::serve(void* argument) {
  const std::unique_ptr<Ref> mine(static_cast<Ref*>(argument));
  const Ref& state = *mine;
  std::unique_lock lock(state->mutex);
  while (!state->queue.empty()) {
    Errand errand = std::move(state->queue.front());
    state->queue.pop_front();
    lock.unlock();
    carry_out(state, std::move(errand));
    lock.lock();
  }
  --state->threads;
  return nullptr;
}

void ApartThreads::State::carry_out(const Ref& state, Errand errand) {
  errand.work();
  std::lock_guard lock(state->mutex);
  if (state->loop == nullptr) return;
  state->loop->post([state, done = std::move(errand.done)] {
    // Only the loop's thread changes it.
    if (state->loop != nullptr) done();
  });
}

}  // namespace nfsrdma
