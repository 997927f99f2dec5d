// SPDX-License-Identifier: Apache-2.0
#include "client/tool/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace nfsrdma::tool {

namespace {

volatile sig_atomic_t g_leave = 0;

void leave(int) {
  g_leave = 1;
}

winsize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) {
    size.ws_row = 50;
    size.ws_col = 160;
  }
  return size;
}

}  // namespace

Terminal::Terminal() : is_one_(::isatty(STDOUT_FILENO) == 1) {
  struct sigaction action {};
  action.sa_handler = leave;
  for (const int number : {SIGINT, SIGTERM})
    ::sigaction(number, &action, nullptr);
  if (!is_one_) return;
  if (::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &saved_) == 0) {
    termios raw = saved_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    reads_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  std::fputs("\033[?1049h\033[?25l", stdout);  // the other screen, no cursor
}

Terminal::~Terminal() {
  if (reads_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
  if (is_one_) std::fputs("\033[?25h\033[?1049l", stdout);
  std::fflush(stdout);
}

std::size_t Terminal::columns() const {
  return size_of_terminal().ws_col;
}
std::size_t Terminal::rows() const {
  return size_of_terminal().ws_row;
}

void Terminal::draw(const std::string& text) {
  if (!is_one_) {
    std::fputs(text.c_str(), stdout);
  } else {
    // Each line is cut where it ends, so that nothing flickers.
    std::string out = "\033[H";
    for (const char c : text) {
      if (c == '\n') out += "\033[K\r";
      out += c;
    }
    std::fputs((out + "\033[J").c_str(), stdout);
  }
  std::fflush(stdout);
}

bool Terminal::wait(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (g_leave == 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd key{STDIN_FILENO, POLLIN, 0};
    const int n = ::poll(&key, reads_keys_ ? 1 : 0, static_cast<int>(left.count()));
    if (n <= 0) continue;
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) <= 0) reads_keys_ = false;
    if (c == 'q' || c == 'Q') return true;
  }
  return true;
}

}  // namespace nfsrdma::tool
