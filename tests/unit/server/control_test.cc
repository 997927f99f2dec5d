// SPDX-License-Identifier: Apache-2.0
// The control socket: requests by name, streams, HTTP, and askers that misbehave.
#include "server/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/support/manual_clock.h"
#include "tests/support/no_more_descriptors.h"

namespace nfsrdma {
namespace {

using ::testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    char name[] = "/tmp/control-test-XXXXXX";
    directory_ = ::mkdtemp(name);
    path_ = directory_ + "/control.sock";
    control_ = std::move(ControlSocket::listen(*loop_, path_)).value();
    control_->on("status", [](const JsonValue&, const ControlSocket::Done& done) {
      done("{\"version\":1}");
    });
    control_->on("echo", [](const JsonValue& request, const ControlSocket::Done& done) {
      done("{\"said\":\"" + request["text"].text() + "\"}");
    });
    control_->on("later",
                 [this](const JsonValue&, ControlSocket::Done done) { later_ = std::move(done); });
    control_->on_stream("watch", [this](const JsonValue&, std::shared_ptr<ControlStream> stream) {
      stream->on_gone([this] { gone_ = true; });
      stream_ = std::move(stream);
    });
  }
  ~ControlTest() override {
    stream_.reset();
    control_.reset();
    ::rmdir(directory_.c_str());
  }
  UniqueFd connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  void turn(int times = 20) {
    for (int i = 0; i < times; ++i)
      loop_->turn(std::chrono::milliseconds(1));
  }
  static void say(const UniqueFd& fd, const std::string& text) {
    ASSERT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// What is there now; `closed`: and the end.
  static std::string heard(const UniqueFd& fd, bool* closed = nullptr) {
    std::string all;
    char piece[4096];
    for (;;) {
      const ssize_t n = ::recv(fd.get(), piece, sizeof piece, 0);
      if (closed != nullptr) *closed = n == 0;
      if (n <= 0) return all;
      all.append(piece, static_cast<std::size_t>(n));
    }
  }
  std::string ask(const std::string& text) {
    const UniqueFd fd = connect();
    say(fd, text);
    turn();
    bool closed = false;
    std::string answer = heard(fd, &closed);
    EXPECT_TRUE(closed);
    return answer;
  }

  test::ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::string directory_, path_;
  std::unique_ptr<ControlSocket> control_;
  ControlSocket::Done later_;
  std::shared_ptr<ControlStream> stream_;
  bool gone_ = false;
};

TEST_F(ControlTest, AWordIsARequest) {
  EXPECT_EQ(ask("status\n"), "{\"version\":1}\n");
  EXPECT_EQ(ask("status\r\n"), "{\"version\":1}\n");
}

TEST_F(ControlTest, ARequestWithArgumentsIsAnObject) {
  EXPECT_EQ(ask("{\"request\":\"echo\",\"text\":\"hallo\"}\n"), "{\"said\":\"hallo\"}\n");
}

TEST_F(ControlTest, AnUnknownRequestNamesThoseThatThereAre) {
  EXPECT_THAT(ask("stats\n"),
              HasSubstr("unknown request 'stats', expected one of echo, later, status, watch"));
}

TEST_F(ControlTest, WhatIsNoJsonIsSaid) {
  EXPECT_THAT(ask("{\"request\":\n"), HasSubstr("no JSON object"));
}

TEST_F(ControlTest, ARequestWithoutAnEndIsAnsweredWhenItIsTooLong) {
  EXPECT_THAT(ask(std::string(ControlSocket::kMaxRequest, 'x')), HasSubstr("unknown request"));
}

TEST_F(ControlTest, StreamsOutliveTheSocket) {
  const UniqueFd watcher = connect();
  say(watcher, "watch\n");
  const UniqueFd asker = connect();
  say(asker, "later\n");
  turn();
  ASSERT_NE(stream_, nullptr);
  control_->close_to_askers();
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
  bool closed = false;
  EXPECT_EQ(heard(asker, &closed), "");
  EXPECT_TRUE(closed);
  EXPECT_FALSE(gone_);
  EXPECT_TRUE(stream_->send("last words"));
  stream_->finish();
  turn();
  EXPECT_EQ(heard(watcher, &closed), "last words");
  EXPECT_TRUE(closed);
  EXPECT_FALSE(stream_->open());
}

TEST_F(ControlTest, AFileThatIsNoSocketIsNotReplaced) {
  const std::string file = directory_ + "/file";
  std::ofstream(file) << "mine";
  const auto taken = ControlSocket::listen(*loop_, file);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message(), HasSubstr("no socket"));
  std::string text;
  std::ifstream(file) >> text;
  EXPECT_EQ(text, "mine");
  ::unlink(file.c_str());
}

TEST_F(ControlTest, AnAnswerMayComeLater) {
  const UniqueFd fd = connect();
  say(fd, "later\n");
  turn();
  EXPECT_EQ(heard(fd), "");
  ASSERT_TRUE(later_);
  later_("{}");
  turn();
  EXPECT_EQ(heard(fd), "{}\n");
}

TEST_F(ControlTest, WhoSaysNothingIsSentAway) {
  loop_->set_clock(&clock_);
  const UniqueFd fd = connect();
  turn();
  clock_.advance(ControlSocket::kPatience + std::chrono::seconds(1));
  turn();
  bool closed = false;
  EXPECT_EQ(heard(fd, &closed), "");
  EXPECT_TRUE(closed);
}

TEST_F(ControlTest, AnAnswerMayTakeLongerThanAnAskerMay) {
  loop_->set_clock(&clock_);
  const UniqueFd fd = connect();
  say(fd, "later\n");
  turn();
  clock_.advance(10 * ControlSocket::kPatience);
  turn();
  later_("{}");
  turn();
  EXPECT_EQ(heard(fd), "{}\n");
}

TEST_F(ControlTest, ASlowReaderGetsItAllAsLongAsItReads) {
  loop_->set_clock(&clock_);
  const UniqueFd fd = connect();
  say(fd, "later\n");
  turn();
  const std::string document(std::size_t{3} << 20, 'x');
  later_(document);
  turn();
  std::string read;
  char piece[65536];
  for (int i = 0; i < 1000 && read.size() <= document.size(); ++i) {
    const ssize_t n = ::recv(fd.get(), piece, sizeof piece, 0);
    if (n > 0) read.append(piece, static_cast<std::size_t>(n));
    clock_.advance(ControlSocket::kPatience / 8);
    turn(2);
  }
  EXPECT_EQ(read, document + "\n");
}

TEST_F(ControlTest, AReaderThatStopsIsSentAway) {
  loop_->set_clock(&clock_);
  const UniqueFd fd = connect();
  say(fd, "later\n");
  turn();
  later_(std::string(std::size_t{3} << 20, 'x'));
  turn();
  clock_.advance(ControlSocket::kPatience + std::chrono::seconds(1));
  turn();
  bool closed = false;
  EXPECT_LT(heard(fd, &closed).size(), std::size_t{3} << 20);
  EXPECT_TRUE(closed);
}

TEST_F(ControlTest, WhoFindsNoPlaceIsTold) {
  std::vector<UniqueFd> askers;
  for (std::size_t i = 0; i < ControlSocket::kMaxClients; ++i) {
    askers.push_back(connect());
    turn(2);
  }
  const UniqueFd another = connect();
  say(another, "status\n");
  turn();
  bool closed = false;
  EXPECT_THAT(heard(another, &closed), HasSubstr("too many ask at a time"));
  EXPECT_TRUE(closed);
  say(askers.front(), "status\n");
  turn();
  EXPECT_EQ(heard(askers.front()), "{\"version\":1}\n");
}

TEST_F(ControlTest, WithoutDescriptorsItWaitsAndDoesNotSpin) {
  loop_->set_clock(&clock_);
  const UniqueFd fd = connect();
  {
    const test::NoMoreDescriptors none;
    EXPECT_TRUE(loop_->turn(Duration::zero()));
    EXPECT_FALSE(loop_->turn(Duration::zero()));
  }
  clock_.advance(std::chrono::seconds(1));
  turn();
  say(fd, "status\n");
  turn();
  EXPECT_EQ(heard(fd), "{\"version\":1}\n");
}

TEST_F(ControlTest, AnAnswerForSomebodyWhoIsGoneIsDropped) {
  UniqueFd fd = connect();
  say(fd, "later\n");
  turn();
  fd.reset();
  turn();
  later_("{}");
  turn();
  EXPECT_EQ(ask("status\n"), "{\"version\":1}\n");
}

TEST_F(ControlTest, AStreamStaysOpenAndHearsThatItsReaderIsGone) {
  UniqueFd fd = connect();
  say(fd, "watch\n");
  turn();
  ASSERT_NE(stream_, nullptr);
  EXPECT_TRUE(stream_->send("one\n"));
  turn();
  EXPECT_TRUE(stream_->send("two\n"));
  turn();
  EXPECT_EQ(heard(fd), "one\ntwo\n");
  EXPECT_FALSE(gone_);
  fd.reset();
  turn();
  EXPECT_TRUE(gone_);
  EXPECT_FALSE(stream_->send("three\n"));
}

TEST_F(ControlTest, AStreamTakesNoMoreThanMayStayUnread) {
  const UniqueFd fd = connect();
  say(fd, "watch\n");
  turn();
  const std::string piece(64 << 10, 'x');
  std::size_t taken = 0;
  while (taken < 4 * ControlStream::kMostUnread && stream_->send(piece)) {
    taken += piece.size();
    turn(2);
  }
  EXPECT_GE(taken, ControlStream::kMostUnread);
  EXPECT_LT(taken, 2 * ControlStream::kMostUnread);
  // Once it is read there is room again, and nothing was lost.
  std::size_t read = 0;
  for (int i = 0; i < 1000 && read < taken; ++i) {
    read += heard(fd).size();
    turn(2);
  }
  EXPECT_EQ(read, taken);
  EXPECT_TRUE(stream_->send(piece));
}

TEST_F(ControlTest, AFinishedStreamSendsWhatIsLeftAndCloses) {
  const UniqueFd fd = connect();
  say(fd, "watch\n");
  turn();
  stream_->send("last\n");
  stream_->finish();
  turn();
  bool closed = false;
  EXPECT_EQ(heard(fd, &closed), "last\n");
  EXPECT_TRUE(closed);
  EXPECT_FALSE(gone_);
}

TEST_F(ControlTest, TheEndOfTheSocketEndsItsStreams) {
  const UniqueFd fd = connect();
  say(fd, "watch\n");
  turn();
  control_.reset();
  EXPECT_TRUE(gone_);
  EXPECT_FALSE(stream_->open());
}

TEST_F(ControlTest, HttpGetsTheWholeAnswer) {
  control_->answer_http([](std::string_view path, const ControlSocket::Done& done) {
    done("HTTP/1.0 200 OK\r\n\r\n" + std::string(path));
  });
  EXPECT_EQ(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.0 200 OK\r\n\r\n/metrics");
  EXPECT_EQ(ask("POST / HTTP/1.1\r\n\r\n"), "HTTP/1.0 200 OK\r\n\r\n?");
}

}  // namespace
}  // namespace nfsrdma
