// SPDX-License-Identifier: Apache-2.0
#include "server/watchdog.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "server/nfs_server.h"

namespace nfsrdma {

namespace {

/// Does the thread sleep in a system call, but in none that waits for another thread or an event?
bool is_in_file_call(pid_t thread) {
  // "NUMBER ARGUMENT...", or words where it is in none.
  std::ifstream file(fmt::format("/proc/self/task/{}/syscall", thread));
  long number = -1;
  if (!(file >> number)) return false;
  constexpr long kWaitForOthers[] = {
#ifdef SYS_epoll_wait  // newer architectures have only the others
      SYS_epoll_wait,  SYS_poll,
#endif
      SYS_epoll_pwait, SYS_ppoll, SYS_futex, SYS_epoll_pwait2, SYS_nanosleep, SYS_clock_nanosleep,
  };
  return number >= 0 &&
         std::ranges::find(kWaitForOthers, number) == std::ranges::end(kWaitForOthers);
}

}  // namespace

bool thread_waits_in_kernel(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string text;
  std::getline(file, text);
  // "PID (name) S ..."; the name may hold anything.
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos || end + 2 >= text.size()) return false;
  const char state = text[end + 2];
  return state == 'D' || (state == 'S' && is_in_file_call(thread));
}

std::unique_ptr<Watchdog> Watchdog::start(EventLoop& loop, NfsServer& server) {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) return nullptr;
  // sd_watchdog_enabled(3) advises twice within the time: one beat may be left out.
  return std::unique_ptr<Watchdog>(
      new Watchdog(loop, server, std::chrono::microseconds(microseconds / 4)));
}

Watchdog::Watchdog(EventLoop& loop, NfsServer& server, Duration period)
    : loop_(loop), server_(server), period_(period), timer_([this] { beat(); }) {
  server_.ask_for_signs_of_life();
  timer_.arm_after(loop_, period_);
}

void Watchdog::beat() {
  timer_.arm_after(loop_, period_);
  bool alive = true;
  for (const NfsServer::SignOfLife& sign : server_.signs_of_life()) {
    if (sign.answered || thread_waits_in_kernel(sign.thread)) continue;
    alive = false;
    if (silent_.allow()) {
      log_error("thread {} has not come round for {} s: the service manager is told nothing",
                sign.name, std::chrono::duration_cast<std::chrono::seconds>(period_).count());
    }
  }
  if (alive) ::sd_notify(0, "WATCHDOG=1");
  server_.ask_for_signs_of_life();
}

}  // namespace nfsrdma
