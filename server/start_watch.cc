// SPDX-License-Identifier: Apache-2.0
#include "server/start_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

constexpr int kStatusOfSignals = 128;  // as shells have it

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StartWatch::StartWatch() {
  const sigset_t set = ending_signals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  done_.reset(::eventfd(0, EFD_CLOEXEC));
  std::string why;
  if (signals_ && done_) {
    try {
      thread_ = std::thread([this] { watch(); });
      return;
    } catch (const std::system_error& error) {
      why = error.what();
    }
  } else {
    why = std::strerror(errno);
  }
  log_warning("if the start hangs, SIGKILL alone ends it: {}", why);
}

StartWatch::~StartWatch() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(done_.get(), &one, sizeof one);
  thread_.join();
}

void StartWatch::waits_for(std::string what) {
  std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void StartWatch::watch() {
  pollfd fds[] = {{done_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(fds, 2, -1) < 0) continue;
    // Both at a time: whoever has started by now ends in order.
    if (fds[0].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      end_by(static_cast<int>(info.ssi_signo));
  }
}

void StartWatch::end_by(int signal) {
  {
    std::lock_guard lock(mutex_);
    log_notice("ended by {} before the start was over{}{}", signal == SIGINT ? "SIGINT" : "SIGTERM",
               what_.empty() ? "" : "; it was waiting for ", what_);
  }
  std::fflush(nullptr);
  ::signal(signal, SIG_DFL);
  const sigset_t set = ending_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  // The first process of a container is not ended by what it does not handle.
  ::_exit(kStatusOfSignals + signal);
}

}  // namespace nfsrdma
