// SPDX-License-Identifier: Apache-2.0
// What status says of NFSv4.
#include "server/nfs4/state_report.h"

#include <gmock/gmock.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

using nfs4::OpenStates;
using nfs4::StateReport;
using ::testing::HasSubstr;
using Phase = StateReport::OneClient::Phase;

class StateReports : public ::testing::Test {
 protected:
  StateReport report(std::size_t most = 10) { return report_state(nfs_.state(), most); }
  nfsstat4 lock(const Open4& file, std::uint64_t offset, std::string_view owner) {
    return nfs_.on<OP_LOCK>(file.handle, first_lock(file.stateid, offset, 1, owner)).status;
  }
  Nfs4Harness nfs_;
};

TEST_F(StateReports, HaveWhatAClientHolds) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(nfs_.open(nfs_.root(), "other").status, NFS4_OK);
  ASSERT_EQ(lock(file, 0, "a"), NFS4_OK);
  ASSERT_EQ(lock(file, 10, "a"), NFS4_OK);
  ASSERT_EQ(lock(file, 20, "b"), NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(7));
  const StateReport all = report();
  ASSERT_EQ(all.clients.size(), 1u);
  const StateReport::OneClient& one = all.clients[0];
  EXPECT_EQ(one.id, nfs_.session.client);
  EXPECT_EQ(one.name, "first");
  EXPECT_EQ(one.address, "192.0.2.7");
  EXPECT_EQ(one.minor_version, 2u);
  EXPECT_EQ(one.phase, Phase::kActive);
  EXPECT_EQ(one.seconds_since_renewal, 7);
  EXPECT_EQ(one.sessions.count, 1u);
  EXPECT_EQ(one.sessions.slots, 4u);
  EXPECT_EQ(one.sessions.slots_in_use, 0u);
  EXPECT_EQ(one.sessions.connections, 1u);
  EXPECT_EQ(one.opens, (OpenStates::Held{2, 2, 3, 2}));
  EXPECT_EQ(all.opens, one.opens);
  EXPECT_EQ(all.sessions.slots, 4u);
  EXPECT_EQ(all.active, 1u);
  EXPECT_EQ(all.lease_seconds, 90);
  EXPECT_FALSE(all.in_grace);
  EXPECT_EQ(nfs_.close(file), NFS4_OK);
  EXPECT_EQ(report().opens, (OpenStates::Held{1, 0, 0, 1}));
}

// Two sessions of one client over one connection.
TEST_F(StateReports, CountAConnectionOnce) {
  nfs_.connect("first");
  const StateReport all = report();
  ASSERT_EQ(all.clients.size(), 1u);
  EXPECT_EQ(all.clients[0].sessions.count, 2u);
  EXPECT_EQ(all.clients[0].sessions.connections, 1u);
}

TEST_F(StateReports, TellCourteousFromExpiredClients) {
  ASSERT_EQ(nfs_.open(nfs_.root(), "file").status, NFS4_OK);
  xdr::SETCLIENTID4args who;
  who.client.id = as_bytes(std::string_view("old\nclient"));
  const auto known =
      nfs_.run_bare(Operations4().add<OP_SETCLIENTID>(who), 0).get<OP_SETCLIENTID>().resok4;
  EXPECT_EQ(report().unconfirmed, 1u);
  ASSERT_EQ(nfs_.run_bare(Operations4().add<OP_SETCLIENTID_CONFIRM>(
                              {known.clientid, known.setclientid_confirm}),
                          0)
                .status,
            NFS4_OK);
  nfs_.clock.move(std::chrono::seconds(100));
  const StateReport all = report();
  EXPECT_EQ(all.active, 0u);
  EXPECT_EQ(all.courteous, 1u);
  EXPECT_EQ(all.expired, 1u);
  ASSERT_EQ(all.clients.size(), 2u);
  EXPECT_EQ(all.clients[0].phase, Phase::kCourteous) << "who holds most comes first";
  EXPECT_EQ(all.clients[1].phase, Phase::kExpired);
  EXPECT_EQ(all.clients[1].name, "old?client");
  EXPECT_EQ(all.clients[1].minor_version, 0u);
}

TEST_F(StateReports, OfManyClientsShowThoseWhoHoldMost) {
  for (int i = 0; i < 300; ++i) {
    nfs_.session = nfs_.connect("client" + std::to_string(i));
    if (i != 200) continue;
    ASSERT_EQ(nfs_.open(nfs_.root(), "file").status, NFS4_OK);
    ASSERT_EQ(nfs_.open(nfs_.root(), "other").status, NFS4_OK);
  }
  const StateReport all = report(20);
  EXPECT_EQ(all.confirmed, 301u);
  EXPECT_EQ(all.active, 301u);
  EXPECT_EQ(all.sessions.count, 301u);
  ASSERT_EQ(all.clients.size(), 20u);
  EXPECT_EQ(all.clients[0].name, "client200");
  EXPECT_EQ(all.clients[0].opens.opens, 2u);
}

TEST_F(StateReports, NamesAreCut) {
  nfs_.connect(std::string(1000, 'n'));
  const StateReport all = report();
  ASSERT_EQ(all.clients.size(), 2u);
  EXPECT_EQ(all.clients[1].name, std::string(100, 'n') + "...");
}

/// No two numbers are equal.
TEST(StateReportJson, EachNumberStandsUnderItsName) {
  StateReport report;
  StateReport::OneClient client;
  client.id = 0xabc;
  client.name = "me";
  client.address = "192.0.2.7";
  client.minor_version = 2;
  client.phase = Phase::kCourteous;
  client.seconds_since_renewal = 11;
  client.sessions = {12, 13, 14, 15, 16, 24};
  client.opens = {17, 18, 19, 20};
  client.delegations = {21, 22, 23};
  report.clients = {client};
  report.confirmed = 31;
  report.unconfirmed = 32;
  report.active = 33;
  report.courteous = 34;
  report.expired = 35;
  report.sessions = {36, 37, 38, 39, 40, 53};
  report.opens = {41, 42, 43, 44};
  report.refused = {53, 49, 45, 46, 47, 48, 54, 55, 56};
  report.delegations = 50;
  report.delegations_recalled = 51;
  report.in_grace = true;
  report.lease_seconds = 52;
  report.limits.clients = 61;
  report.limits.sessions = {62, 63};
  report.limits.slots = 64;
  report.limits.reply_bytes = 65;
  report.limits.opens = {{66, 67}, 68, {69, 70}, {71, 72}};
  report.limits.delegations = {73, 74, 75};
  report.limits.owners = 76;
  JsonWriter json;
  write_state(json, report);
  const std::string text = json.take();
  for (const char* part :
       {"\"clients\":31,\"clients_active\":33,\"clients_courteous\":34,\"clients_expired\":35,"
        "\"clients_unconfirmed\":32,\"lease_seconds\":52,\"in_grace\":true",
        "\"sessions\":36,\"sessions_called_back\":40,\"session_connections\":53,"
        "\"slots\":37,\"slots_in_use\":38,\"kept_reply_bytes\":39",
        "\"opens\":41,\"files\":44,\"lock_owners\":42,\"locks\":43,\"delegations\":50,"
        "\"delegations_recalled\":51",
        "\"refused\":{\"clients\":53,\"sessions\":49,\"opens\":45,\"files\":46,\"locks\":47,"
        "\"locks_per_file\":48,\"delegations\":54,\"owners\":55},\"clients_that_gave_way\":56",
        "\"limits\":{\"clients\":61,\"sessions_per_client\":62,\"slots_per_session\":64,"
        "\"slots\":63,\"kept_reply_bytes_per_slot\":65,\"opens_per_client\":66,\"opens\":67,"
        "\"files\":72,\"locks_per_client\":69,\"locks\":70,\"locks_per_file\":68,"
        "\"delegations_per_client\":74,\"delegations\":73,\"owners_per_client\":76}",
        "\"client_list\":[{\"id\":\"0000000000000abc\",\"name\":\"me\","
        "\"address\":\"192.0.2.7\",\"protocol\":\"4.2\",\"minor_version\":2,"
        "\"state\":\"courteous\","
        "\"seconds_since_renewal\":11,\"sessions\":12,\"sessions_called_back\":16,"
        "\"session_connections\":24,\"slots\":13,\"slots_in_use\":14,\"kept_reply_bytes\":15,"
        "\"opens\":17,\"files\":20,"
        "\"lock_owners\":18,\"locks\":19,\"delegations\":21,\"delegations_recalled\":22,"
        "\"delegations_revoked\":23}]"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace nfsrdma::test
