// SPDX-License-Identifier: Apache-2.0
#include "client/mount/syslog_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <string>

#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

// How long the end waits for the log.
constexpr std::chrono::seconds kLastPatience{5};

/// Lines that did not fit into the pipe, and of which the log has not been told.
std::atomic<std::uint64_t> g_missing{0};

/// A LogSink: one write, which a pipe takes as a whole or not at all when it is so short (pipe(7)).
/// The priority stands in front of it as in sd-daemon(3).
void send_line(int priority, std::string_view text, std::span<const LogField>) {
  std::string line = fmt::format("<{}>{}", priority, text);
  line.resize(std::min<std::size_t>(line.size(), PIPE_BUF - 1));
  line += '\n';
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ++g_missing;
}

void log_to_syslog(int priority, const char* line) {
  ::syslog(priority, "%s", line);
}

void pass_on(UniqueFd read_end, const SyslogPipe::Log& log) {
  FILE* stream = ::fdopen(read_end.release(), "r");
  if (stream == nullptr) return;
  char line[PIPE_BUF + 1];
  while (std::fgets(line, sizeof line, stream) != nullptr) {
    const bool has_priority = line[0] == '<' && line[1] >= '0' && line[1] <= '7' && line[2] == '>';
    log(has_priority ? line[1] - '0' : LOG_NOTICE, has_priority ? line + 3 : line);
    if (const std::uint64_t missing = g_missing.exchange(0); missing > 0) {
      log(LOG_WARNING, fmt::format("the log was held up, and has {} lines less", missing).c_str());
    }
  }
  std::fclose(stream);
}

}  // namespace

SyslogPipe::SyslogPipe(const char* name, Log log) {
  int ends[2] = {-1, -1};
  UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null_device) {
    ::dup2(null_device.get(), STDIN_FILENO);
    ::dup2(null_device.get(), STDOUT_FILENO);
    ::dup2(null_device.get(), STDERR_FILENO);
  }
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  // Nobody waits for the log.
  ::fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
  ::dup2(write_end.get(), STDERR_FILENO);
  if (!log) {
    ::openlog(name, LOG_PID, LOG_DAEMON);
    log = log_to_syslog;
  }
  all_read_ = std::make_shared<std::binary_semaphore>(0);
  thread_ = std::thread(
      [from = std::move(read_end), to = std::move(log), all_read = all_read_]() mutable {
        pass_on(std::move(from), to);
        all_read->release();
      });
  set_log_sink(send_line);
}

SyslogPipe::~SyslogPipe() {
  if (!thread_.joinable()) return;
  set_log_sink(nullptr);
  UniqueFd null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // The last write end: the thread reads to the end.
  if (null_device) {
    ::dup2(null_device.get(), STDERR_FILENO);
  } else {
    ::close(STDERR_FILENO);
  }
  // The mount is over, and its daemon with it, whatever becomes of the log.
  if (all_read_->try_acquire_for(kLastPatience)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace nfsrdma
