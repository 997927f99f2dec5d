// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {

namespace {

std::atomic<LogLevel> g_level{LogLevel::kNotice};
std::atomic<LogSink> g_sink{nullptr};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("nfs-rdma",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    made->set_pattern(standard_error_is_the_journal() ? "%v" : "%Y-%m-%d %H:%M:%S.%e %v");
    return made;
  }();
  return *instance;
}

struct LevelName {
  const char* name;
  int syslog_priority;
};
constexpr LevelName kLevels[] = {
    {"error", 3}, {"warning", 4}, {"notice", 5}, {"info", 6}, {"debug", 7}};

}  // namespace

bool standard_error_is_the_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat st {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &st) != 0) return false;
  return fmt::format("{}:{}", st.st_dev, st.st_ino) == stream;
}

void set_log_level(LogLevel level) {
  g_level.store(level, std::memory_order_relaxed);
}
LogLevel log_level() {
  return g_level.load(std::memory_order_relaxed);
}

bool parse_log_level(std::string_view name, LogLevel* level) {
  for (std::size_t i = 0; i < std::size(kLevels); ++i) {
    if (name == kLevels[i].name) {
      *level = static_cast<LogLevel>(i);
      return true;
    }
  }
  return false;
}

void set_log_sink(LogSink sink) {
  g_sink.store(sink, std::memory_order_release);
}

void log_line(LogLevel level, std::string_view text, std::span<const LogField> fields) {
  // Names that peers chose stand in it: none may end the line or command a terminal.
  const std::string line = terminal_text(text);
  static const bool journal = standard_error_is_the_journal();
  const LevelName& entry = kLevels[static_cast<std::size_t>(level)];
  if (const LogSink sink = g_sink.load(std::memory_order_acquire)) {
    return sink(entry.syslog_priority, line, fields);
  }
  if (journal) {
    logger().info("<{}>{}", entry.syslog_priority, line);
  } else {
    logger().info("{}: {}", entry.name, line);
  }
}

}  // namespace nfsrdma
