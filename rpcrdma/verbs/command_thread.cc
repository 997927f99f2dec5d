// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/command_thread.h"

#include <signal.h>

namespace nfsrdma::verbs {

CommandThread& CommandThread::of_process() {
  // Never destroyed: at exit the thread waits for work, and there is nothing to give back. Joining
  // it would hang in a child of fork(), which does not have it.
  static CommandThread& instance = *new CommandThread;
  return instance;
}

CommandThread::~CommandThread() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommandThread::start() {
  // Signals are for the threads of the program, not for this one.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CommandThread::hand_over(void (*function)(void*), void* argument) {
  std::lock_guard turn(turn_);
  if (!thread_.joinable()) start();
  std::unique_lock lock(mutex_);
  function_ = function;
  argument_ = argument;
  changed_.notify_all();
  changed_.wait(lock, [this] { return function_ == nullptr; });
  errno = errno_;
}

void CommandThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return function_ != nullptr || stop_; });
    if (stop_) return;
    errno = 0;
    function_(argument_);
    errno_ = errno;
    function_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace nfsrdma::verbs
