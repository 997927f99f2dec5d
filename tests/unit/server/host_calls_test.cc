// SPDX-License-Identifier: Apache-2.0
// Calls to a client's host: its rpcbind and its program are sockets of the test's, which answer
// well or send rubbish, too much, nothing, or hang up.
#include "server/host_calls.h"

#include <gmock/gmock.h>

#include <optional>

#include "rpcrdma/base/bytes.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/manual_clock.h"
#include "xdr/rpc.h"
#include "xdr/rpc_auth.h"
#include "xdr/rpcb.h"

namespace nfsrdma::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using End = HostCalls::End;

constexpr std::uint32_t kProgram = 100021, kVersion = 4, kProcedure = 5;
constexpr std::uint32_t kLast = 1u << 31;  // fragment of a record

class HostCallsTest : public testing::Test {
 protected:
  struct Call {
    xdr::rpc_msg header;
    std::vector<std::byte> message, arguments;
  };
  /// What was told of each call, in order.
  struct Told {
    int call;
    End end;
    std::string results;
    bool operator==(const Told&) const = default;
  };

  HostCallsTest() {
    loop_->set_clock(&clock_);
    calls_.emplace(*loop_, rpcbind_address_.port());
  }
  void call(int number, const std::string& arguments = "ask!") {
    HostCalls::Target target;
    target.host = rpcbind_address_;
    target.program = kProgram;
    target.version = kVersion;
    const ByteSpan bytes = as_bytes(arguments);
    calls_->call(target, kProcedure, {bytes.begin(), bytes.end()},
                 [this, number](End end, ByteSpan results) {
                   told_.push_back({number, end, std::string(as_text(results))});
                 });
  }
  /// Turns until it is so, or hardly can be any more.
  template <typename Condition>
  bool comes(Condition condition) {
    for (int i = 0; i < 5000; ++i) {
      if (condition()) return true;
      loop_->turn(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool told(std::size_t count) {
    return comes([this, count] { return told_.size() >= count; });
  }
  /// Nothing more happens at once.
  void turn() {
    for (int i = 0; i < 20; ++i)
      loop_->turn(std::chrono::milliseconds(1));
  }
  UniqueFd accept(const UniqueFd& listener) {
    UniqueFd fd;
    EXPECT_TRUE(comes([&fd, &listener] {
      fd.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return bool(fd);
    })) << "nobody comes";
    return fd;
  }
  bool somebody_comes(const UniqueFd& listener) {
    turn();
    return bool(UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
  std::vector<std::byte> read(const UniqueFd& fd, std::size_t size) {
    std::vector<std::byte> out(size);
    std::size_t have = 0;
    EXPECT_TRUE(comes([&fd, &out, &have] {
      const ssize_t n = ::recv(fd.get(), out.data() + have, out.size() - have, MSG_DONTWAIT);
      if (n > 0) have += static_cast<std::size_t>(n);
      return have == out.size();
    }));
    return out;
  }
  Call next_call(const UniqueFd& fd) {
    Call out;
    const std::uint32_t mark = load_be32(read(fd, 4).data());
    EXPECT_NE(mark & kLast, 0u);
    out.message = read(fd, mark & ~kLast);
    xdr::Decoder decoder{ByteSpan(out.message)};
    EXPECT_TRUE(xdr::decode(decoder, out.header));
    out.arguments.assign(decoder.rest().begin(), decoder.rest().end());
    return out;
  }
  static void send(const UniqueFd& fd, ByteSpan bytes) {
    ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static void send_record(const UniqueFd& fd, ByteSpan record) {
    std::vector<std::byte> all(4);
    store_be32(all.data(), kLast | static_cast<std::uint32_t>(record.size()));
    all.insert(all.end(), record.begin(), record.end());
    send(fd, all);
  }
  /// A reply to `call`, with `results` behind its header.
  static std::vector<std::byte> reply(const Call& call, ByteSpan results,
                                      xdr::accept_stat stat = xdr::accept_stat::SUCCESS) {
    std::vector<std::byte> record(512);
    xdr::Encoder out(record);
    xdr::encode(out, xdr::accepted(call.header.xid, stat));
    record.resize(out.size());
    record.insert(record.end(), results.begin(), results.end());
    return record;
  }
  static void answer(const UniqueFd& fd, const Call& call, std::string_view results) {
    send_record(fd, reply(call, as_bytes(results)));
  }
  static void answer_port(const UniqueFd& fd, const Call& call, std::uint32_t port) {
    std::array<std::byte, 4> word;
    store_be32(word.data(), port);
    send_record(fd, reply(call, word));
  }
  /// rpcbind names the program's port to the call that has been made.
  void name_port() {
    if (!rpcbind_) rpcbind_ = accept(rpcbind_socket_);
    answer_port(rpcbind_, next_call(rpcbind_), program_address_.port());
  }
  /// A connection of the program's, and a call on it.
  UniqueFd connected(Call* first) {
    call(1);
    name_port();
    UniqueFd fd = accept(program_socket_);
    *first = next_call(fd);
    return fd;
  }
  UniqueFd accept_after_hanging_up(UniqueFd old) {
    old.reset();
    return accept(program_socket_);
  }
  void pass(Duration time) {
    clock_.advance(time);
    turn();
  }

  ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  SocketAddress rpcbind_address_, program_address_;
  UniqueFd rpcbind_socket_ = listen_on_loopback(&rpcbind_address_, "127.0.0.1", SOCK_NONBLOCK);
  UniqueFd program_socket_ = listen_on_loopback(&program_address_, "127.0.0.1", SOCK_NONBLOCK);
  UniqueFd rpcbind_;
  std::optional<HostCalls> calls_;
  std::vector<Told> told_;
};

TEST_F(HostCallsTest, ThePortIsAskedForThenTheProgramIsCalled) {
  call(1);
  rpcbind_ = accept(rpcbind_socket_);
  const Call question = next_call(rpcbind_);
  EXPECT_EQ(question.header.cbody.prog, xdr::kRpcbProgram);
  xdr::mapping wanted;
  xdr::Decoder decoder{ByteSpan(question.arguments)};
  ASSERT_TRUE(xdr::decode(decoder, wanted));
  EXPECT_EQ(wanted.prog, kProgram);
  EXPECT_EQ(wanted.vers, kVersion);
  answer_port(rpcbind_, question, program_address_.port());
  const UniqueFd fd = accept(program_socket_);
  const Call made = next_call(fd);
  EXPECT_EQ(made.header.cbody.prog, kProgram);
  EXPECT_EQ(made.header.cbody.vers, kVersion);
  EXPECT_EQ(made.header.cbody.proc, kProcedure);
  EXPECT_EQ(made.header.cbody.cred.flavor, xdr::auth_flavor::AUTH_SYS);
  EXPECT_EQ(as_text(ByteSpan(made.arguments)), "ask!");
  answer(fd, made, "well");
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kAnswered, "well"}));
}

TEST_F(HostCallsTest, OneConnectionAndOneQuestionServeAll) {
  call(1);
  call(2);
  name_port();
  const UniqueFd fd = accept(program_socket_);
  const Call one = next_call(fd), two = next_call(fd);
  call(3);
  const Call three = next_call(fd);
  answer(fd, three, "cccc");
  answer(fd, one, "aaaa");
  answer(fd, two, "bbbb");
  ASSERT_TRUE(told(3));
  EXPECT_THAT(told_, ElementsAre(Told{3, End::kAnswered, "cccc"}, Told{1, End::kAnswered, "aaaa"},
                                 Told{2, End::kAnswered, "bbbb"}));
  EXPECT_FALSE(somebody_comes(program_socket_));
  EXPECT_FALSE(somebody_comes(rpcbind_socket_));
}

TEST_F(HostCallsTest, NothingIsToldFromWithinTheCall) {
  rpcbind_socket_.reset();
  call(1);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_TRUE(told(1));
  EXPECT_EQ(told_[0].end, End::kNotSent) << "there is no rpcbind";
}

TEST_F(HostCallsTest, APortThatIsNoneIsNotCalled) {
  int number = 0;
  for (const std::uint32_t port : {0u, 65536u, 0xffffffffu}) {
    call(++number);
    if (!rpcbind_) rpcbind_ = accept(rpcbind_socket_);
    answer_port(rpcbind_, next_call(rpcbind_), port);
    ASSERT_TRUE(told(static_cast<std::size_t>(number))) << port;
    EXPECT_EQ(told_.back(), (Told{number, End::kNotSent, ""})) << port;
  }
  EXPECT_FALSE(somebody_comes(program_socket_));
}

TEST_F(HostCallsTest, AnAnswerOfRpcbindThatIsNoneIsNotBelieved) {
  int number = 0;
  const auto wrong = [&](const std::function<std::vector<std::byte>(const Call&)>& make) {
    call(++number);
    if (!rpcbind_) rpcbind_ = accept(rpcbind_socket_);
    send_record(rpcbind_, make(next_call(rpcbind_)));
    ASSERT_TRUE(told(static_cast<std::size_t>(number)));
    EXPECT_EQ(told_.back(), (Told{number, End::kNotSent, ""}));
  };
  wrong([](const Call& question) { return reply(question, {}); });
  wrong([](const Call& question) { return reply(question, as_bytes(std::string_view("ab"))); });
  wrong([](const Call& question) { return reply(question, {}, xdr::accept_stat::PROG_UNAVAIL); });
  // Cut off within its header.
  wrong([](const Call& question) {
    std::vector<std::byte> cut = reply(question, {});
    cut.resize(12);
    return cut;
  });
  EXPECT_FALSE(somebody_comes(program_socket_));
}

TEST_F(HostCallsTest, ARefusalIsNoAnswer) {
  Call made;
  const UniqueFd fd = connected(&made);
  send_record(fd, reply(made, as_bytes(std::string_view("data")), xdr::accept_stat::PROC_UNAVAIL));
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kRefused, ""}));
}

TEST_F(HostCallsTest, AReplyToNobodyIsPassedOver) {
  Call made;
  const UniqueFd fd = connected(&made);
  Call other = made;
  other.header.xid ^= 0x5555;
  answer(fd, other, "lies");
  answer(fd, made, "true");
  answer(fd, made, "late");
  ASSERT_TRUE(told(1));
  turn();
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kAnswered, "true"}));
}

/// It is asked again once, over a connection of its own, in case that one was just being closed.
TEST_F(HostCallsTest, AHostThatHangsUpIsAskedOnceMore) {
  Call made;
  UniqueFd fd = connected(&made);
  fd = accept_after_hanging_up(std::move(fd));
  const Call again = next_call(fd);
  EXPECT_EQ(again.message, made.message) << "the same call, so that it can be known for a retry";
  answer(fd, again, "well");
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kAnswered, "well"}));
}

TEST_F(HostCallsTest, AHostThatAlwaysHangsUpIsGivenUp) {
  Call made;
  UniqueFd fd = connected(&made);
  fd = accept_after_hanging_up(std::move(fd));
  next_call(fd);
  fd.reset();
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kNoAnswer, ""}));
  EXPECT_FALSE(somebody_comes(program_socket_));
}

/// Rubbish ends the connection, and what was to come over it.
TEST_F(HostCallsTest, AnEndlessRecordEndsTheConnection) {
  Call made;
  UniqueFd fd = connected(&made);
  for (int time = 0; time < 2; ++time) {
    std::array<std::byte, 4> mark;
    store_be32(mark.data(), 0xffffffff);
    send(fd, mark);
    char byte;
    EXPECT_TRUE(comes([&fd, &byte] { return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
    if (time == 0) {
      fd = accept(program_socket_);
      next_call(fd);
    }
  }
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kNoAnswer, ""}));
}

TEST_F(HostCallsTest, ASilentProgramIsNotWaitedForEver) {
  Call made;
  const UniqueFd fd = connected(&made);
  pass(std::chrono::seconds(9));
  EXPECT_THAT(told_, IsEmpty());
  pass(std::chrono::seconds(2));
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kNoAnswer, ""}));
  answer(fd, made, "late");
  turn();
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(HostCallsTest, ASilentRpcbindIsNotWaitedForEver) {
  call(1);
  call(2);
  rpcbind_ = accept(rpcbind_socket_);
  const Call question = next_call(rpcbind_);
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(told(2));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kNotSent, ""}, Told{2, End::kNotSent, ""}));
  answer_port(rpcbind_, question, program_address_.port());
  EXPECT_FALSE(somebody_comes(program_socket_)) << "there is nothing to say any more";
}

/// A lock manager that was started anew has another port.
TEST_F(HostCallsTest, AfterNoAnswerThePortIsAskedForAgain) {
  Call made;
  const UniqueFd fd = connected(&made);
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(told(1));
  SocketAddress address;
  const UniqueFd moved = listen_on_loopback(&address, "127.0.0.1", SOCK_NONBLOCK);
  call(2);
  answer_port(rpcbind_, next_call(rpcbind_), address.port());
  const UniqueFd there = accept(moved);
  answer(there, next_call(there), "here");
  ASSERT_TRUE(told(2));
  EXPECT_EQ(told_[1], (Told{2, End::kAnswered, "here"}));
}

TEST_F(HostCallsTest, WhereNobodyListensNothingCanHaveArrived) {
  call(1);
  program_socket_.reset();
  name_port();
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kNotSent, ""}));
  call(2);
  EXPECT_EQ(next_call(rpcbind_).header.cbody.prog, xdr::kRpcbProgram) << "it may have moved";
}

TEST_F(HostCallsTest, UnlessItListenedBefore) {
  Call made;
  UniqueFd fd = connected(&made);
  program_socket_.reset();
  fd.reset();
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{1, End::kNoAnswer, ""}));
}

TEST_F(HostCallsTest, SoManyAreUnderWayOnOneHost) {
  for (int i = 0; i < 1024; ++i)
    call(i);
  turn();
  EXPECT_THAT(told_, IsEmpty());
  call(5000);
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{5000, End::kNotSent, ""}));
  // Room that is given back is there again.
  told_.clear();
  rpcbind_ = accept(rpcbind_socket_);
  answer_port(rpcbind_, next_call(rpcbind_), 0);
  ASSERT_TRUE(told(1024));
  told_.clear();
  call(5001);
  turn();
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(HostCallsTest, WhoIsToldMayCallAgain) {
  HostCalls::Target target;
  target.host = rpcbind_address_;
  target.program = kProgram;
  target.version = kVersion;
  rpcbind_socket_.reset();
  calls_->call(target, kProcedure, {}, [this](End, ByteSpan) { call(2); });
  ASSERT_TRUE(told(1));
  EXPECT_THAT(told_, ElementsAre(Told{2, End::kNotSent, ""}));
}

TEST_F(HostCallsTest, NobodyIsToldWhenItIsGone) {
  Call made;
  const UniqueFd fd = connected(&made);
  call(2);
  turn();
  answer(fd, made, "well");
  calls_.reset();
  turn();
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace nfsrdma::test
