// SPDX-License-Identifier: Apache-2.0
// What becomes of locks of NFSv3 when a host restarts, and when the server does.
#include <gmock/gmock.h>

#include "tests/support/nlm_harness.h"

namespace nfsrdma::test {
namespace {

using enum xdr::nlm4_stats;

const NlmOwner kFirst{"host", 1};
const NlmOwner kElsewhere{"other", 1};
constexpr std::uint32_t kNotify = 6;

class NlmRestarts : public ::testing::Test {
 protected:
  NlmHarness harness;
  FileHandle file = harness.make_file("file");
};

// --- of hosts ---

TEST_F(NlmRestarts, AHostThatSaysSoHoldsNothingAnyMore) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.notify("host.example.org", 5);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

TEST_F(NlmRestarts, OfOthersNothingIsTaken) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.notify("other", 5);
  harness.set_peer("127.0.0.2");
  harness.notify("host", 5);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
}

TEST_F(NlmRestarts, ANotificationThatComesLateTakesNothing) {
  // In its life with the state 7 the host has locked the file.
  ASSERT_EQ(harness.lock(file, kFirst, true, {}, false, false, 7), NLM4_GRANTED);
  harness.notify("host", 7);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
  harness.notify("host", 9);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

TEST_F(NlmRestarts, ANotificationBehindALockOfTheNextLifeEndsWhatWasBefore) {
  const FileHandle second = harness.make_file("second");
  ASSERT_EQ(harness.lock(file, kFirst, true, {}, false, false, 7), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(second, kFirst, true, {}, false, false, 9), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED) << "a number alone ends nothing";
  harness.notify("host", 9);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(second, kFirst, true, {}, false, false, 9), NLM4_GRANTED);
  harness.notify("host", 9);
  EXPECT_EQ(harness.lock(second, kElsewhere), NLM4_DENIED) << "once";
}

TEST_F(NlmRestarts, NobodySpeaksForAllHostsOfAnAddress) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  for (const char* name : {"", "*"}) {
    harness.notify(name, 5);
    harness.run(nlm4_program(), 23, xdr::nlm4_notify{name, 0});
  }
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
}

TEST_F(NlmRestarts, FreeAllIsNotForDatagramsNorForOrdinaryUsers) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.nfs4.connection().set_transport(TransportKind::kUdp);
  harness.run(nlm4_program(), 23, xdr::nlm4_notify{"host", 0});
  harness.nfs4.connection().set_transport(TransportKind::kTcp);
  harness.set_peer("127.0.0.1", 40000);
  harness.run(nlm4_program(), 23, xdr::nlm4_notify{"host", 0});
  harness.set_peer("127.0.0.1");
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
}

TEST_F(NlmRestarts, FreeAllIsOfTheHostThatCalls) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.set_peer("127.0.0.2");
  harness.run(nlm4_program(), 23, xdr::nlm4_notify{"host", 0});
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
  harness.set_peer("127.0.0.1");
  harness.run(nlm4_program(), 23, xdr::nlm4_notify{"host", 0});
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

TEST_F(NlmRestarts, WhatAnotherMonitorTellsIsBelievedOfRootAlone) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  xdr::sm_status status;
  status.state = 5;
  status.priv[10] = status.priv[11] = std::byte{0xff};
  status.priv[12] = std::byte{127};
  status.priv[15] = std::byte{1};
  status.mon_name = "127.0.0.1";
  harness.set_peer("127.0.0.1", 40000);
  harness.run(nlm4_program(), 16, status);
  harness.set_peer("127.0.0.1");
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
  harness.run(nlm4_program(), 16, status);
  // All hosts there are one to it.
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

TEST_F(NlmRestarts, AHostWithLocksDoesNotExpire) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.nfs4.clock.move(std::chrono::hours(100));
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  harness.nfs4.clock.move(std::chrono::hours(1));
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
  std::lock_guard guard(harness.nfs4.state().mutex);
  EXPECT_EQ(harness.nfs4.state().clients.find_host("127.0.0.1 host"), nullptr);
}

// --- of the server ---

TEST_F(NlmRestarts, HostsAreToldOfTheServers) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  const std::int32_t before = harness.nfs4.server().nsm->state();
  harness.restart();
  const HostPrograms::Seen call = harness.programs.next();
  EXPECT_EQ(call.program, xdr::kNsmProgram);
  ASSERT_EQ(call.procedure, kNotify);
  const auto args = call.as<xdr::stat_chge>();
  EXPECT_NE(args.state, before);
  EXPECT_EQ(args.state & 1, 1);
  EXPECT_FALSE(args.mon_name.empty());
}

TEST_F(NlmRestarts, HostsThatHeldNothingAreNotTold) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  harness.nfs4.clock.move(std::chrono::hours(1));
  ASSERT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
  harness.restart();
  EXPECT_EQ(harness.nfs4.state().hosts_before(), std::vector<std::string>{"127.0.0.1 other"});
}

TEST_F(NlmRestarts, LocksAreReclaimedBeforeAnybodyGetsNewOnes) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.restart();
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(harness.test(file, kElsewhere).stat, NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, false, true), NLM4_DENIED_GRACE_PERIOD)
      << "who had none reclaims none";
  EXPECT_EQ(harness.lock(file, kFirst, true, {}, false, true), NLM4_GRANTED);
  harness.nfs4.clock.move(std::chrono::seconds(91));
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

TEST_F(NlmRestarts, ItIsTooLateToReclaimAfterThat) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.restart();
  harness.nfs4.clock.move(std::chrono::seconds(91));
  ASSERT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kFirst, true, {}, false, true), NLM4_DENIED_GRACE_PERIOD);
}

TEST_F(NlmRestarts, AHostThatRestartedBeforeTheServerReclaimsNothing) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  harness.notify("host", 5);
  ASSERT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
  harness.restart();
  EXPECT_EQ(harness.lock(file, kFirst, true, {}, false, true), NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, false, true), NLM4_GRANTED);
}

TEST_F(NlmRestarts, NonMonitoredLocksAreGoneWithTheServer) {
  const xdr::nlm4_lockargs args{{}, false, true, harness.name(file, kFirst, {}), false, 0};
  ASSERT_EQ(harness.call<xdr::nlm4_res>(xdr::nlmproc4::NLMPROC4_NM_LOCK, args).stat, NLM4_GRANTED);
  harness.restart();
  EXPECT_TRUE(harness.nfs4.state().hosts_before().empty());
  EXPECT_EQ(harness.lock(file, kFirst, true, {}, false, true), NLM4_DENIED_GRACE_PERIOD);
  harness.nfs4.clock.move(std::chrono::seconds(91));
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

// --- the status monitor, for other lock managers of this machine ---

xdr::sm_mon mon(std::string_view host, std::uint32_t program = 400000) {
  xdr::sm_mon out;
  out.id.mon_name = host;
  out.id.id = {"me", program, 1, 7};
  out.priv[0] = std::byte{42};
  return out;
}

TEST_F(NlmRestarts, AMonitoredHostsRestartIsPassedOn) {
  const auto answer = harness.run(nsm1_program(), 2, mon("127.0.0.1"));
  xdr::sm_stat_res res;
  xdr::Decoder decoder{ByteSpan(answer)};
  ASSERT_TRUE(xdr::decode(decoder, res));
  EXPECT_EQ(res.res_stat, xdr::nsm_res::STAT_SUCC);
  EXPECT_EQ(res.state, harness.nfs4.server().nsm->state());
  harness.notify("whatever", 11);
  const HostPrograms::Seen call = harness.programs.next();
  EXPECT_EQ(call.program, 400000u);
  EXPECT_EQ(call.procedure, 7u);
  xdr::sm_status status;
  xdr::Decoder arguments{ByteSpan(call.arguments)};
  ASSERT_TRUE(xdr::decode(arguments, status));
  EXPECT_EQ(status.mon_name, "127.0.0.1");
  EXPECT_EQ(status.state, 11);
  EXPECT_EQ(status.priv[0], std::byte{42});
}

TEST_F(NlmRestarts, MonitoringOutlivesTheServerAndEndsWithUnmon) {
  harness.run(nsm1_program(), 2, mon("127.0.0.1"));
  harness.restart();
  harness.notify("whatever", 11);
  EXPECT_EQ(harness.programs.next().procedure, 7u) << "and it was not told of the server's restart";
  harness.run(nsm1_program(), 3, mon("127.0.0.1").id);
  harness.run(nsm1_program(), 2, mon("127.0.0.1", 400001));
  harness.notify("whatever", 13);
  EXPECT_EQ(harness.programs.next().program, 400001u);
}

TEST_F(NlmRestarts, OnlyRootOfThisMachineHasHostsMonitored) {
  for (const auto& [peer, port] : {std::pair{"127.0.0.1", 40000}, std::pair{"192.0.2.7", 700}}) {
    harness.set_peer(peer, static_cast<std::uint16_t>(port));
    const auto answer = harness.run(nsm1_program(), 2, mon("127.0.0.1"));
    xdr::sm_stat_res res;
    xdr::Decoder decoder{ByteSpan(answer)};
    ASSERT_TRUE(xdr::decode(decoder, res));
    EXPECT_EQ(res.res_stat, xdr::nsm_res::STAT_FAIL) << peer;
  }
}

TEST_F(NlmRestarts, AfterARestartOfTheMachineMonitoredHostsAreToldOfIt) {
  nsm::Monitored one;
  one.mon_name = "localhost";  // to be looked up
  one.my_name = "me";
  one.my_prog = 400000;
  one.my_vers = 1;
  one.my_proc = 7;
  one.boot_id = "an-earlier-one";
  harness.restart([&] { put_file(harness.nfs4.state_dir() + "/nsm/log", nsm::to_text({one})); });
  const HostPrograms::Seen call = harness.programs.next();
  ASSERT_EQ(call.program, xdr::kNsmProgram);
  EXPECT_EQ(call.procedure, kNotify);
  const auto args = call.as<xdr::stat_chge>();
  EXPECT_EQ(args.mon_name, "me");
  // Its lock manager asks anew.
  harness.notify("whatever", 11);
  harness.run(nsm1_program(), 2, mon("127.0.0.1", 400001));
  harness.notify("whatever", 13);
  EXPECT_EQ(harness.programs.next().program, 400001u);
}

TEST_F(NlmRestarts, WhoIsNotToldYetIsToldBehindTheNextRestartAsWell) {
  nsm::Monitored one;
  one.mon_name = "127.0.0.1";
  one.my_name = "me";
  one.my_prog = 400000;
  one.boot_id = "an-earlier-one";
  const std::string log = harness.nfs4.state_dir() + "/nsm/log";
  harness.programs.register_programs(false);
  // Two lock managers have had it monitored.
  nsm::Monitored other = one;
  other.my_prog = 400001;
  harness.restart([&] { put_file(log, nsm::to_text({one, other})); });
  const std::int32_t state = harness.nfs4.server().nsm->state();
  harness.restart();
  EXPECT_EQ(harness.programs.waiting(), 0u);
  harness.programs.register_programs(true);
  harness.restart();
  const HostPrograms::Seen call = harness.programs.next();
  ASSERT_EQ(call.program, xdr::kNsmProgram);
  ASSERT_EQ(call.procedure, kNotify);
  EXPECT_EQ(call.as<xdr::stat_chge>().mon_name, "me");
  EXPECT_EQ(call.as<xdr::stat_chge>().state, state) << "this machine has not restarted since then";
  while (nsm::from_text(content_of(log)).value().size() != 0)
    std::this_thread::yield();
  EXPECT_EQ(harness.programs.waiting(), 0u) << "once";
}

/// As when it is restarted just now. (This one's answer is none.)
TEST_F(NlmRestarts, AnotherMonitorThatDoesNotTakeAHostOverIsAskedAgain) {
  harness.nfs4.server().nsm->use_other(std::chrono::milliseconds(20));
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  for (int i = 0; i < 3; ++i) {
    const HostPrograms::Seen call = harness.programs.next();
    EXPECT_EQ(call.program, xdr::kNsmProgram);
    EXPECT_EQ(call.procedure, 2u);
    EXPECT_EQ(call.as<xdr::sm_mon>().id.mon_name, "127.0.0.1");
  }
}

TEST(Monitored, IsReadBackAsItWasWritten) {
  nsm::Monitored one;
  one.mon_name = "host";
  one.my_name = "me";
  one.my_prog = 100021;
  one.my_vers = 4;
  one.my_proc = 16;
  one.priv[15] = std::byte{0xab};
  one.boot_id = "b";
  nsm::Monitored untold = one;
  untold.state = 0x7fffffff;
  const std::string text = nsm::to_text({untold, one});
  const auto back = nsm::from_text(text);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2u);
  EXPECT_TRUE((*back)[1].same_as(one));
  EXPECT_EQ((*back)[1].priv, one.priv);
  EXPECT_EQ((*back)[1].boot_id, "b");
  EXPECT_EQ((*back)[1].state, 0);
  EXPECT_EQ((*back)[0].state, untold.state);
}

TEST(Monitored, DamageIsSeen) {
  nsm::Monitored one;
  one.mon_name = one.my_name = one.boot_id = "x";
  nsm::Monitored untold = one;
  untold.state = 7;
  const std::string text = nsm::to_text({one, untold});
  for (std::size_t cut = 0; cut < text.size(); ++cut)
    EXPECT_FALSE(nsm::from_text(text.substr(0, cut))) << cut;
  EXPECT_FALSE(nsm::from_text(text + "more"));
}

}  // namespace
}  // namespace nfsrdma::test
