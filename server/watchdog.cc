// SPDX-License-Identifier: Apache-2.0
#include "server/watchdog.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <fstream>
#include <string>

#include "server/nfs_server.h"

namespace nfsrdma {

bool thread_waits_in_kernel(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string text;
  std::getline(file, text);
  // "PID (name) S ..."; the name may hold anything.
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'D';
}

std::unique_ptr<Watchdog> Watchdog::start(EventLoop& loop, NfsServer& server) {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) return nullptr;
  // Twice within the time, as sd_watchdog_enabled(3) advises.
  return std::unique_ptr<Watchdog>(
      new Watchdog(loop, server, std::chrono::microseconds(microseconds / 2)));
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
