// SPDX-License-Identifier: Apache-2.0
// Going into the background: what the parent ends with, what the child lets go of. A child of the
// test becomes the parent here; the server, its child, tells over a pipe what it has found.
#include "server/daemonize.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace nfsrdma {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader.reset(ends[0]);
    writer.reset(ends[1]);
  }
  UniqueFd reader, writer;
};

class DaemonizeTest : public testing::Test {
 protected:
  using Serve = std::function<void(Daemonizer&)>;

  /// `prepare` runs before the fork, `serve` in the server, which then ends.
  void start(
      const Serve& serve, const std::function<void()>& prepare = [] {}) {
    parent_ = ::fork();
    if (parent_ != 0) {
      words_.writer.reset();
      go_on_.reader.reset();
      return;
    }
    prepare();
    Daemonizer daemonizer(true);
    if (daemonizer.is_parent()) ::_exit(daemonizer.wait_for_child());
    serve(daemonizer);
    ::_exit(0);
  }
  /// In the server.
  void tell(const std::string& text) const {
    if (::write(words_.writer.get(), text.data(), text.size()) < 0) ::_exit(9);
  }
  /// In the server: until the test lets it go on, or is gone.
  void wait_for_test() {
    go_on_.writer.reset();
    char byte;
    if (::read(go_on_.reader.get(), &byte, 1) < 0) ::_exit(9);
  }
  /// In the test: all that the server tells until it is gone.
  std::string told() const {
    std::string all;
    char piece[256];
    for (ssize_t n; (n = ::read(words_.reader.get(), piece, sizeof piece)) > 0;)
      all.append(piece, static_cast<std::size_t>(n));
    return all;
  }
  /// In the test: so many bytes of it.
  std::string told(std::size_t bytes) const {
    std::string all(bytes, ' ');
    std::size_t at = 0;
    for (ssize_t n; at < bytes; at += static_cast<std::size_t>(n)) {
      n = ::read(words_.reader.get(), all.data() + at, bytes - at);
      if (n <= 0) break;
    }
    return all.substr(0, at);
  }
  bool parent_is_there() const { return ::waitpid(parent_, nullptr, WNOHANG) == 0; }
  int parent_status() const {
    int status = 0;
    ::waitpid(parent_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static std::string target(int fd) {
    char text[256] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    return ::readlink(link.c_str(), text, sizeof text - 1) < 0 ? "closed" : text;
  }

  Pipe words_, go_on_;
  pid_t parent_ = -1;
};

TEST_F(DaemonizeTest, TheParentStaysUntilTheServerServes) {
  start([this](Daemonizer& daemonizer) {
    tell("starting");
    wait_for_test();
    daemonizer.ready();
    wait_for_test();
    tell(" serving");
  });
  EXPECT_EQ(told(8), "starting");
  EXPECT_TRUE(parent_is_there());
  ASSERT_EQ(::write(go_on_.writer.get(), "x", 1), 1);
  EXPECT_EQ(parent_status(), 0);
  go_on_.writer.reset();
  EXPECT_EQ(told(), " serving") << "it is there when the parent is not";
}

TEST_F(DaemonizeTest, TheParentEndsWithTheStatusOfAServerThatFailed) {
  start([](Daemonizer& daemonizer) { daemonizer.failed(3); });
  EXPECT_EQ(parent_status(), 3);
}

TEST_F(DaemonizeTest, StatusesAreTakenUpToTheLast) {
  start([](Daemonizer& daemonizer) { daemonizer.failed(255); });
  EXPECT_EQ(parent_status(), 255);
}

TEST_F(DaemonizeTest, AServerThatEndsWithoutAWordHasFailed) {
  start([](Daemonizer&) { ::_exit(0); });
  EXPECT_EQ(parent_status(), 1);
}

TEST_F(DaemonizeTest, AServerThatIsKilledHasFailed) {
  start([](Daemonizer&) { ::raise(SIGKILL); });
  EXPECT_EQ(parent_status(), 1);
}

/// What a server that fails has started may live on; the parent does not wait for that.
TEST_F(DaemonizeTest, TheFirstWordCounts) {
  start([this](Daemonizer& daemonizer) {
    daemonizer.failed(3);
    wait_for_test();
  });
  EXPECT_EQ(parent_status(), 3);
}

TEST_F(DaemonizeTest, ASignalDoesNotEndTheWait) {
  const auto handle = [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
  };
  start(
      [](Daemonizer& daemonizer) {
        const std::string parent = "/proc/" + std::to_string(::getppid()) + "/stat";
        const auto waits = [&parent] {  // asleep, which it is nowhere but in its read()
          std::string number, name, state;
          std::ifstream(parent) >> number >> name >> state;
          return state == "S";
        };
        while (!waits())
          std::this_thread::yield();
        ::kill(::getppid(), SIGUSR1);
        while (!waits())
          std::this_thread::yield();
        daemonizer.failed(3);
      },
      handle);
  EXPECT_EQ(parent_status(), 3);
}

TEST_F(DaemonizeTest, TheServerIsInASessionOfItsOwn) {
  start([this](Daemonizer& daemonizer) {
    daemonizer.ready();
    tell(::getsid(0) == ::getpid() && ::getsid(0) != ::getsid(::getppid()) ? "own" : "not");
  });
  EXPECT_EQ(told(), "own");
  EXPECT_EQ(parent_status(), 0);
}

TEST_F(DaemonizeTest, TheServerLetsGoOfItsDirectoryAndOfTheStreams) {
  const Pipe in, out, err;
  start(
      [this](Daemonizer& daemonizer) {
        daemonizer.ready();
        char where[256];
        tell(std::string(::getcwd(where, sizeof where)) + " " + target(0) + " " + target(1));
        wait_for_test();
      },
      [&] {
        ::dup2(in.reader.get(), STDIN_FILENO);
        ::dup2(out.writer.get(), STDOUT_FILENO);
        ::dup2(err.writer.get(), STDERR_FILENO);
        // As after exec.
        for (const Pipe* pipe : {&in, &out, &err}) {
          ::close(pipe->reader.get());
          ::close(pipe->writer.get());
        }
        if (::chdir("/tmp") != 0) ::_exit(9);
      });
  EXPECT_EQ(parent_status(), 0);
  const std::string expected = "/ /dev/null /dev/null";
  EXPECT_EQ(told(expected.size()), expected);
}

/// `$(nfs-rdmad)` reads until all that have the pipe are gone.
TEST_F(DaemonizeTest, WhoReadsTheOutputIsNotKeptWaiting) {
  Pipe out;
  start(
      [this](Daemonizer& daemonizer) {
        const std::string text = "ready\n";
        if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(9);
        daemonizer.ready();
        wait_for_test();
      },
      [&] {
        ::dup2(out.writer.get(), STDOUT_FILENO);
        out.writer.reset();
      });
  out.writer.reset();
  std::string read;
  char piece[64];
  for (ssize_t n; (n = ::read(out.reader.get(), piece, sizeof piece)) > 0;)
    read.append(piece, static_cast<std::size_t>(n));
  EXPECT_EQ(read, "ready\n");
  EXPECT_EQ(parent_status(), 0);
}

TEST_F(DaemonizeTest, ALogThatIsNoTerminalGoesOn) {
  const Pipe log;
  start(
      [](Daemonizer& daemonizer) {
        daemonizer.ready();
        if (::write(STDERR_FILENO, "log", 3) < 0) ::_exit(9);
      },
      [&] { ::dup2(log.writer.get(), STDERR_FILENO); });
  EXPECT_EQ(parent_status(), 0);
  char text[3] = {};
  EXPECT_EQ(::read(log.reader.get(), text, sizeof text), 3);
  EXPECT_EQ(std::string(text, 3), "log");
}

TEST_F(DaemonizeTest, ATerminalIsLetGoOf) {
  const UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master);
  ASSERT_EQ(::grantpt(master.get()), 0);
  ASSERT_EQ(::unlockpt(master.get()), 0);
  const UniqueFd terminal(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  start(
      [this](Daemonizer& daemonizer) {
        daemonizer.ready();
        tell(target(STDERR_FILENO));
      },
      [&] { ::dup2(terminal.get(), STDERR_FILENO); });
  EXPECT_EQ(told(), "/dev/null");
  EXPECT_EQ(parent_status(), 0);
}

/// Whoever starts it so (cron jobs and supervisors do) must not have the log, or the word for the
/// parent, go to whatever got these numbers.
TEST_F(DaemonizeTest, StreamsThatAreClosedAreNobodyElses) {
  start(
      [this](Daemonizer& daemonizer) {
        const int first = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        daemonizer.ready();
        const bool kept = target(first) != "/dev/null" && target(first) != "closed";
        tell(target(0) + " " + target(1) + " " + target(2) + (kept ? " kept" : " lost"));
      },
      [] {
        for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
          ::close(fd);
      });
  EXPECT_EQ(told(), "/dev/null /dev/null /dev/null kept");
  EXPECT_EQ(parent_status(), 0);
}

TEST_F(DaemonizeTest, InTheForegroundToo) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    const Daemonizer daemonizer(false);
    ::_exit(::open("/proc/self/status", O_RDONLY | O_CLOEXEC) == STDERR_FILENO ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(DaemonizeTest, InTheForegroundNothingIsLetGoOf) {
  const pid_t self = ::getpid();
  char before[256], after[256];
  ASSERT_NE(::getcwd(before, sizeof before), nullptr);
  const std::string out = target(STDOUT_FILENO), err = target(STDERR_FILENO);
  Daemonizer daemonizer(false);
  EXPECT_FALSE(daemonizer.is_parent());
  EXPECT_EQ(::getpid(), self);
  daemonizer.failed(3);
  daemonizer.ready();
  ASSERT_NE(::getcwd(after, sizeof after), nullptr);
  EXPECT_STREQ(before, after);
  EXPECT_EQ(target(STDOUT_FILENO), out);
  EXPECT_EQ(target(STDERR_FILENO), err);
}

TEST_F(DaemonizeTest, WithoutDescriptorsItServesInTheForeground) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const pid_t self = ::getpid();
    Daemonizer daemonizer(true);
    daemonizer.ready();
    ::_exit(!daemonizer.is_parent() && ::getpid() == self ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace nfsrdma
