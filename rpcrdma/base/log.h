// SPDX-License-Identifier: Apache-2.0
// Log lines. spdlog does the work in log.cc; callers see only fmt. On their way to systemd's
// journal lines carry the sd-daemon(3) priority prefix, elsewhere a time and a level.
//
//   log_warning("{}: {} on an RDMA port", peer, what);
//
// What a peer can trigger repeatedly goes through a RateLimit, so that it cannot fill the disk.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace nfsrdma {

enum class LogLevel : std::uint8_t { kError, kWarning, kNotice, kInfo, kDebug };

/// Any thread.
void set_log_level(LogLevel level);
LogLevel log_level();
/// "error", "warning", "notice", "info", "debug"; false when `name` is none of them.
bool parse_log_level(std::string_view name, LogLevel* level);
/// $JOURNAL_STREAM is "device:inode" (systemd.exec(5)): somebody may have redirected us since.
bool standard_error_is_the_journal();
/// What a line is about, for those who search the journal: NFS_RDMA_CLIENT, NFS_RDMA_OPERATION, ...
struct LogField {
  const char* name;
  std::string value;
};
void log_line(LogLevel level, std::string_view line, std::span<const LogField> fields = {});
/// Lines go there from now on, instead of standard error. `priority` as syslog(3) numbers it. Set
/// it before there are threads; it is called on any.
using LogSink = void (*)(int priority, std::string_view line, std::span<const LogField> fields);
void set_log_sink(LogSink sink);

template <typename... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
/// With fields, which only the journal keeps apart: the text has to tell the same.
template <typename... Args>
void log_event(LogLevel level, std::span<const LogField> fields, fmt::format_string<Args...> format,
               Args&&... args) {
  if (level <= log_level())
    log_line(level, fmt::format(format, std::forward<Args>(args)...), fields);
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kError, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_notice(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kNotice, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kDebug, format, std::forward<Args>(args)...);
}

/// Allows `burst` events per interval. Thread-local use (one per loop) or static; not thread-safe.
class RateLimit {
 public:
  RateLimit(unsigned burst, std::chrono::seconds interval) : burst_(burst), interval_(interval) {}
  bool allow() {
    auto now = std::chrono::steady_clock::now();
    if (now - window_start_ >= interval_) {
      window_start_ = now;
      used_ = 0;
    }
    return used_ < burst_ ? (++used_, true) : false;
  }

 private:
  unsigned burst_;
  std::chrono::seconds interval_;
  unsigned used_ = 0;
  std::chrono::steady_clock::time_point window_start_{};
};

}  // namespace nfsrdma
