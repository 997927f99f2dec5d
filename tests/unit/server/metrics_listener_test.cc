// SPDX-License-Identifier: Apache-2.0
// Where Prometheus asks: addresses and sockets, the answer to a scrape, and askers that send
// rubbish, too much, nothing, or go away.
#include "server/metrics_listener.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/manual_clock.h"

namespace nfsrdma {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A server has to listen somewhere: this is nowhere.
class NowhereFabric final : public Fabric {
 public:
  FabricKind kind() const override { return FabricKind::kSimulated; }
  Result<void> available() const override { return {}; }
  Result<std::unique_ptr<Listener>> listen(EventLoop&, const SocketAddress& address,
                                           IncomingHandler&) override {
    return std::unique_ptr<Listener>(new Nowhere(address));
  }
  Result<std::unique_ptr<Connector>> connect(EventLoop&, const SocketAddress&,
                                             ConnectHandler&) override {
    return Error{Errc::kUnsupported, 0, "not here"};
  }
  void forget(EventLoop&) override {}

 private:
  class Nowhere final : public Listener {
   public:
    explicit Nowhere(const SocketAddress& address) : address_(address) {}
    const SocketAddress& address() const override { return address_; }

   private:
    SocketAddress address_;
  };
};

class MetricsListenerTest : public testing::Test {
 protected:
  MetricsListenerTest() {
    char name[] = "/tmp/metrics-listener-XXXXXX";
    directory_ = ::mkdtemp(name);
    path_ = directory_ + "/metrics.sock";
    NfsServer::Options options;
    options.config.state_dir = directory_;
    options.config.shards = 1;
    options.config.tcp_port = 0;
    options.config.nfs4 = false;
    options.config.nlm = false;
    options.fabrics.push_back({std::make_unique<NowhereFabric>(), true});
    std::string why;
    auto server = NfsServer::start(*loop_, std::move(options), &why);
    EXPECT_TRUE(server.ok()) << why;
    if (server.ok()) server_ = std::move(*server);
  }
  ~MetricsListenerTest() override {
    listener_.reset();
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  void SetUp() override { ASSERT_NE(server_, nullptr); }

  /// "" when it listens there, else why not.
  std::string listen(const std::string& where) {
    std::string why;
    listener_ = listen_for_metrics(*loop_, *server_, where, &why);
    EXPECT_EQ(listener_ == nullptr, !why.empty());
    return why;
  }
  UniqueFd connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static UniqueFd connect(const SocketAddress& address) {
    UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), address.data(), address.length()), 0);
    return fd;
  }
  static void say(const UniqueFd& fd, const std::string& text) {
    ASSERT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void turn(int times = 20) {
    for (int i = 0; i < times; ++i)
      loop_->turn(std::chrono::milliseconds(1));
  }
  /// All until the server closes. The shard answers on a thread of its own.
  std::string heard(const UniqueFd& fd) {
    std::string all;
    char piece[4096];
    for (;;) {
      const ssize_t n = ::recv(fd.get(), piece, sizeof piece, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return all;
      if (n > 0) all.append(piece, static_cast<std::size_t>(n));
      if (n < 0) loop_->turn(std::chrono::milliseconds(10));
    }
  }
  std::string ask(const std::string& text) {
    const UniqueFd fd = connect();
    say(fd, text);
    return heard(fd);
  }
  static std::string body(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "no end of the head" : answer.substr(end + 4);
  }
  /// Listens on a port of that host which nobody has.
  SocketAddress listen_on_port(const std::string& host) {
    for (;;) {
      SocketAddress address = SocketAddress::parse(host, 0).value();
      {
        const UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::bind(fd.get(), address.data(), address.length()), 0);
        address = SocketAddress::local_of(fd.get()).value();
      }
      std::string why;
      listener_ = listen_for_metrics(*loop_, *server_, address.text(), &why);
      if (listener_ != nullptr) return address;
    }
  }

  test::ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::string directory_, path_;
  std::unique_ptr<NfsServer> server_;
  std::unique_ptr<ControlSocket> listener_;
};

const char kScrape[] = "GET /metrics HTTP/1.1\r\nHost: localhost:9465\r\n\r\n";

TEST_F(MetricsListenerTest, AScrapeGetsTheText) {
  ASSERT_EQ(listen(path_), "");
  const std::string answer = ask(kScrape);
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.0 200 OK\r\n"),
                            HasSubstr("Content-Type: text/plain; version=0.0.4"),
                            HasSubstr("Connection: close\r\n")));
  EXPECT_THAT(body(answer), AllOf(HasSubstr("\nnfs_rdma_uptime_seconds "), EndsWith("\n")));
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(body(answer).size()) + "\r\n"));
}

TEST_F(MetricsListenerTest, OneScrapeAfterTheOther) {
  ASSERT_EQ(listen(path_), "");
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(ask(kScrape), StartsWith("HTTP/1.0 200 "));
}

TEST_F(MetricsListenerTest, SeveralAtATime) {
  ASSERT_EQ(listen(path_), "");
  const UniqueFd one = connect(), two = connect();
  say(one, kScrape);
  say(two, kScrape);
  EXPECT_THAT(heard(two), HasSubstr("nfs_rdma_uptime_seconds"));
  EXPECT_THAT(heard(one), HasSubstr("nfs_rdma_uptime_seconds"));
}

TEST(OneForAll, IsMadeOnceForThoseWhoWait) {
  std::size_t made = 0;
  std::function<void(const std::string&)> tell;
  const auto ask = one_for_all([&](std::function<void(const std::string&)> to) {
    ++made;
    tell = std::move(to);
  });
  std::vector<std::string> told;
  const auto done = [&told](const std::string& text) { told.push_back(text); };
  ask(done);
  ask(done);
  EXPECT_EQ(made, 1u);
  tell("first");
  ask(done);
  EXPECT_EQ(made, 2u);
  tell("second");
  EXPECT_THAT(told, ::testing::ElementsAre("first", "first", "second"));
}

/// Prometheus puts what `params` of its configuration has behind the path.
TEST_F(MetricsListenerTest, ParametersChangeNothing) {
  ASSERT_EQ(listen(path_), "");
  EXPECT_THAT(ask("GET /metrics?module=nfs HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, OtherPathsAreNotThere) {
  ASSERT_EQ(listen(path_), "");
  for (const char* path : {"/", "/metrics/", "/metric", "/metricsx", "/../metrics", "metrics", "?"})
    EXPECT_THAT(ask("GET " + std::string(path) + " HTTP/1.1\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.0 404 Not Found\r\n"), HasSubstr("Only /metrics")))
        << path;
}

TEST_F(MetricsListenerTest, NothingButGetIsServed) {
  ASSERT_EQ(listen(path_), "");
  for (const char* line : {"POST /metrics HTTP/1.1", "get /metrics HTTP/1.1", "status", "", "GET",
                           "{\"request\":\"status\"}", "\xff\xfe GET /metrics"})
    EXPECT_THAT(ask(std::string(line) + "\r\n\r\n"), StartsWith("HTTP/1.0 404 ")) << line;
}

TEST_F(MetricsListenerTest, ARequestInPiecesIsOne) {
  ASSERT_EQ(listen(path_), "");
  const UniqueFd fd = connect();
  for (const char* piece : {"GE", "T /metr", "ics HTTP/1.1\r\n", "Host: x\r\n\r"}) {
    say(fd, piece);
    turn(3);
    char byte;
    EXPECT_EQ(::recv(fd.get(), &byte, 1, MSG_DONTWAIT), -1) << "after " << piece;
  }
  say(fd, "\n");
  EXPECT_THAT(heard(fd), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, WhoHasSaidAllAndNoEndIsAnswered) {
  ASSERT_EQ(listen(path_), "");
  const UniqueFd fd = connect();
  say(fd, "GET /metrics HTTP/1.0");
  ASSERT_EQ(::shutdown(fd.get(), SHUT_WR), 0);
  EXPECT_THAT(heard(fd), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, AHeadWithoutAnEndIsBounded) {
  ASSERT_EQ(listen(path_), "");
  EXPECT_THAT(ask(std::string(ControlSocket::kMaxRequest, 'x')), StartsWith("HTTP/1.0 404 "));
  EXPECT_THAT(ask(kScrape), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, WhoSaysNothingIsSentAway) {
  loop_->set_clock(&clock_);
  ASSERT_EQ(listen(path_), "");
  const UniqueFd silent = connect(), half = connect();
  say(half, "GET /metrics HTTP/1.1\r\n");
  turn();
  clock_.advance(ControlSocket::kPatience + std::chrono::seconds(1));
  EXPECT_EQ(heard(silent), "");
  EXPECT_EQ(heard(half), "");
}

TEST_F(MetricsListenerTest, WhoGoesBeforeTheAnswerHarmsNobody) {
  ASSERT_EQ(listen(path_), "");
  for (const char* text : {"", "GET /met", kScrape}) {
    UniqueFd fd = connect();
    say(fd, text);
    fd.reset();
    turn(3);
  }
  EXPECT_THAT(ask(kScrape), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, NoMoreThanSoManyAreHeardAndOneThatGoesMakesRoom) {
  ASSERT_EQ(listen(path_), "");
  std::vector<UniqueFd> idle;
  while (idle.size() < ControlSocket::kMaxClients) {
    idle.push_back(connect());
    turn(1);
  }
  turn(3);
  EXPECT_EQ(heard(connect()), "");
  idle.pop_back();
  turn(3);
  EXPECT_THAT(ask(kScrape), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, TheEndOfTheListenerEndsWhoWaits) {
  ASSERT_EQ(listen(path_), "");
  const UniqueFd fd = connect();
  turn(3);
  say(fd, kScrape);
  loop_->turn(std::chrono::milliseconds(10));  // read; the shard's answer may still be to come
  listener_.reset();
  heard(fd);
  EXPECT_FALSE(std::filesystem::exists(path_));
  turn(3);
}

TEST_F(MetricsListenerTest, TheSocketIsForOwnerAndGroup) {
  ASSERT_EQ(listen(path_), "");
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_TRUE(S_ISSOCK(found.st_mode));
  EXPECT_EQ(found.st_mode & 07777u, 0660u);
}

TEST_F(MetricsListenerTest, ASocketThatACrashLeftIsReplaced) {
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    const UniqueFd old(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(old.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_EQ(listen(path_), "");
  EXPECT_THAT(ask(kScrape), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, ASocketOfAServerThatRunsIsLeftAlone) {
  ASSERT_EQ(listen(path_), "");
  std::string why;
  EXPECT_EQ(listen_for_metrics(*loop_, *server_, path_, &why), nullptr);
  EXPECT_THAT(why, AllOf(HasSubstr("NFSoRDMA_METRICS: cannot listen on " + path_),
                         HasSubstr("another server answers there")));
  turn();  // its question, which it did not ask
  EXPECT_THAT(ask(kScrape), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, AFileThatIsNoSocketStays) {
  std::ofstream(path_) << "mine";
  EXPECT_THAT(listen(path_),
              AllOf(HasSubstr("cannot listen on " + path_), HasSubstr("is no socket")));
  std::string text;
  std::ifstream(path_) >> text;
  EXPECT_EQ(text, "mine");
}

TEST_F(MetricsListenerTest, ADirectoryThatIsNotThereIsSaid) {
  EXPECT_THAT(listen(directory_ + "/not/there.sock"), HasSubstr("No such file or directory"));
}

TEST_F(MetricsListenerTest, APathThatIsTooLongIsSaid) {
  EXPECT_THAT(listen("/" + std::string(200, 'x')), HasSubstr("File name too long"));
}

TEST_F(MetricsListenerTest, APortOfVersion4) {
  const SocketAddress address = listen_on_port("127.0.0.1");
  const UniqueFd fd = connect(address);
  say(fd, kScrape);
  EXPECT_THAT(heard(fd), AllOf(StartsWith("HTTP/1.0 200 OK"), HasSubstr("nfs_rdma_info")));
}

TEST_F(MetricsListenerTest, APortOfVersion6) {
  const UniqueFd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress loopback = SocketAddress::parse("::1", 0).value();
  const bool can = probe && ::bind(probe.get(), loopback.data(), loopback.length()) == 0;
  if (!can && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
    GTEST_SKIP() << "this host has no IPv6";
  ASSERT_TRUE(can) << std::strerror(errno);
  const SocketAddress address = listen_on_port("::1");
  const UniqueFd fd = connect(address);
  say(fd, kScrape);
  EXPECT_THAT(heard(fd), StartsWith("HTTP/1.0 200 OK"));
}

TEST_F(MetricsListenerTest, APortThatSomebodyHasIsSaid) {
  const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress address = SocketAddress::parse("127.0.0.1", 0).value();
  ASSERT_EQ(::bind(other.get(), address.data(), address.length()), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  address = SocketAddress::local_of(other.get()).value();
  EXPECT_THAT(listen(address.text()),
              AllOf(StartsWith("NFSoRDMA_METRICS: cannot listen on " + address.text()),
                    HasSubstr("Address already in use")));
}

TEST_F(MetricsListenerTest, AnAddressOfAnotherHostIsSaid) {
  EXPECT_THAT(listen("192.0.2.1:9465"), HasSubstr("Cannot assign requested address"));
}

TEST_F(MetricsListenerTest, WhatIsNoAddressIsSaid) {
  for (const char* where : {"localhost:9465", "127.0.0.1", "::1:9465", "metrics.sock"})
    EXPECT_EQ(listen(where),
              "NFSoRDMA_METRICS: '" + std::string(where) + "' is no address with a port");
}

}  // namespace
}  // namespace nfsrdma
