// SPDX-License-Identifier: Apache-2.0
// TcpServer and TcpClient over loopback, and TcpServer against hand-made byte streams.
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <thread>

#include "tests/support/refused_calls.h"
#include "tests/support/tcp_transport.h"

namespace nfsrdma::test {
namespace {

constexpr std::uint32_t kSizes[] = {0,    1,    2,    3,     4,      5,       1000,
                                    4000, 4095, 4096, 65535, 100001, 1 << 20, (1 << 20) + 1};

TEST_F(TcpTransport, EverySizeArrivesWhole) {
  start();
  connect();
  ASSERT_EQ(log_.ready, 1) << log_.detail;
  for (std::uint32_t size : kSizes) {
    EXPECT_TRUE(call(kToyRead, size, size).good) << size;
    EXPECT_TRUE(call(kToyWrite, size, size).good) << size;
    EXPECT_TRUE(call(kToyList, size, size).good) << size;
  }
}

TEST_F(TcpTransport, ACallIsSentOnceAllOfItIs) {
  start();
  TcpClientOptions options;
  options.max_calls = 1;
  connect(options);
  handler_.hold = true;
  ToyCall first(1, kToyRead, 8, 1), second(2, kToyRead, 8, 1);
  client_->submit(first);
  client_->submit(second);
  turn_until([&] { return first.sent; });
  client_->close();
  turn_until([&] { return second.completions > 0; });
  EXPECT_TRUE(first.sent);
  EXPECT_FALSE(second.sent);
}

TEST_F(TcpTransport, PagesOfAFileAreSentAsTheyAre) {
  start();
  connect();
  int shown = 0;
  handler_.on_shown = [&](int, FileWindow&) { ++shown; };
  for (std::uint32_t size : {4096u, 65537u, 100'001u, 1u << 20})
    EXPECT_TRUE(call(kToyRead, size, size).good) << size;
  EXPECT_EQ(shown, 4);
  EXPECT_LT(pool_.in_use(), 65536u);  // messages alone
}

TEST_F(TcpTransport, AFileThatGetsShorterWhileItIsSentEndsInZeros) {
  start();
  connect();
  handler_.on_shown = [](int fd, FileWindow&) { EXPECT_EQ(::ftruncate(fd, 5 * 4096), 0); };
  ToyCall& shorter = call(kToyRead, 1 << 20);
  EXPECT_TRUE(shorter.ok);
  EXPECT_TRUE(ends_in_zeros(shorter.data(), 5 * 4096, 5));
  handler_.on_shown = nullptr;
  EXPECT_TRUE(call(kToyRead, 1 << 20).good);
  EXPECT_EQ(log_.closed, 0);
}

TEST_F(TcpTransport, AFileThatCannotBeReadWhileItIsSentEndsTheConnection) {
  start();
  connect();
  handler_.on_shown = [](int, FileWindow& window) {
    EXPECT_EQ(::mprotect(window.data() + 4096, 4096, PROT_NONE), 0);
  };
  EXPECT_FALSE(call(kToyRead, 1 << 20).ok);
  EXPECT_TRUE(turn_until([this] { return handler_.closed == 1; }));
}

TEST_F(TcpTransport, LargeReadsAreReadIntoTheSink) {
  start();
  connect();
  EXPECT_TRUE(call(kToyRead, 1 << 20).placed);
}

TEST_F(TcpTransport, ManyCallsAtOnceAllComplete) {
  start();
  connect();
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 0; i < 600; ++i) {
    const std::uint32_t procedure = i % 3 == 0 ? kToyRead : i % 3 == 1 ? kToyWrite : kToyNull;
    calls.push_back(
        std::make_unique<ToyCall>(++last_xid_, procedure, procedure == kToyNull ? 0 : i * 97, i));
    client_->submit(*calls.back());
  }
  ASSERT_TRUE(turn_until([&] {
    for (auto& c : calls) {
      if (c->completions == 0) return false;
    }
    return true;
  }));
  for (auto& c : calls)
    EXPECT_TRUE(c->good);
}

TEST_F(TcpTransport, SmallBudgetDelaysButLosesNothing) {
  start();
  connect();
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 0; i < 100; ++i) {
    calls.push_back(std::make_unique<ToyCall>(++last_xid_, kToyWrite, 1 << 20, i));
    client_->submit(*calls.back());
  }
  ASSERT_TRUE(turn_until([&] { return calls.back()->completions > 0; }));
  for (auto& c : calls)
    EXPECT_TRUE(c->good);
}

TEST_F(TcpTransport, RecordsOfAFewKilobytesWaitForBuffersToo) {
  start();
  connect();
  // All but a megabyte is taken, and the calls keep what they get until they are answered.
  std::vector<Buffer> taken;
  while (Buffer buffer = pool_.acquire(1 << 20, BufferStage::kNewCall))
    taken.push_back(std::move(buffer));
  taken.pop_back();
  handler_.hold = true;
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 0; i < 100; ++i) {
    calls.push_back(std::make_unique<ToyCall>(++last_xid_, kToyWrite, 8000 + i, i));
    client_->submit(*calls.back());
  }
  ASSERT_TRUE(turn_until([&] { return handler_.held.size() > 3; }));
  for (int i = 0; i < 100; ++i)
    loop_->turn(Duration::zero());
  EXPECT_LT(handler_.held.size(), calls.size());
  handler_.hold = false;
  handler_.answer_held();
  ASSERT_TRUE(turn_until([&] {
    return std::all_of(calls.begin(), calls.end(), [](auto& c) { return c->completions > 0; });
  }));
  for (auto& c : calls)
    EXPECT_TRUE(c->good);
}

TEST_F(TcpTransport, PausesAtTheCallLimitAndGoesOn) {
  TcpServerLimits limits;
  limits.max_calls = 3;
  start(limits);
  connect();
  handler_.hold = true;
  std::vector<std::unique_ptr<ToyCall>> calls;
  for (std::uint32_t i = 0; i < 20; ++i) {
    calls.push_back(std::make_unique<ToyCall>(++last_xid_, kToyNull, 0, 0));
    client_->submit(*calls.back());
  }
  turn_until([&] { return handler_.held.size() >= 3; });
  for (int i = 0; i < 5; ++i)
    loop_->turn(Duration::zero());
  EXPECT_EQ(handler_.held.size(), 3u);
  handler_.hold = false;
  handler_.answer_held();
  EXPECT_TRUE(turn_until([&] { return calls.back()->completions > 0; }));
}

TEST_F(TcpTransport, RecordInManyFragmentsIsPutTogether) {
  start();
  UniqueFd fd = raw();
  ToyCall call(77, kToyNull, 0, 0);
  std::vector<std::byte> stream;
  for (std::size_t i = 0; i < call.head.size(); i += 8) {
    std::byte mark[4];
    const bool last = i + 8 >= call.head.size();
    store_be32(mark, (last ? 0x80000000u : 0u) | 8u);
    stream.insert(stream.end(), mark, mark + 4);
    stream.insert(stream.end(), call.head.begin() + i, call.head.begin() + i + 8);
  }
  for (std::byte b : stream) {  // one byte at a time
    ASSERT_EQ(::send(fd.get(), &b, 1, 0), 1);
    loop_->turn(Duration::zero());
  }
  EXPECT_TRUE(turn_until([&] { return handler_.calls == 1; }));
}

TEST_F(TcpTransport, TooLargeARecordClosesTheConnection) {
  start();
  UniqueFd fd = raw();
  std::byte mark[4];
  store_be32(mark, 0x80000000u | (5u << 20));
  ASSERT_EQ(::send(fd.get(), mark, 4, 0), 4);
  EXPECT_TRUE(turn_until([&] { return handler_.closed == 1; }));
}

TEST_F(TcpTransport, EndlessEmptyFragmentsCloseTheConnection) {
  start();
  UniqueFd fd = raw();
  const std::vector<std::byte> zeros(kRecordMarkBytes * 1024);
  for (std::uint32_t marks = 0; marks <= kMaxFragments && handler_.closed == 0; marks += 1024) {
    ASSERT_GT(::send(fd.get(), zeros.data(), zeros.size(), MSG_NOSIGNAL), 0);
    loop_->turn(Duration::zero());
  }
  EXPECT_TRUE(turn_until([&] { return handler_.closed == 1; }));
}

TEST_F(TcpTransport, ShortRecordsAreDroppedNotAnswered) {
  start();
  UniqueFd fd = raw();
  std::byte junk[6] = {};
  auto record = record_of(ByteSpan(junk, 6));
  ToyCall call(78, kToyNull, 0, 0);
  auto good = record_of(call.head);
  record.insert(record.end(), good.begin(), good.end());
  ASSERT_EQ(::send(fd.get(), record.data(), record.size(), 0), static_cast<ssize_t>(record.size()));
  EXPECT_TRUE(turn_until([&] { return handler_.calls == 1; }));
}

TEST_F(TcpTransport, PartialRecordHoldsNoLargeBuffer) {
  start();
  UniqueFd fd = raw();
  for (int i = 0; i < 3; ++i)
    loop_->turn(Duration::zero());
  const std::size_t before = pool_.in_use();
  std::byte start_of_record[100] = {};
  store_be32(start_of_record, 0x80000000u | (1u << 20));
  ASSERT_EQ(::send(fd.get(), start_of_record, sizeof start_of_record, 0), 100);
  for (int i = 0; i < 50; ++i)
    loop_->turn(std::chrono::milliseconds(1));
  EXPECT_LE(pool_.in_use() - before, 4096u);
}

TEST_F(TcpStalls, AClientThatTakesNoRepliesIsCutAfterAMinute) {
  start();
  const UniqueFd fd = ask_for_much();
  pass(std::chrono::seconds(30));
  pass(std::chrono::seconds(29));
  EXPECT_EQ(handler_.closed, 0u);
  EXPECT_GT(pool_.in_use(), std::size_t{1} << 20);
  pass(std::chrono::seconds(11));
  EXPECT_EQ(handler_.closed, 1u);
  EXPECT_EQ(server_->connection_count(), 0u);
  EXPECT_LT(pool_.in_use(), std::size_t{1} << 20);
}

TEST_F(TcpStalls, AClientThatTakesItsRepliesSlowlyIsNot) {
  start();
  const UniqueFd fd = ask_for_much();
  std::vector<std::byte> taken(std::size_t{1} << 20);
  for (std::uint32_t i = 0; i < kReplies; ++i) {
    std::size_t left = taken.size();
    ASSERT_TRUE(turn_until([&] {
      const ssize_t got = ::recv(fd.get(), taken.data(), left, MSG_DONTWAIT);
      if (got > 0) left -= static_cast<std::size_t>(got);
      return left == 0;
    })) << i;
    pass(std::chrono::seconds(30));
    ASSERT_EQ(handler_.closed, 0u) << i;
  }
  pass(std::chrono::minutes(5));  // nothing is left to take
  EXPECT_EQ(handler_.closed, 0u);
  EXPECT_EQ(handler_.calls, kReplies);
}

TEST_F(TcpStalls, TheKernelGivesUpOnUnacknowledgedDataAfterAMinute) {
  start();
  int adopted = -1;
  listener_ =
      std::move(TcpListener::listen(*loop_, std::move(SocketAddress::parse("127.0.0.1", 0)).value(),
                                    [&](UniqueFd fd) {
                                      adopted = fd.get();
                                      server_->adopt(std::move(fd));
                                    }))
          .value();
  const UniqueFd fd = raw();
  unsigned milliseconds = 0;
  socklen_t size = sizeof milliseconds;
  ASSERT_EQ(::getsockopt(adopted, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size), 0);
  EXPECT_EQ(milliseconds, 60'000u);
}

TEST_F(TcpStalls, WithoutAnyDescriptorTheListenerWaits) {
  start();
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), listener_->address().data(), listener_->address().length()), 0);
  bool works = true;
  std::thread([&] {
    refuse_calls(SYS_accept4, EMFILE);
    settle();
    works = loop_->turn(Duration::zero());
  }).join();
  EXPECT_FALSE(works) << "the loop spins";
  EXPECT_EQ(handler_.opened, 0u);
  pass(std::chrono::milliseconds(100));
  EXPECT_EQ(handler_.opened, 1u);
}

TEST_F(TcpTransport, ServerGoneFailsCallsWithClosed) {
  start();
  connect();
  handler_.hold = true;
  calls_.push_back(std::make_unique<ToyCall>(++last_xid_, kToyNull, 0, 0));
  client_->submit(*calls_.back());
  turn_until([&] { return !handler_.held.empty(); });
  handler_.held.front()->drop();
  handler_.held.clear();
  server_.reset();
  EXPECT_TRUE(turn_until([&] { return log_.closed == 1; }));
  EXPECT_EQ(calls_.back()->completions, 1);
  EXPECT_EQ(calls_.back()->error.code, Errc::kClosed);
}

TEST_F(TcpTransport, ConnectionRefusedIsReported) {
  start();
  const SocketAddress address = listener_->address();
  listener_.reset();
  client_ = make_tcp_transport(*loop_, address, {}, log_);
  EXPECT_TRUE(turn_until([&] { return log_.closed == 1; }));
  EXPECT_EQ(log_.why.sys, ECONNREFUSED);
}

TEST_F(TcpTransport, ConnectsFromThePortThatIsWantedIfItCanBeHad) {
  start();
  connect();
  const std::uint16_t port = client_->describe().local.port();
  // The server ends it, so that nothing is kept of it here.
  server_.reset();
  ASSERT_TRUE(turn_until([&] { return log_.closed == 1; }));
  server_ = std::make_unique<TcpServer>(*loop_, pool_, handler_, TcpServerLimits{});
  TcpClientOptions options;
  options.local_port = port;
  log_ = {};
  connect(options);
  EXPECT_EQ(client_->describe().local.port(), port);

  const std::unique_ptr<ClientTransport> has_it = std::move(client_);
  log_ = {};
  connect(options);
  ASSERT_EQ(log_.ready, 1);
  EXPECT_NE(client_->describe().local.port(), port) << "to this server it is in use";
}

TEST_F(TcpTransport, CancelledCallIsNotCompleted) {
  start();
  connect();
  handler_.hold = true;
  ToyCall cancelled(++last_xid_, kToyRead, 100000, 1);
  client_->submit(cancelled);
  turn_until([&] { return !handler_.held.empty(); });
  client_->cancel(cancelled);
  handler_.hold = false;
  handler_.answer_held();
  EXPECT_TRUE(call(kToyRead, 5000).good);
  EXPECT_EQ(cancelled.completions, 0);
}

TEST_F(TcpTransport, ShutdownFinishesCallsFirst) {
  start();
  connect();
  handler_.hold = true;
  calls_.push_back(std::make_unique<ToyCall>(++last_xid_, kToyNull, 0, 0));
  client_->submit(*calls_.back());
  turn_until([&] { return !handler_.held.empty(); });
  bool done = false;
  server_->shutdown(std::chrono::seconds(5), [&] { done = true; });
  for (int i = 0; i < 5; ++i)
    loop_->turn(Duration::zero());
  EXPECT_FALSE(done);
  handler_.answer_held();
  EXPECT_TRUE(turn_until([&] { return done; }));
  EXPECT_TRUE(turn_until([&] { return calls_.back()->completions == 1; }));
  EXPECT_TRUE(calls_.back()->good);
}

TEST_F(TcpTransport, AnEndedConnectionIsNotListedWhileItsCallsComeBack) {
  start();
  connect();
  handler_.hold = true;
  calls_.push_back(std::make_unique<ToyCall>(++last_xid_, kToyNull, 0, 0));
  client_->submit(*calls_.back());
  ASSERT_TRUE(turn_until([&] { return !handler_.held.empty(); }));
  const auto listed = [this] {
    int count = 0;
    server_->for_each_connection([&count](ServerConnection&) { ++count; });
    return count;
  };
  EXPECT_EQ(listed(), 1);
  client_.reset();
  ASSERT_TRUE(turn_until([&] { return listed() == 0; }));
  EXPECT_EQ(server_->connection_count(), 1u);
  handler_.answer_held();
  EXPECT_TRUE(turn_until([&] { return server_->connection_count() == 0; }));
}

}  // namespace
}  // namespace nfsrdma::test
