// SPDX-License-Identifier: Apache-2.0
// What the tool makes of a server's documents: rates, percentiles, tables.
#include "client/tool/server_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/tool/clients_text.h"
#include "client/tool/locks_text.h"
#include "client/tool/trace_text.h"

namespace nfsrdma::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JsonValue json(const std::string& text) {
  const auto value = JsonValue::parse(text);
  EXPECT_TRUE(value) << text;
  return value.value_or(JsonValue());
}

/// A server after `uptime` seconds with `reads` READs of 100 us, one in ten of 3 ms.
ServerSample sample(double uptime, unsigned reads, unsigned pid = 1) {
  return ServerSample::of(json(
      R"({"server":"0.1.0","pid":)" + std::to_string(pid) + R"(,"uptime_seconds":)" +
      std::to_string(uptime) +
      R"(,"connections":[
        {"id":1,"fabric":"iwarp","peer":"192.0.2.7:700","calls":)" +
      std::to_string(reads) + R"(,"rdma_write_bytes":)" + std::to_string(reads * 4096) +
      R"(,"credits":64,"calls_in_progress":3,"latency_us":[[112,)" +
      std::to_string(reads * 9 / 10) + R"(],[3584,)" + std::to_string(reads / 10) + R"(]]},
        {"id":2,"fabric":"tcp","peer":"192.0.2.7:701","calls":0,"credits":16},
        {"id":3,"fabric":"tcp","peer":"[2001:db8::1]:702","calls":0,"credits":16}],
      "operations":[
        {"program":"NFSv3","name":"READ","fabric":"iwarp","calls":)" +
      std::to_string(reads) + R"(,"errors":)" + std::to_string(reads / 100) +
      R"(,"latency_us":[[112,)" + std::to_string(reads * 9 / 10) + R"(],[3584,)" +
      std::to_string(reads / 10) +
      R"(]]},{"program":"NFSv3","name":"NULL","fabric":"tcp","calls":5}],
      "totals":{"connections":3,"calls":)" +
      std::to_string(reads) + R"(,"calls_in_progress":3,"calls_waiting":2,"rdma_write_bytes":)" +
      std::to_string(reads * 4096) + R"(},"memory":{"in_use":1048576,"budget":268435456},
      "nfs4":{"client_list":[{"id":"00aa","address":"192.0.2.7","minor_version":2,"opens":4,
        "locks":5,"delegations":6,"state":"active"},
        {"id":"00bb","address":"192.0.2.9","minor_version":0,"state":"courteous"}]}})"));
}

TEST(ServerView, HostsOfPeers) {
  EXPECT_EQ(host_of("192.0.2.7:700"), "192.0.2.7");
  EXPECT_EQ(host_of("[2001:db8::1]:700"), "2001:db8::1");
}

TEST(ServerView, PercentilesAreEndsOfBuckets) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(latency_percentile({}, 0.5), 0);
  EXPECT_EQ(latency_percentile({{1, 50}, {2, 49}, {8, 1}}, 0.50), 1);
  EXPECT_EQ(latency_percentile({{1, 50}, {2, 49}, {8, 1}}, 0.99), 2);
  EXPECT_EQ(latency_percentile({{1, 50}, {2, 48}, {8, 1}, {inf, 1}}, 0.999), inf);
}

TEST(ServerView, RatesAreBetweenTwoLooks) {
  const ServerRates rates = ServerRates::between(sample(10, 1000), sample(12, 3000));
  ASSERT_EQ(rates.operations.size(), 1u);  // NULL was not called meanwhile
  EXPECT_EQ(rates.operations[0].name, "NFSv3 READ");
  EXPECT_DOUBLE_EQ(rates.operations[0].calls, 1000);
  EXPECT_DOUBLE_EQ(rates.operations[0].errors, 10);
  EXPECT_EQ(rates.operations[0].p50_us, 112);
  EXPECT_EQ(rates.operations[0].p99_us, 3584);
  ASSERT_EQ(rates.clients.size(), 2u);
  EXPECT_EQ(rates.clients[0].name, "192.0.2.7");
  EXPECT_EQ(rates.clients[0].fabrics, "iwarp,tcp");
  EXPECT_EQ(rates.clients[0].connections, 2u);
  EXPECT_EQ(rates.clients[0].credits, 80u);
  EXPECT_DOUBLE_EQ(rates.clients[0].rdma_write_bytes, 4096000);
  EXPECT_EQ(rates.clients[1].name, "2001:db8::1");
  EXPECT_DOUBLE_EQ(rates.total.calls, 1000);
}

TEST(ServerView, ARestartedServerCountsFromItsStart) {
  const ServerRates rates = ServerRates::between(sample(1000, 90000), sample(2, 1000, 2));
  EXPECT_DOUBLE_EQ(rates.total.calls, 500);
}

TEST(ServerView, ACounterThatWentBackHasNotGrown) {
  EXPECT_DOUBLE_EQ(ServerRates::between(sample(10, 1000), sample(11, 900)).total.calls, 0);
}

TEST(ServerView, ARestartInAContainerIsOneThoughTheProcessIsTheFirstAgain) {
  EXPECT_DOUBLE_EQ(ServerRates::between(sample(1000, 500), sample(2, 900)).total.calls, 450);
}

TEST(ServerView, TheScreenFits) {
  const ServerSample now = sample(12, 3000);
  const std::string text = top_text(now, ServerRates::between(sample(10, 1000), now), 70, 9);
  std::size_t lines = 0, at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - at, 70u);
    at = end + 1;
    ++lines;
  }
  EXPECT_EQ(lines, 9u);
}

TEST(ServerView, TheScreenTellsWhatIsGoingOn) {
  const ServerSample now = sample(12, 3000);
  const std::string text = top_text(now, ServerRates::between(sample(10, 1000), now), 200, 50);
  EXPECT_THAT(text, HasSubstr("calls 1000/s  p50 112 us  p99 3.6 ms  in progress 3  waiting 2"));
  EXPECT_THAT(text, HasSubstr("RDMA Write 3.9 MiB/s"));
  EXPECT_THAT(text, HasSubstr("3/80"));
  EXPECT_THAT(text, HasSubstr("NFSv3 READ"));
}

TEST(ClientsText, EachAddressIsALineThoseWithoutConnectionToo) {
  const std::string document =
      R"({"connections":[{"id":1,"fabric":"iwarp","peer":"192.0.2.7:700","calls":9}],
      "nfs4":{"client_list":[
        {"id":"00aa","address":"192.0.2.7","minor_version":2,"opens":4,"state":"active"},
        {"id":"00bb","address":"192.0.2.9","minor_version":0,"locks":7,"state":"courteous"}]}})";
  const std::string text = clients_text(json(document));
  EXPECT_THAT(text, testing::ContainsRegex("192.0.2.7 +iwarp +1 4.2 +9 .* 4 +0 +0 +active"));
  EXPECT_THAT(text, testing::ContainsRegex("192.0.2.9 +- +0 4.0 +0 .* 0 +7 +0 +courteous"));
  EXPECT_EQ(clients_text(json("{}")), "No clients.\n");
  const JsonValue machine = json(clients_json(json(document)));
  EXPECT_EQ(machine["clients"].items().at(0)["address"].text(), "192.0.2.7");
  EXPECT_EQ(machine["nfs4_clients"].items().at(1)["id"].text(), "00bb");
}

/// What is not known is not said to be none.
TEST(ClientsText, WhoIsNotInTheListIsCounted) {
  const JsonValue document = json(R"({"connections":[
    {"id":1,"fabric":"iwarp","peer":"192.0.2.7:700"},{"id":2,"fabric":"tcp","peer":"192.0.2.8:700"}],
    "nfs4":{"clients":150,"client_list":[
      {"id":"00aa","address":"192.0.2.7","minor_version":2,"opens":4,"state":"active"}]}})");
  const std::string text = clients_text(document);
  EXPECT_THAT(text, testing::ContainsRegex("192.0.2.7 .* 4 +0 +0 +active"));
  EXPECT_THAT(text, testing::ContainsRegex("192.0.2.8 +tcp +1 [?] .* [?] +[?] +[?] +[?]"));
  EXPECT_THAT(text, HasSubstr("and 149 clients"));
  EXPECT_EQ(json(clients_json(document))["nfs4_clients_left_out"].count(), 149u);
}

TEST(LocksText, LocksDelegationsAndWhenAskedForOpens) {
  const JsonValue document = json(
      R"({"files":[{"path":"/srv/a","opens":[{"address":"192.0.2.7","access":"both","deny":"write"}],
      "locks":[{"address":"192.0.2.7","kind":"write","offset":10,"length":5},
               {"address":"192.0.2.8","kind":"read","offset":20,"length":0}],
      "delegations":[{"address":"192.0.2.9","kind":"read","state":"recalled"}]}],"more":true})");
  const std::string text = locks_text(document, false);
  EXPECT_THAT(text, testing::ContainsRegex("write lock +10-14 +192.0.2.7 +/srv/a"));
  EXPECT_THAT(text, testing::ContainsRegex("read lock +20-end +192.0.2.8"));
  EXPECT_THAT(text, testing::ContainsRegex("delegation +read, recalled +192.0.2.9"));
  EXPECT_THAT(text, Not(HasSubstr("denies")));
  EXPECT_THAT(text, HasSubstr("and more files"));
  EXPECT_THAT(locks_text(document, true), HasSubstr("both, denies write"));
  EXPECT_EQ(locks_text(json(R"({"files":[],"more":false})"), true), "");
}

TEST(TraceText, ALinePerCallAndWhatWasLost) {
  const std::string text = trace_text(json(
      R"({"time_us":1700000000500000,"peer":"192.0.2.7:700","fabric":"iwarp","program":"NFSv3",
      "operations":"READ","status":"OK","request_bytes":100,"reply_bytes":50,"receive_us":1,
      "wait_us":2,"run_us":3,"commit_us":4,"total_us":12})"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        ".*[.]500000 192.0.2.7:700 +iwarp +12 +1 +2 +3 +4 +150 OK +NFSv3 READ"));
  EXPECT_THAT(trace_text(json(R"({"lost":7})")), HasSubstr("7 calls were not seen"));
}

TEST(ClientsText, AHostOfVersion3IsShownAsWhatItIs) {
  const JsonValue document = json(R"({"nfs4":{"client_list":[
    {"id":"00cc","address":"192.0.2.9","protocol":"NLM","locks":2,"state":"active"},
    {"id":"00dd","address":"192.0.2.9","protocol":"4.1","minor_version":1,"state":"active"}]}})");
  EXPECT_THAT(clients_text(document), testing::ContainsRegex("192.0.2.9 +- +0 NLM,4.1 "));
  const JsonValue machine = json(clients_json(document));
  EXPECT_EQ(machine["nfs4_clients"].items().at(0)["protocol"].text(), "NLM");
  EXPECT_EQ(machine["nfs4_clients"].items().at(1)["minor_version"].count(), 1u);
}

}  // namespace
}  // namespace nfsrdma::tool
