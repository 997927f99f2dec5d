// SPDX-License-Identifier: Apache-2.0
#include "client/rpc_client.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/client/fake_environment.h"

namespace nfsrdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TransportCandidate candidate(TransportKind kind) {
  return {kind, SocketAddress::parse("192.0.2.1", 20049).value(), nullptr};
}

/// What became of a call.
struct Outcome {
  bool done = false;
  bool ok = false;
  bool resent = false;
  Error error{};
};

Task<void> call_null(RpcClient& rpc, const OpContext& op, Outcome* outcome) {
  RpcCallLease call = rpc.prepare(100003, 3, 0, op);
  Result<void> result = co_await call->run();
  outcome->resent = call->resent();
  outcome->done = true;
  outcome->ok = result.ok();
  if (!result.ok()) outcome->error = result.error();
}

Task<void> connect(RpcClient& rpc, std::string* detail, Outcome* outcome) {
  Result<void> result = co_await rpc.connect(detail);
  outcome->done = true;
  outcome->ok = result.ok();
  if (!result.ok()) outcome->error = result.error();
}

class RpcClientTest : public testing::Test {
 protected:
  RpcClientTest() {
    options_.candidates = {candidate(TransportKind::kIwarp), candidate(TransportKind::kTcp)};
    options_.timeo = seconds(10);
    options_.retrans = 2;
  }
  ~RpcClientTest() override {
    if (rpc_) rpc_->abort_all();
  }

  void make() {
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    rpc_ = std::make_unique<RpcClient>(std::move(environment), options_);
  }
  void make_connected() {
    make();
    group_.spawn(connect(*rpc_, &detail_, &connected_));
    environment_->transport()->accept();
    environment_->settle();
    ASSERT_TRUE(connected_.ok);
  }
  /// By TCP: first_ and second_.
  void make_two_connected() {
    options_.connections = 2;
    options_.candidates = {candidate(TransportKind::kTcp)};
    make();
    group_.spawn(connect(*rpc_, &detail_, &connected_));
    first_ = environment_->transport();
    first_->accept();
    second_ = environment_->transport();
    ASSERT_NE(first_, second_);
    second_->accept();
  }
  /// Its outcome lives as long as the client does.
  Outcome& start_call() {
    Outcome& outcome = outcomes_.emplace_back();
    group_.spawn(call_null(*rpc_, op_, &outcome));
    return outcome;
  }
  FakeTransport& transport() { return *environment_->transport(); }
  void lose() {
    transport().lose();
    environment_->settle();
  }

  RpcClientOptions options_;
  FakeEnvironment* environment_ = nullptr;
  FakeTransport* first_ = nullptr;
  FakeTransport* second_ = nullptr;
  TaskGroup group_;
  OpContext op_;
  std::string detail_;
  Outcome connected_;
  std::deque<Outcome> outcomes_;
  std::unique_ptr<RpcClient> rpc_;
};

TEST_F(RpcClientTest, TakesTheFirstTransportThatConnects) {
  make_connected();
  EXPECT_EQ(rpc_->kind(), TransportKind::kIwarp);
  EXPECT_EQ(rpc_->connections().front().fallback_reason, "");
}

/// Behind another address of the name may be another server.
TEST_F(RpcClientTest, StaysAtTheAddressThatItFirstConnectedTo) {
  const auto other = SocketAddress::parse("192.0.2.2", 20049).value();
  options_.candidates.insert(options_.candidates.begin(), {{TransportKind::kIwarp, other, nullptr},
                                                           {TransportKind::kTcp, other, nullptr}});
  std::swap(options_.candidates[1], options_.candidates[2]);
  options_.connections = 2;
  make();
  group_.spawn(connect(*rpc_, &detail_, &connected_));
  EXPECT_EQ(transport().candidate().address.host_text(), "192.0.2.2");
  transport().refuse(ECONNREFUSED);
  environment_->settle();
  EXPECT_EQ(transport().candidate().address.host_text(), "192.0.2.1");
  first_ = &transport();
  first_->accept();
  environment_->settle();
  ASSERT_TRUE(connected_.ok);
  EXPECT_EQ(rpc_->address().host_text(), "192.0.2.1");
  ASSERT_NE(&transport(), first_) << "the second one";
  EXPECT_EQ(transport().candidate().address.host_text(), "192.0.2.1");
  transport().accept();

  start_call();
  transport().lose();
  first_->lose();
  environment_->settle();
  for (int round = 0; round < 30; ++round) {
    if (environment_->transport() == nullptr) {
      environment_->advance(seconds(1));
      continue;
    }
    EXPECT_EQ(transport().candidate().address.host_text(), "192.0.2.1");
    transport().refuse(ECONNREFUSED);
    environment_->settle();
  }
}

/// Servers whose duplicate request cache goes by the port (Linux's) know what is sent again.
TEST_F(RpcClientTest, ComesBackByTcpFromTheSamePort) {
  options_.candidates = {candidate(TransportKind::kTcp)};
  make_connected();
  EXPECT_EQ(transport().candidate().local_port, 0);
  start_call();
  lose();
  EXPECT_EQ(transport().candidate().local_port, 999);
}

TEST_F(RpcClientTest, FallsBackAndSaysWhy) {
  make();
  group_.spawn(connect(*rpc_, &detail_, &connected_));
  transport().refuse(ECONNREFUSED);
  environment_->settle();
  transport().accept();
  ASSERT_TRUE(connected_.ok);
  EXPECT_EQ(rpc_->kind(), TransportKind::kTcp);
  const std::string reason = rpc_->connections().front().fallback_reason;
  EXPECT_NE(reason.find("iwarp 192.0.2.1:20049"), std::string::npos) << reason;
  EXPECT_NE(reason.find("refused"), std::string::npos) << reason;
}

TEST_F(RpcClientTest, SaysWhyWantedTransportsAreLeftOut) {
  options_.left_out = "verbs: no RDMA device";
  make_connected();
  EXPECT_EQ(rpc_->connections().front().fallback_reason, "verbs: no RDMA device");
}

TEST_F(RpcClientTest, FirstConnectFailsAfterOneRound) {
  make();
  group_.spawn(connect(*rpc_, &detail_, &connected_));
  transport().refuse(ECONNREFUSED);
  environment_->settle();
  transport().refuse(EHOSTUNREACH);
  environment_->settle();
  ASSERT_TRUE(connected_.done);
  EXPECT_FALSE(connected_.ok);
  EXPECT_EQ(connected_.error.sys, EHOSTUNREACH);
  EXPECT_NE(detail_.find("tcp 192.0.2.1:20049"), std::string::npos) << detail_;
  environment_->advance(seconds(60));
  EXPECT_EQ(environment_->made(), 2u);
}

TEST_F(RpcClientTest, WithoutCandidatesConnectSaysSo) {
  options_.candidates.clear();
  options_.left_out = "verbs: no RDMA device";
  make();
  group_.spawn(connect(*rpc_, &detail_, &connected_));
  ASSERT_TRUE(connected_.done);
  EXPECT_EQ(connected_.error.code, Errc::kUnsupported);
  EXPECT_EQ(detail_, "verbs: no RDMA device");
}

TEST_F(RpcClientTest, SilentTransportGetsLessPatienceWhenThereIsAnother) {
  make();
  group_.spawn(connect(*rpc_, &detail_, &connected_));
  EXPECT_EQ(transport().connect_timeout, seconds(5));
  transport().refuse(ETIMEDOUT);
  environment_->settle();
  EXPECT_EQ(transport().connect_timeout, seconds(15));
  transport().accept();
}

/// Of a mount's threads the others need not find that out again.
TEST_F(RpcClientTest, HowLongASilentTransportIsWaitedForCanBeLess) {
  options_.silence = seconds(1);
  make();
  group_.spawn(connect(*rpc_, &detail_, &connected_));
  EXPECT_EQ(transport().connect_timeout, seconds(1));
  transport().refuse(ETIMEDOUT);
  environment_->settle();
  EXPECT_EQ(transport().connect_timeout, seconds(15));
  transport().accept();
}

TEST_F(RpcClientTest, AnswersEndTheCall) {
  make_connected();
  Outcome& outcome = start_call();
  ASSERT_EQ(transport().out().size(), 1u);
  transport().answer({});
  EXPECT_TRUE(outcome.ok);
  EXPECT_FALSE(outcome.resent);
}

TEST_F(RpcClientTest, RefusalsBecomeErrors) {
  make_connected();
  Outcome& outcome = start_call();
  transport().answer({}, xdr::accept_stat::PROG_UNAVAIL);
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.error.code, Errc::kUnsupported);
}

TEST_F(RpcClientTest, LostConnectionIsMadeAgainAtOnceAndCallsGoOutWithTheSameXids) {
  make_connected();
  Outcome& first = start_call();
  Outcome& second = start_call();
  const std::uint32_t xid1 = transport().out()[0]->xid;
  const std::uint32_t xid2 = transport().out()[1]->xid;
  lose();
  ASSERT_EQ(environment_->made(), 2u);  // without waiting
  transport().accept();
  ASSERT_EQ(transport().out().size(), 2u);
  EXPECT_EQ(transport().out()[0]->xid, xid1);
  EXPECT_EQ(transport().out()[1]->xid, xid2);
  transport().answer({});
  transport().answer({});
  EXPECT_TRUE(first.ok && first.resent);
  EXPECT_TRUE(second.ok && second.resent);
}

/// Their answers are those of the first execution: nothing is doubtful about an EEXIST then.
TEST_F(RpcClientTest, WhatNeverLeftIsNotSentAgain) {
  make_connected();
  environment_->keeps_calls = true;
  Outcome& outcome = start_call();
  environment_->keeps_calls = false;
  lose();
  transport().accept();
  transport().answer({});
  EXPECT_TRUE(outcome.ok);
  EXPECT_FALSE(outcome.resent);
}

TEST_F(RpcClientTest, ReconnectingBacksOff) {
  make_connected();
  start_call();
  lose();
  std::vector<std::size_t> made;
  // iWARP only while the outage is short: one attempt per round.
  for (int round = 0; round < 4; ++round) {
    transport().refuse(ECONNREFUSED);
    environment_->settle();
    const std::size_t before = environment_->made();
    const Duration wait = milliseconds(50) * (1 << round);
    environment_->advance(wait - milliseconds(1));
    EXPECT_EQ(environment_->made(), before) << round;
    environment_->advance(milliseconds(1));
    EXPECT_EQ(environment_->made(), before + 1) << round;
  }
}

TEST_F(RpcClientTest, AShortOutageDoesNotPushAClientOffRdma) {
  make_connected();
  start_call();
  lose();
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(transport().candidate().kind, TransportKind::kIwarp);
    transport().refuse(ECONNREFUSED);
    environment_->settle();
    environment_->advance(seconds(5));
  }
}

TEST_F(RpcClientTest, ALongOutageLetsItFallBack) {
  make_connected();
  start_call();
  lose();
  bool tcp = false;
  for (int round = 0; round < 15 && !tcp; ++round) {
    tcp = transport().candidate().kind == TransportKind::kTcp;
    transport().refuse(ECONNREFUSED);
    environment_->settle();
    tcp |=
        environment_->transport() != nullptr && transport().candidate().kind == TransportKind::kTcp;
    environment_->advance(seconds(5));
  }
  EXPECT_TRUE(tcp);
}

class FellBackToTcp : public RpcClientTest {
 protected:
  void SetUp() override {
    make();
    Outcome& outcome = start_call();
    while (transport().candidate().kind != TransportKind::kTcp) {
      transport().refuse(ECONNREFUSED);
      environment_->settle();
    }
    tcp_ = &transport();
    tcp_->accept();
    tcp_->answer({});
    ASSERT_TRUE(outcome.ok);
  }
  /// Calls, one at a time, over TCP, until something else is made.
  bool probes_within(Duration limit) {
    const std::size_t made = environment_->made();
    for (Duration passed{0}; passed < limit && environment_->made() == made;
         passed += milliseconds(500)) {
      const Outcome& outcome = start_call();
      tcp_->answer({});
      EXPECT_TRUE(outcome.ok);
      environment_->advance(milliseconds(500));
    }
    return environment_->made() > made;
  }
  void answer_probe() {
    transport().accept();
    ASSERT_EQ(transport().out().size(), 1u);
    transport().answer({});
    environment_->settle();
  }
  FakeTransport* tcp_ = nullptr;
};

TEST_F(FellBackToTcp, CanGoWhileItAsksWhetherRdmaIsThere) {
  ASSERT_TRUE(probes_within(std::chrono::minutes(3)));
  transport().accept();
  ASSERT_EQ(transport().out().size(), 1u);
  rpc_.reset();  // its answer is none any more
}

TEST_F(FellBackToTcp, GoesBackWhenRdmaIsThereAgain) {
  EXPECT_FALSE(probes_within(seconds(100)));
  ASSERT_TRUE(probes_within(seconds(60)));
  EXPECT_EQ(transport().candidate().kind, TransportKind::kIwarp);
  Outcome& under_way = start_call();
  ASSERT_EQ(tcp_->out().size(), 1u);
  answer_probe();
  Outcome& waits = start_call();
  ASSERT_EQ(tcp_->out().size(), 1u);
  const std::size_t made = environment_->made();
  tcp_->answer({});
  environment_->settle();
  EXPECT_TRUE(under_way.ok && !under_way.resent);
  ASSERT_EQ(environment_->made(), made + 1);
  EXPECT_EQ(transport().candidate().kind, TransportKind::kIwarp);
  transport().accept();
  transport().answer({});
  EXPECT_TRUE(waits.ok && !waits.resent);
}

/// Who accepts connections and answers nothing would keep the mount waiting for ever.
TEST_F(FellBackToTcp, StaysWhereRdmaOnlyConnects) {
  ASSERT_TRUE(probes_within(seconds(130)));
  transport().accept();
  environment_->settle();
  Outcome& outcome = start_call();
  ASSERT_EQ(tcp_->out().size(), 1u);
  tcp_->answer({});
  EXPECT_TRUE(outcome.ok);
  EXPECT_FALSE(probes_within(seconds(30 + 230)));
  EXPECT_TRUE(probes_within(seconds(20)));
}

TEST_F(FellBackToTcp, LooksSeldomerWhileItIsNotThere) {
  ASSERT_TRUE(probes_within(seconds(130)));
  transport().refuse(ECONNREFUSED);
  environment_->settle();
  EXPECT_FALSE(probes_within(seconds(230)));
  EXPECT_TRUE(probes_within(seconds(20)));
}

TEST_F(FellBackToTcp, ACallThatTakesLongDoesNotHoldUpTheOthers) {
  ASSERT_TRUE(probes_within(seconds(130)));
  Outcome& slow = start_call();
  answer_probe();
  Outcome& waits = start_call();
  EXPECT_EQ(tcp_->out().size(), 1u);
  environment_->advance(seconds(5));
  ASSERT_EQ(tcp_->out().size(), 2u);
  tcp_->answer({});
  tcp_->answer({});
  EXPECT_TRUE(slow.ok && waits.ok);
}

TEST_F(RpcClientTest, LostWhileIdleConnectsOnlyForTheNextCall) {
  make_connected();
  lose();
  environment_->advance(seconds(60));
  EXPECT_EQ(environment_->made(), 1u);
  Outcome& outcome = start_call();
  EXPECT_EQ(environment_->made(), 2u);
  transport().accept();
  transport().answer({});
  EXPECT_TRUE(outcome.ok);
  EXPECT_FALSE(outcome.resent);
}

TEST_F(RpcClientTest, SilenceForTimeoClosesAndSendsAgain) {
  make_connected();
  Outcome& outcome = start_call();
  environment_->advance(seconds(9));
  EXPECT_EQ(environment_->made(), 1u);
  environment_->advance(seconds(3));
  ASSERT_EQ(environment_->made(), 2u);
  transport().accept();
  transport().answer({});
  EXPECT_TRUE(outcome.ok && outcome.resent);
}

TEST_F(RpcClientTest, ASlowCallOnALivelyConnectionIsGivenMoreTime) {
  make_connected();
  start_call();
  for (int i = 0; i < 5; ++i) {
    environment_->advance(seconds(5));
    Outcome& quick = start_call();
    std::swap(transport().out().front(), transport().out().back());
    transport().answer({});
    EXPECT_TRUE(quick.ok);
  }
  EXPECT_EQ(environment_->made(), 1u);  // 25 s passed, the limit is 30 s
  environment_->advance(seconds(7));
  EXPECT_EQ(environment_->made(), 2u);
}

TEST_F(RpcClientTest, SoftCallsEndWithTimeout) {
  options_.soft = true;
  make_connected();
  Outcome& outcome = start_call();
  environment_->advance(seconds(12));
  transport().accept();
  environment_->advance(seconds(17));
  EXPECT_FALSE(outcome.done);
  environment_->advance(seconds(3));
  ASSERT_TRUE(outcome.done);
  EXPECT_EQ(outcome.error.sys, ETIMEDOUT);
  EXPECT_EQ(outcome.error.code, Errc::kTimedOut);
}

TEST_F(RpcClientTest, HardCallsSayNotRespondingOnceAndWait) {
  make_connected();
  int silent = 0, back = 0;
  rpc_->set_observer({.connected = {},
                      .disconnected = {},
                      .not_responding = [&] { ++silent; },
                      .responding = [&] { ++back; }});
  Outcome& outcome = start_call();
  for (int i = 0; i < 20; ++i) {
    environment_->advance(seconds(5));
    if (environment_->transport() != nullptr) transport().accept();
  }
  EXPECT_FALSE(outcome.done);
  EXPECT_EQ(silent, 1);
  EXPECT_EQ(back, 0);
  transport().answer({});
  EXPECT_TRUE(outcome.ok);
  EXPECT_EQ(back, 1);
}

TEST_F(RpcClientTest, CancelEndsACallThatIsOut) {
  make_connected();
  CancelToken token;
  op_.cancel = &token;
  Outcome& outcome = start_call();
  token.cancel();
  ASSERT_TRUE(outcome.done);
  EXPECT_EQ(outcome.error.sys, EINTR);
  EXPECT_TRUE(transport().out().empty());
}

TEST_F(RpcClientTest, CancelEndsACallThatWaitsForAConnection) {
  make();
  CancelToken token;
  op_.cancel = &token;
  Outcome& outcome = start_call();
  token.cancel();
  ASSERT_TRUE(outcome.done);
  EXPECT_EQ(outcome.error.sys, EINTR);
  EXPECT_EQ(rpc_->outstanding(), 0u);
}

TEST_F(RpcClientTest, ACancelledTokenStopsLaterCalls) {
  make_connected();
  CancelToken token;
  token.cancel();
  op_.cancel = &token;
  Outcome& outcome = start_call();
  EXPECT_TRUE(outcome.done);
  EXPECT_EQ(outcome.error.sys, EINTR);
}

TEST_F(RpcClientTest, AbortFailsEverythingNowAndLater) {
  make_connected();
  Outcome& before = start_call();
  rpc_->abort_all();
  EXPECT_EQ(before.error.sys, EIO);
  Outcome& after = start_call();
  EXPECT_EQ(after.error.sys, EIO);
}

TEST_F(RpcClientTest, IdleConnectionsAreClosed) {
  options_.idle_timeout = seconds(100);
  make_connected();
  start_call();
  transport().answer({});
  environment_->advance(seconds(90));
  EXPECT_EQ(rpc_->connections().size(), 1u);
  environment_->advance(seconds(40));
  EXPECT_EQ(rpc_->connections().size(), 0u);
  EXPECT_EQ(environment_->made(), 1u);
}

TEST_F(RpcClientTest, CallsSpreadOverConnections) {
  make_two_connected();
  for (int i = 0; i < 4; ++i)
    start_call();
  EXPECT_EQ(first_->out().size(), 2u);
  EXPECT_EQ(second_->out().size(), 2u);
}

/// One call at a time needs one connection; the other comes back when there are more.
TEST_F(RpcClientTest, ALostConnectionComesBackWhenTheOthersAreBusy) {
  make_two_connected();
  start_call();
  start_call();
  first_->answer({});
  transport().answer({});
  lose();  // the second
  ASSERT_EQ(environment_->made(), 2u);
  start_call();
  start_call();
  EXPECT_EQ(first_->out().size(), 2u);
  ASSERT_EQ(environment_->made(), 3u);
  // One that cannot be made is not tried with each call.
  transport().refuse(ECONNREFUSED);
  environment_->settle();
  start_call();
  EXPECT_EQ(environment_->made(), 3u);
  environment_->advance(seconds(5));
  while (!first_->out().empty())
    first_->answer({});
  environment_->advance(seconds(10));
  start_call();
  start_call();
  EXPECT_EQ(environment_->made(), 4u);
  transport().accept();
  start_call();
  EXPECT_EQ(transport().out().size(), 1u);
}

/// As servers do that have enough connections: what was sent there must not wait for that one.
TEST_F(RpcClientTest, OneThatIsDroppedAtOnceHoldsNothingUp) {
  make_two_connected();
  for (int i = 0; i < 4; ++i)
    start_call();
  ASSERT_EQ(transport().out().size(), 2u);
  lose();
  EXPECT_EQ(first_->out().size(), 4u);
  EXPECT_EQ(rpc_->outstanding(), 4u);
  // Nor is it tried with each call.
  for (int i = 0; i < 4; ++i)
    start_call();
  EXPECT_EQ(environment_->made(), 2u);
  EXPECT_EQ(first_->out().size(), 8u);
  while (!first_->out().empty())
    first_->answer({});
  for (const Outcome& outcome : outcomes_)
    EXPECT_TRUE(outcome.ok);
}

TEST_F(RpcClientTest, WhatWaitsForOneConnectionGoesByTheFirstThatIsReady) {
  make_two_connected();
  first_->lose();
  second_->lose();
  environment_->settle();
  for (int i = 0; i < 4; ++i)
    start_call();  // two for each
  ASSERT_EQ(environment_->made(), 4u);
  transport().accept();
  EXPECT_EQ(transport().out().size(), 4u);
}

/// A further connection, to another address.
class FurtherConnectionTest : public RpcClientTest {
 protected:
  void SetUp() override {
    make_connected();
    first_ = environment_->transport();
    further_ = &rpc_->add_connection(
        {{TransportKind::kTcp, SocketAddress::parse("192.0.2.2", 2049).value(), nullptr}});
  }
  void accept() {
    further_->wake();
    second_ = environment_->transport();
    second_->accept();
  }
  Task<void> call_by(RpcConnection& way, Outcome* outcome) {
    RpcCallLease call = rpc_->prepare(100003, 3, 0, op_);
    call->set_way(way);
    Result<void> result = co_await call->run();
    outcome->done = true;
    outcome->ok = result.ok();
    if (!result.ok()) outcome->error = result.error();
  }

  RpcConnection* further_ = nullptr;
};

TEST_F(FurtherConnectionTest, CarriesWhatIsSentByItAloneUntilItIsAdmitted) {
  EXPECT_EQ(environment_->made(), 1u);
  accept();
  EXPECT_EQ(second_->candidate().address.host_text(), "192.0.2.2");
  for (int i = 0; i < 3; ++i)
    start_call();
  EXPECT_EQ(first_->out().size(), 3u);
  EXPECT_EQ(rpc_->connections().size(), 1u);
  Outcome& by_it = outcomes_.emplace_back();
  group_.spawn(call_by(*further_, &by_it));
  ASSERT_EQ(second_->out().size(), 1u);
  second_->answer({});
  EXPECT_TRUE(by_it.ok);
  further_->admit();
  EXPECT_EQ(rpc_->connections().size(), 2u);
  for (int i = 0; i < 3; ++i)
    start_call();
  EXPECT_EQ(second_->out().size(), 3u);
}

TEST_F(FurtherConnectionTest, LeavesWhatIsUnansweredToTheOthers) {
  accept();
  further_->admit();
  Outcome& a = start_call();
  Outcome& b = start_call();
  ASSERT_EQ(second_->out().size(), 1u);
  const std::uint32_t xid = second_->out().front()->xid;
  second_->lose();
  environment_->settle();
  // It is not made anew on its own, and nobody waits for it.
  EXPECT_EQ(environment_->made(), 2u);
  ASSERT_EQ(first_->out().size(), 2u);
  EXPECT_EQ(first_->out().back()->xid, xid);
  first_->answer({});
  first_->answer({});
  EXPECT_TRUE(a.ok && b.ok);
  EXPECT_TRUE(a.resent || b.resent);
  // Once it is back it has to be admitted again.
  accept();
  start_call();
  start_call();
  EXPECT_TRUE(second_->out().empty());
}

/// Also those of the first address.
TEST_F(FurtherConnectionTest, CarriesWhatTheFirstOneLeavesUnanswered) {
  accept();
  further_->admit();
  Outcome& a = start_call();
  Outcome& b = start_call();
  first_->lose();
  environment_->settle();
  ASSERT_EQ(second_->out().size(), 2u);
  second_->answer({});
  second_->answer({});
  EXPECT_TRUE(a.ok && b.ok);
}

TEST_F(FurtherConnectionTest, CarriesWhatWaitedWhenItIsAdmitted) {
  accept();
  Outcome& a = start_call();
  first_->lose();
  environment_->settle();
  EXPECT_TRUE(second_->out().empty());
  further_->admit();
  ASSERT_EQ(second_->out().size(), 1u);
  second_->answer({});
  EXPECT_TRUE(a.ok);
}

TEST_F(FurtherConnectionTest, IsNotUsedOnceItIsDisowned) {
  accept();
  further_->admit();
  rpc_->disown_further();
  for (int i = 0; i < 3; ++i)
    start_call();
  EXPECT_TRUE(second_->out().empty());
  EXPECT_EQ(first_->out().size(), 3u);
}

TEST_F(FurtherConnectionTest, WhatGoesByItAloneFailsWithIt) {
  accept();
  Outcome& lost = outcomes_.emplace_back();
  group_.spawn(call_by(*further_, &lost));
  second_->lose();
  environment_->settle();
  ASSERT_TRUE(lost.done);
  EXPECT_EQ(lost.error.code, Errc::kClosed);
  Outcome& refused = outcomes_.emplace_back();
  group_.spawn(call_by(*further_, &refused));
  environment_->transport()->refuse(ECONNREFUSED);
  environment_->settle();
  ASSERT_TRUE(refused.done);
  EXPECT_EQ(refused.error.code, Errc::kClosed);
  EXPECT_TRUE(first_->out().empty());
}

TEST_F(RpcClientTest, UndecodableRepliesAreErrors) {
  make_connected();
  Outcome& outcome = start_call();
  ClientCall* call = transport().out().front();
  transport().out().pop_front();
  const std::array<std::byte, 3> garbage{};
  call->ok = true;
  call->reply = garbage;
  call->on_complete();
  ASSERT_TRUE(outcome.done);
  EXPECT_EQ(outcome.error.code, Errc::kProtocol);
}

}  // namespace
}  // namespace nfsrdma
