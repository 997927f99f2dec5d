// SPDX-License-Identifier: Apache-2.0
#include "client/tool/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "client/tool/format.h"

namespace nfsrdma::tool {
namespace {

constexpr auto kQuiet = std::chrono::seconds(2);
constexpr auto kRedraw = std::chrono::milliseconds(200);

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

std::string progress_line(std::uint64_t done, std::uint64_t total, double seconds,
                          std::size_t columns) {
  const double share =
      total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string tail =
      fmt::format(" {:3.0f} %  {} of {}  {}/s", share * 100, bytes_text(static_cast<double>(done)),
                  bytes_text(static_cast<double>(total)), bytes_text(rate));
  if (rate > 0 && done < total) {
    tail += "  " + duration_text(static_cast<double>(total - done) / rate) + " left";
  }
  const std::size_t room = columns > tail.size() + 3 ? columns - tail.size() - 3 : 0;
  const std::size_t width = std::min<std::size_t>(room, 40);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  std::string line;
  if (width >= 5) line = "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
  line += tail;
  return line.substr(0, columns);
}

Progress::Progress(bool wanted)
    : wanted_(wanted && ::isatty(STDERR_FILENO)), next_(started_ + kQuiet) {}

void Progress::advance(std::uint64_t bytes) {
  done_ += bytes;
  if (!wanted_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kRedraw;
  draw(now);
}

void Progress::draw(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::fprintf(stderr, "\r%s\033[K",
               progress_line(done_, total_, seconds, terminal_columns() - 1).c_str());
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace nfsrdma::tool
