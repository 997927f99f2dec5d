// SPDX-License-Identifier: Apache-2.0
// What the tool makes of answers of servers and mounts that are none, and of whoever gives them.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "client/status_source.h"
#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "rpcrdma/base/unique_fd.h"

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

}  // namespace
}  // namespace nfsrdma::tool
