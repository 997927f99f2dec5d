// SPDX-License-Identifier: Apache-2.0
#include "client/tool/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace nfsrdma::tool {

namespace {

volatile sig_atomic_t g_leave = 0;
volatile sig_atomic_t g_suspend = 0;

void note_signal(int number) {
  (number == SIGTSTP ? g_suspend : g_leave) = 1;
}
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP};

/// As if nobody handled the signal: without a shell that could continue it, nothing happens.
void stop_by(int number) {
  struct sigaction ordinary {
  }, ours{};
  ordinary.sa_handler = SIG_DFL;
  ::sigaction(number, &ordinary, &ours);
  sigset_t only, before;
  sigemptyset(&only);
  sigaddset(&only, number);
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &only, &before);  // here it stops
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::sigaction(number, &ours, nullptr);
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
  // Blocked but while it waits: so none comes between a look at the flags and the wait.
  struct sigaction action {
  }, before{};
  action.sa_handler = note_signal;
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : kSignals) {
    // What nohup(1) or a shell wants ignored stays so.
    if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
    sigaddset(&ours, number);
  }
  ::sigprocmask(SIG_BLOCK, &ours, &outside_);
  take_over();
}

void Terminal::take_over() {
  if (!is_one_) return;
  if (::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &saved_) == 0) {
    termios raw = saved_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    reads_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  std::fputs("\033[?1049h\033[?25l", stdout);  // the other screen, no cursor
}

Terminal::~Terminal() {
  give_back();
  ::sigprocmask(SIG_SETMASK, &outside_, nullptr);
}

void Terminal::give_back() {
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

bool Terminal::draw(const std::string& text) {
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
  return std::ferror(stdout) == 0;
}

bool Terminal::wait(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (g_leave == 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd key{STDIN_FILENO, POLLIN, 0};
    const timespec limit{left.count() / 1000, left.count() % 1000 * 1'000'000};
    const int n = ::ppoll(&key, reads_keys_ ? 1 : 0, &limit, &outside_);
    if (std::exchange(g_suspend, 0) != 0) {
      give_back();
      stop_by(SIGTSTP);
      take_over();
      return false;  // draw again
    }
    if (n <= 0) continue;
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) <= 0) reads_keys_ = false;
    if (c == 'q' || c == 'Q') return true;
  }
  return true;
}

}  // namespace nfsrdma::tool
