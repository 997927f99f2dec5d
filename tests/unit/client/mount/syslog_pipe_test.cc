// SPDX-License-Identifier: Apache-2.0
#include "client/mount/syslog_pipe.h"

#include <gtest/gtest.h>
#include <syslog.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

/// Descriptors 0, 1 and 2, as they were.
class StandardStreams {
 public:
  StandardStreams() {
    std::fflush(nullptr);
    for (int fd = 0; fd < 3; ++fd)
      saved_[fd] = ::dup(fd);
  }
  ~StandardStreams() {
    for (int fd = 0; fd < 3; ++fd) {
      ::dup2(saved_[fd], fd);
      ::close(saved_[fd]);
    }
  }
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;

 private:
  int saved_[3];
};

using Lines = std::vector<std::pair<int, std::string>>;

TEST(SyslogPipe, KeepsThePriorityOfEachLine) {
  Lines lines;
  {
    StandardStreams saved;
    SyslogPipe pipe("test",
                    [&](int priority, const char* line) { lines.emplace_back(priority, line); });
    log_error("data is lost");
    log_warning("not responding");
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, "a library\n", 10);
    log_notice("OK");
    log_notice("{}", std::string(10'000, 'x'));
    log_notice("the last");
  }
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_LT(lines[4].second.size(), 5'000u) << "cut, not cut in two";
  lines.erase(lines.begin() + 4);
  EXPECT_EQ(lines, (Lines{{LOG_ERR, "data is lost\n"},
                          {LOG_WARNING, "not responding\n"},
                          {LOG_NOTICE, "a library\n"},
                          {LOG_NOTICE, "OK\n"},
                          {LOG_NOTICE, "the last\n"}}));
}

TEST(SyslogPipe, HoldsNobodyUpWhileNobodyTakesTheLog) {
  constexpr std::size_t kLines = 5'000;  // more than a pipe takes
  Lines lines;
  std::binary_semaphore taken(0);
  {
    StandardStreams saved;
    SyslogPipe pipe("test", [&](int priority, const char* line) {
      if (lines.empty()) taken.acquire();
      lines.emplace_back(priority, line);
    });
    for (std::size_t i = 0; i < kLines; ++i)
      log_error("{}", std::string(100, 'x'));
    taken.release();
  }
  ASSERT_LT(lines.size(), kLines);
  ASSERT_GT(lines.size(), 2u);
  // Said behind the first line that was taken again.
  EXPECT_EQ(lines[1], std::pair(LOG_WARNING, "the log was held up, and has " +
                                                 std::to_string(kLines - (lines.size() - 1)) +
                                                 " lines less"));
}

}  // namespace
}  // namespace nfsrdma
