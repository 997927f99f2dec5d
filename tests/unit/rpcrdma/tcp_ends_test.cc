// SPDX-License-Identifier: Apache-2.0
// How connections of a TcpServer end: in order, and for others.
#include "tests/support/tcp_transport.h"

namespace nfsrdma::test {
namespace {

/// Clients from two hosts, since nobody gives way to his own.
class TcpHosts : public TcpStalls {
 protected:
  UniqueFd from(const char* host, int room = 0) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (room != 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    const auto own = std::move(SocketAddress::parse(host, 0)).value();
    EXPECT_EQ(::bind(fd.get(), own.data(), own.length()), 0);
    const std::size_t before = handler_.opened;
    EXPECT_EQ(::connect(fd.get(), listener_->address().data(), listener_->address().length()), 0);
    EXPECT_TRUE(turn_until([&] { return handler_.opened > before; }));
    return fd;
  }
  /// The beginning of the largest record: more than a small buffer holds.
  void announce(const UniqueFd& fd) {
    std::vector<std::byte> begun(8192);
    store_be32(begun.data(), 0x80000000u | (4u << 20));
    EXPECT_EQ(::send(fd.get(), begun.data(), begun.size(), 0), 8192);
    settle();
  }
  void trickle(const std::vector<UniqueFd>& clients, int seconds) {
    for (int i = 0; i < seconds; i += 10) {
      for (const UniqueFd& fd : clients)
        (void)::send(fd.get(), "x", 1, MSG_NOSIGNAL);
      pass(std::chrono::seconds(5));
      pass(std::chrono::seconds(5));
    }
  }
  std::vector<UniqueFd> fifteen() {
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 15; ++i) {
      clients.push_back(from("127.0.0.1"));
      announce(clients.back());
    }
    EXPECT_GT(pool_.in_use(), 60u << 20);
    return clients;
  }
  /// Somebody of another host, who wants `bytes`.
  struct Other : BufferWaiter {
    BufferPool& pool;
    std::size_t bytes;
    BufferShare share;
    Buffer got;
    Other(BufferPool& p, std::size_t size) : pool(p), bytes(size) {}
    void on_buffers() override {
      if (!(got = pool.acquire(bytes))) pool.wait_for_buffers(*this, share);
    }
  };
  void take_the_rest() {
    for (const std::size_t size :
         {std::size_t{4} << 20, std::size_t{64} << 10, std::size_t{4096}}) {
      while (Buffer buffer = pool_.acquire(size))
        rest_.push_back(std::move(buffer));
    }
  }

  std::vector<Buffer> rest_;
};

TEST_F(TcpHosts, WhoTricklesRecordsGivesWayToOthers) {
  start();
  const std::vector<UniqueFd> hostile = fifteen();
  trickle(hostile, 40);
  EXPECT_EQ(handler_.closed, 0u) << "nobody waits yet";
  const UniqueFd fd = from("127.0.0.2");
  ToyCall write(7, kToyWrite, (4u << 20) - 4096, 1);
  const std::vector<std::byte> record = record_of(message_of(write));
  std::size_t sent = 0;
  const auto push = [&] {
    const ssize_t n =
        ::send(fd.get(), record.data() + sent, record.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    return handler_.calls == 1;
  };
  for (int i = 0; i < 100; ++i) {
    push();
    settle();
  }
  EXPECT_EQ(handler_.calls, 0u) << "there is no memory for it";
  trickle(hostile, 20);
  EXPECT_TRUE(turn_until(push));
  EXPECT_EQ(handler_.bad_calls, 0u);
  EXPECT_EQ(handler_.closed, 15u);
}

TEST_F(TcpHosts, WhoIsAloneMayBeAsSlowAsHeLikes) {
  start();
  const std::vector<UniqueFd> slow = fifteen();
  std::vector<UniqueFd> more;
  more.push_back(from("127.0.0.1"));
  announce(more.back());  // has to wait
  trickle(slow, 600);
  EXPECT_EQ(handler_.closed, 0u);
}

TEST_F(TcpHosts, WhoTakesRepliesSlowlyGivesWayToOthers) {
  TcpServerLimits limits;
  limits.max_output = std::size_t{60} << 20;
  start(limits);
  const UniqueFd fd = from("127.0.0.1", 16 << 10);  // or the kernels may take all of the first one
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto record = record_of(ToyCall(100 + i, kToyRead, 4u << 20, i).head);
    EXPECT_EQ(::send(fd.get(), record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
  }
  settle();
  Other other(pool_, 4u << 20);
  take_the_rest();
  other.on_buffers();
  std::byte little[4096];
  for (int i = 0; i < 30 && !other.got; ++i) {
    EXPECT_GE(::recv(fd.get(), little, sizeof little, MSG_DONTWAIT), 0);
    pass(std::chrono::seconds(10));
  }
  EXPECT_TRUE(other.got);
  EXPECT_EQ(handler_.closed, 1u);
}

// Their answers are of no size, but each waits in a buffer of its own.
TEST_F(TcpHosts, WhoTakesTheSmallestRepliesSlowlyGivesWayToOthers) {
  TcpServerLimits limits;
  limits.stalled_after = std::chrono::hours(1);
  start(limits);
  const UniqueFd fd = from("127.0.0.1", 16 << 10);
  std::vector<std::byte> calls;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto record = record_of(ToyCall(i, kToyNull, 0, 0).head);
    calls.insert(calls.end(), record.begin(), record.end());
  }
  std::size_t at = 0, answered = 0;
  int unmoved = 0;
  ASSERT_TRUE(turn_until([&] {
    const ssize_t n =
        ::send(fd.get(), calls.data() + at, calls.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) at = (at + static_cast<std::size_t>(n)) % calls.size();
    const bool moved = std::exchange(answered, handler_.calls) != handler_.calls;
    unmoved = moved ? 0 : unmoved + 1;
    return unmoved > 20 && handler_.newest->describe().calls_in_progress == limits.max_calls;
  })) << "until the server reads no more";
  EXPECT_LE(pool_.in_use(), limits.max_calls * 4096) << "what was asked is needed no more";
  take_the_rest();
  Other other(pool_, 64 << 10);  // more than an answer gives back
  other.on_buffers();
  EXPECT_FALSE(other.got);
  for (int i = 0; i < 4; ++i)
    pass(std::chrono::seconds(10));
  EXPECT_TRUE(other.got);
  EXPECT_EQ(handler_.closed, 1u);
}

TEST_F(TcpHosts, WhoDoesNotEndTheSmallestRecordGivesWayToOthers) {
  start();
  const UniqueFd fd = from("127.0.0.1");
  const auto record = record_of(ToyCall(1, kToyNull, 0, 0).head);
  EXPECT_EQ(::send(fd.get(), record.data(), record.size() - 1, 0),
            static_cast<ssize_t>(record.size() - 1));
  settle();
  pass(std::chrono::minutes(10));
  EXPECT_EQ(handler_.closed, 0u) << "nobody waits yet";
  take_the_rest();
  Other other(pool_, 4096);
  other.on_buffers();
  for (int i = 0; i < 2; ++i)
    pass(std::chrono::seconds(10));
  EXPECT_TRUE(other.got);
  EXPECT_EQ(handler_.closed, 1u);
}

class TcpPlaces : public TcpHosts {
 protected:
  bool ask(const UniqueFd& fd) {
    const std::size_t before = handler_.calls;
    const auto record = record_of(ToyCall(++last_xid_, kToyNull, 0, 0).head);
    EXPECT_EQ(::send(fd.get(), record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
    return turn_until([&] { return handler_.calls > before; });
  }
  bool is_closed(const UniqueFd& fd) {
    settle();
    std::byte byte;
    ssize_t n = 0;
    while ((n = ::recv(fd.get(), &byte, 1, MSG_DONTWAIT)) > 0) {
    }
    return n == 0;
  }
  bool is_refused() {
    const std::size_t opened = handler_.opened;
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), listener_->address().data(), listener_->address().length()), 0);
    return turn_until([&] { return is_closed(fd); }) && handler_.opened == opened;
  }
};

TEST_F(TcpPlaces, SilentConnectionsMakeRoomWhenAllAreTaken) {
  TcpServerLimits limits;
  limits.max_connections = 3;
  start(limits);
  const UniqueFd busy = from("127.0.0.1");
  EXPECT_TRUE(ask(busy));
  const UniqueFd first = from("127.0.0.1"), second = from("127.0.0.1");
  const UniqueFd third = from("127.0.0.2");
  EXPECT_TRUE(is_closed(first)) << "silent for longest";
  EXPECT_FALSE(is_closed(second));
  EXPECT_TRUE(ask(third));
  EXPECT_TRUE(ask(second));
  EXPECT_TRUE(is_refused()) << "each has carried a call";
  EXPECT_TRUE(ask(busy));
}

// A call costs strangers nothing either.
TEST_F(TcpPlaces, ConnectionsWithoutACallForLongMakeRoomWhenAllAreTaken) {
  TcpServerLimits limits;
  limits.max_connections = 3;
  start(limits);
  const UniqueFd gone = from("127.0.0.1"), busy = from("127.0.0.1");
  EXPECT_TRUE(ask(busy));
  EXPECT_TRUE(ask(gone));
  pass(std::chrono::minutes(29));
  EXPECT_TRUE(ask(busy));
  const UniqueFd silent = from("127.0.0.1");
  pass(std::chrono::minutes(2));
  const UniqueFd next = from("127.0.0.2");
  EXPECT_TRUE(is_closed(silent)) << "never carried a call";
  EXPECT_TRUE(ask(next));
  EXPECT_FALSE(is_closed(gone));
  const UniqueFd another = from("127.0.0.2");
  EXPECT_TRUE(is_closed(gone));
  EXPECT_TRUE(ask(another));
  EXPECT_TRUE(is_refused()) << "the others have called lately";
  EXPECT_TRUE(ask(busy));
}

TEST_F(TcpPlaces, MayBeTakenByOtherServers) {
  bool full = false;
  int asked = 0;
  bool elsewhere = false;
  TcpServerLimits limits;
  limits.places.full = [&] { return full; };
  limits.places.evict_elsewhere = [&](Silent silent) {
    ++asked;
    return elsewhere && silent == Silent::kForLong;
  };
  start(limits);
  const UniqueFd first = from("127.0.0.1"), second = from("127.0.0.1");
  EXPECT_TRUE(ask(second));
  EXPECT_EQ(asked, 0);
  full = true;
  const UniqueFd third = from("127.0.0.2");
  EXPECT_TRUE(is_closed(first));
  EXPECT_TRUE(ask(third));
  EXPECT_EQ(asked, 0) << "its own go first";
  EXPECT_TRUE(is_refused());
  EXPECT_EQ(asked, 2);
  elsewhere = true;
  EXPECT_TRUE(ask(from("127.0.0.2")));
}

/// A client that has asked for more than the kernel's buffers hold, taken none of it, and has sent
/// calls behind that nobody reads any more.
class TcpEnds : public TcpTransport {
 protected:
  void ask(std::uint32_t xid, std::uint32_t procedure, std::uint32_t size) {
    const auto record = record_of(ToyCall(xid, procedure, size, 1).head);
    ASSERT_EQ(::send(fd_.get(), record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
  }
  void ask_for_two_replies() {
    start();
    fd_ = raw();
    handler_.hold = true;
    for (std::uint32_t i = 0; i < 2; ++i)
      ask(i, kToyRead, 4u << 20);
    ASSERT_TRUE(turn_until([this] { return handler_.held.size() == 2; }));
  }
  /// What comes until the server closes, or something else goes wrong.
  std::size_t take_all() {
    std::vector<std::byte> room(1 << 20);
    std::size_t taken = 0;
    error_ = EAGAIN;
    turn_until([&] {
      const ssize_t got = ::recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (got > 0) taken += static_cast<std::size_t>(got);
      error_ = got < 0 ? errno : 0;
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
    return taken;
  }

  static constexpr std::size_t kTwoReplies = 2 * (4 + 24 + 20 + (4u << 20));
  UniqueFd fd_;
  int error_ = 0;
};

TEST_F(TcpEnds, ShutdownLosesNoReplyToCallsThatItDoesNotRead) {
  ManualClock clock;
  loop_->set_clock(&clock);
  ask_for_two_replies();
  bool done = false;
  server_->shutdown(std::chrono::seconds(5), [&] { done = true; });
  ask(7, kToyNull, 0);
  handler_.answer_held();
  EXPECT_EQ(take_all(), kTwoReplies);
  EXPECT_EQ(error_, 0) << std::strerror(error_);
  EXPECT_FALSE(done);
  ask(8, kToyNull, 0);
  fd_.reset();
  EXPECT_TRUE(turn_until([&] { return done; }));
  EXPECT_EQ(handler_.calls, 2u);
  loop_->set_clock(nullptr);
}

// As with the library's programs that are busy with something else. The kernel acknowledges for
// them.
TEST_F(TcpEnds, ShutdownDoesNotWaitForClientsThatDoNotLook) {
  ManualClock clock;
  loop_->set_clock(&clock);
  ask_for_two_replies();
  bool done = false;
  server_->shutdown(std::chrono::hours(1), [&] { done = true; });
  ask(7, kToyNull, 0);
  handler_.answer_held();
  EXPECT_EQ(take_all(), kTwoReplies);
  ask(8, kToyNull, 0);
  const auto pass = [&] {
    for (int i = 0; i < 5; ++i)
      loop_->turn(Duration::zero());
    clock.advance(std::chrono::milliseconds(100));
    for (int i = 0; i < 5; ++i)
      loop_->turn(Duration::zero());
  };
  pass();
  EXPECT_FALSE(done) << "it has just sent something";
  EXPECT_TRUE(turn_until([&] {
    pass();
    return done;
  }));
  loop_->set_clock(nullptr);
}

TEST_F(TcpEnds, ShutdownWaitsNoLongerThanItWasTold) {
  ManualClock clock;
  loop_->set_clock(&clock);
  ask_for_two_replies();
  bool done = false;
  server_->shutdown(std::chrono::seconds(5), [&] { done = true; });
  handler_.answer_held();
  const auto pass = [&](Duration time) {
    clock.advance(time);
    for (int i = 0; i < 5; ++i)
      loop_->turn(Duration::zero());
  };
  for (int i = 0; i < 49; ++i)
    pass(std::chrono::milliseconds(100));
  EXPECT_FALSE(done);
  pass(std::chrono::milliseconds(100));
  EXPECT_TRUE(done) << "though the client has not taken its replies";
  loop_->set_clock(nullptr);
}

TEST_F(TcpEnds, ShutdownDoesNotWaitForClientsThatHaveAll) {
  start();
  fd_ = raw();
  bool done = false;
  server_->shutdown(std::chrono::hours(1), [&] { done = true; });
  EXPECT_TRUE(turn_until([&] { return done; }));
}

TEST_F(TcpEnds, AClientThatSendsNoMoreIsGivenItsAnswers) {
  ask_for_two_replies();
  ASSERT_EQ(::shutdown(fd_.get(), SHUT_WR), 0);
  ASSERT_TRUE(turn_until([this] { return handler_.closed == 1; }));
  handler_.answer_held();
  EXPECT_EQ(take_all(), kTwoReplies);
  EXPECT_EQ(error_, 0) << std::strerror(error_);
  EXPECT_TRUE(turn_until([this] { return server_->connection_count() == 0; }));
  EXPECT_EQ(handler_.closed, 1u);
}

}  // namespace
}  // namespace nfsrdma::test
