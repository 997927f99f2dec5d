// SPDX-License-Identifier: Apache-2.0
// What the tool makes of answers of servers and mounts that are none, and of whoever gives them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "client/mount/status_socket.h"
#include "client/status_source.h"
#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "rpcrdma/base/unique_fd.h"
#include "tests/support/manual_clock.h"
#include "tests/support/no_more_descriptors.h"
#include "tests/support/temporary_directory.h"

namespace nfsrdma::tool {
namespace {

using testing::HasSubstr;

/// Answers one request in a directory below /tmp like that of a user without XDG_RUNTIME_DIR.
class Answerer {
 public:
  explicit Answerer(std::string answer, uid_t user = ::geteuid()) : answer_(std::move(answer)) {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/control.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    // Whoever calls listen(2) is who the other end sees.
    const uid_t before = ::geteuid();
    EXPECT_EQ(::seteuid(user), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::seteuid(before), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Answerer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    std::filesystem::remove_all(directory_);
  }
  const std::string& path() const { return path_; }

 private:
  void serve() {
    const UniqueFd asker(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char request[256];
    if (!asker || ::recv(asker.get(), request, sizeof request, 0) <= 0) return;
    ::send(asker.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    ::shutdown(listener_.get(), SHUT_RDWR);
  }

  const std::string answer_;
  std::string directory_ = "/tmp/nfs-rdma-test-XXXXXX";
  std::string path_;
  UniqueFd listener_;
  std::thread thread_;
};

int status_of(const Answerer& server, std::string* said) {
  testing::internal::CaptureStderr();
  const int code = run_status({"--server", server.path()});
  *said = testing::internal::GetCapturedStderr();
  return code;
}

// "No connections" would be taken for the truth.
TEST(StatusSource, ARefusalIsNoStatus) {
  std::string said;
  const Answerer full("{\"version\":1,\"error\":\"too many ask at a time\"}\n");
  EXPECT_EQ(status_of(full, &said), kExitFailure);
  EXPECT_THAT(said, HasSubstr("too many ask at a time"));
}

TEST(StatusSource, NoAnswerIsSaid) {
  std::string said;
  const Answerer ending("");
  EXPECT_EQ(status_of(ending, &said), kExitFailure);
  EXPECT_THAT(said, HasSubstr("there was no answer"));
}

/// Standard output and errors go to a terminal of its own; what came is text().
class OnATerminal {
 public:
  OnATerminal() : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(::grantpt(terminal_.get()), 0);
    EXPECT_EQ(::unlockpt(terminal_.get()), 0);
    const UniqueFd screen(::open(::ptsname(terminal_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_TRUE(screen);
    std::fflush(stdout);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      before_[fd - 1].reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
      ::dup2(screen.get(), fd);
    }
  }
  ~OnATerminal() { restore(); }
  std::string text() {
    std::string all(65536, '\0');
    std::fflush(stdout);
    const ssize_t n = ::read(terminal_.get(), all.data(), all.size());
    all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    restore();
    return all;
  }

 private:
  void restore() {
    std::fflush(stdout);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      if (before_[fd - 1]) ::dup2(before_[fd - 1].get(), fd);
      before_[fd - 1].reset();
    }
  }
  UniqueFd terminal_;
  UniqueFd before_[2];
};

// The screen that is drawn on goes with what is on it.
TEST(StatusSource, WhyTheWatchEndedIsOnTheScreenThatStays) {
  const Answerer ending("{}\n");
  OnATerminal terminal;
  const int code = run_status({"--server", ending.path(), "--watch=0.1"});
  const std::string text = terminal.text();
  EXPECT_EQ(code, kExitFailure);
  const std::size_t back = text.rfind("\033[?1049l");
  ASSERT_NE(back, std::string::npos) << text;
  EXPECT_THAT(text.substr(back), HasSubstr("status: "));
}

// Work may wait for what hangs while all else is served.
TEST(StatusSource, SilenceMeansWhatWasAskedFor) {
  const UniqueFd nobody(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = testing::TempDir() + "silent-" + std::to_string(::getpid());
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(nobody.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(nobody.get(), 2), 0);
  std::string why;
  EXPECT_FALSE(ask_control(path, "status", &why, std::chrono::milliseconds(20)).ok());
  EXPECT_THAT(why, HasSubstr("the daemon hangs"));
  EXPECT_FALSE(
      ask_control(path, "reload", &why, std::chrono::milliseconds(20), silence_text(kWorkPatience))
          .ok());
  EXPECT_THAT(why, HasSubstr("a file system or the name service does not answer"));
  EXPECT_STREQ(silence_text(kStatusPatience), kSilence);
  std::filesystem::remove(path);
}

TEST(StatusSource, TheUserIsBelievedInTmp) {
  std::string why;
  const Answerer own("{}\n");
  EXPECT_EQ(ask_control(own.path(), "status", &why).value(), "{}\n");
}

TEST(StatusSource, WhoIsInTmpInPlaceOfTheUserIsNotBelieved) {
  std::string why;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can answer as somebody else";
  const Answerer other("{}\n", 65534);
  EXPECT_FALSE(ask_control(other.path(), "status", &why).ok());
  EXPECT_THAT(why, HasSubstr("another user answers there"));
}

// An administrator who asks for a user's mount.
TEST(StatusSource, WhomTheDirectoryIsOfIsBelievedThere) {
  const uid_t user = ::geteuid() + 1000;
  const std::string directory = "/tmp/nfs-rdma-" + std::to_string(user);
  EXPECT_TRUE(is_believed_at(directory + "/mount.sock", user));
  EXPECT_TRUE(is_believed_at(directory + "/mount.sock", 0));
  EXPECT_FALSE(is_believed_at(directory + "/mount.sock", user + 1));
  EXPECT_FALSE(is_believed_at(directory + "0/mount.sock", user));
  EXPECT_TRUE(is_believed_at("/run/user/7/nfs-rdma/mount.sock", user))
      << "nobody else can be there";
}

// From a login's shell by a user, from elsewhere (sudo, cron) by whoever asks.
TEST(StatusSource, AMountIsLookedForInTheRuntimeDirectoryOfItsUser) {
  const std::string name = "/mount-0-50.sock";
  const char* set = std::getenv("XDG_RUNTIME_DIR");
  const std::string before = set == nullptr ? "" : set;
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_THAT(
      mount_socket_places({0, 50}, 1000),
      testing::UnorderedElementsAre("/run/user/1000/nfs-rdma" + name, "/tmp/nfs-rdma-1000" + name));
  EXPECT_EQ(mount_socket_path({0, 50}, 1000), "/tmp/nfs-rdma-1000" + name);
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(mount_socket_path({0, 50}, 7), "/run/user/7/nfs-rdma" + name);
  EXPECT_THAT(mount_socket_places({0, 50}, 0), testing::ElementsAre("/run/nfs-rdma" + name));
  if (set == nullptr) ::unsetenv("XDG_RUNTIME_DIR");
  if (set != nullptr) ::setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
}

/// Nor does it forget who asked.
TEST(MountStatusSocket, WithoutDescriptorsItWaitsAndDoesNotSpin) {
  test::ManualClock clock;
  const auto loop = EventLoop::create().value();
  loop->set_clock(&clock);
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/mount.sock";
  auto listening = StatusSocket::listen(*loop, path, [] { return std::string("{}"); }).value();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto ask = [&address] {
    UniqueFd asker(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(asker.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(asker.get(), "status\n", 7, MSG_NOSIGNAL), 7);
    return asker;
  };
  // UBSan needs descriptors when it sees a virtual call for the first time.
  ask().reset();
  while (loop->turn(Duration::zero())) {
  }
  const UniqueFd asker = ask();
  {
    const test::NoMoreDescriptors none;
    EXPECT_TRUE(loop->turn(Duration::zero()));
    EXPECT_FALSE(loop->turn(Duration::zero()));
  }
  clock.advance(std::chrono::seconds(1));
  for (int i = 0; i < 10; ++i)
    loop->turn(Duration::zero());
  char answer[8];
  EXPECT_EQ(::recv(asker.get(), answer, sizeof answer, MSG_DONTWAIT), 3);
  listening.reset();
}

}  // namespace
}  // namespace nfsrdma::tool
