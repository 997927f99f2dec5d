// SPDX-License-Identifier: Apache-2.0
// What is counted of calls, and what Prometheus is told of it.
#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "server/call_metrics.h"
#include "xdr/nfs4_operations.h"

namespace nfsrdma {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ProcedureRow kRows[] = {{"NULL"}, {"READ"}, {"WRITE"}};
const ProgramTable kTables[] = {{100003, 3, "NFSv3", kRows}};

TEST(CallMetricsTest, CountsByProcedureAndTransport) {
  CallMetrics metrics(kTables);
  metrics.add(1, TransportKind::kIwarp, 2000, false);
  metrics.add(1, TransportKind::kIwarp, 2000, true);
  metrics.add(1, TransportKind::kTcp, 5000, false);
  const std::vector<CallCounts> counts = metrics.report();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].program, "NFSv3");
  EXPECT_EQ(counts[0].name, "READ");
  EXPECT_EQ(counts[0].transport, TransportKind::kIwarp);
  EXPECT_EQ(counts[0].calls, 2u);
  EXPECT_EQ(counts[0].errors, 1u);
  EXPECT_EQ(counts[0].latency.count(), 2u);
  EXPECT_EQ(counts[0].latency.sum_ns, 4000u);
  EXPECT_EQ(counts[1].transport, TransportKind::kTcp);
  EXPECT_EQ(counts[1].calls, 1u);
}

TEST(CallMetricsTest, OperationsOfACompoundAreCountedByName) {
  CallMetrics metrics(kTables);
  const auto number = static_cast<std::uint32_t>(xdr::nfs_opnum4::OP_GETATTR);
  metrics.add_operation({number, 0, 3000}, TransportKind::kIwarp);
  metrics.add_operation({number, 70, 3000}, TransportKind::kIwarp);
  metrics.add_operation({99999, 10044, 0}, TransportKind::kIwarp);
  const std::vector<CallCounts> counts = metrics.report();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].name, "ILLEGAL");
  EXPECT_EQ(counts[1].name, "GETATTR");
  EXPECT_EQ(counts[1].calls, 2u);
  EXPECT_EQ(counts[1].errors, 1u);
}

class MetricsText : public testing::Test {
 protected:
  MetricsText() {
    CallCounts read;
    read.program = "NFSv3";
    read.name = "READ";
    read.transport = TransportKind::kIwarp;
    read.calls = 3;
    read.errors = 1;
    read.latency.add(1500);        // below 2048 ns
    read.latency.add(1900);        // the same
    read.latency.add(40'000'000);  // 40 ms
    ConnectionInfo connection;
    connection.transport = TransportKind::kIwarp;
    connection.credits = 64;
    connection.calls_in_progress = 5;
    connection.stats.rdma_write_bytes = 1000;
    connection.stats.rdma_read_bytes = 200;
    connection.stats.inline_bytes = 30;
    ShardReport shard;
    shard.connections = {connection};
    shard.latencies.resize(1);
    shard.closed[static_cast<std::size_t>(TransportKind::kTcp)].inline_bytes = 77;
    shard.counts = {read};
    shard.rejected = 11;
    shard.waiting = 12;
    shard.in_use = 13;
    shard.budget = 14;
    shards_ = {shard, shard};
    inputs_.shards = &shards_;
    inputs_.exports = &exports_;
    inputs_.uptime = std::chrono::seconds(5);
    text_ = metrics_text(make_metrics(inputs_));
  }
  std::vector<ShardReport> shards_;
  std::vector<ExportEntry> exports_;
  StatusInputs inputs_;
  std::string text_;
};

TEST_F(MetricsText, ShardsAreSummedUp) {
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_calls_total{program=\"NFSv3\",operation=\"READ\","
                               "fabric=\"iwarp\"} 6"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_call_errors_total{program=\"NFSv3\",operation=\"READ\","
                               "fabric=\"iwarp\"} 2"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_rejected_calls_total 22"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_calls_waiting 24"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_buffer_bytes 26"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_buffer_limit_bytes 28"));
}

TEST_F(MetricsText, DurationsAreCumulativeInSeconds) {
  const std::string labels = "{program=\"NFSv3\",operation=\"READ\",fabric=\"iwarp\"";
  const std::string name = "nfs_rdma_call_duration_seconds_";
  EXPECT_THAT(text_, HasSubstr(name + "count" + labels + "} 6"));
  EXPECT_THAT(text_, HasSubstr(name + "bucket" + labels + ",le=\"1.024e-06\"} 0"));
  EXPECT_THAT(text_, HasSubstr(name + "bucket" + labels + ",le=\"2.048e-06\"} 4"));
  EXPECT_THAT(text_, HasSubstr(name + "bucket" + labels + ",le=\"0.033554432\"} 4"));
  EXPECT_THAT(text_, HasSubstr(name + "bucket" + labels + ",le=\"0.067108864\"} 6"));
  EXPECT_THAT(text_, HasSubstr(name + "bucket" + labels + ",le=\"+Inf\"} 6"));
}

TEST_F(MetricsText, BytesAreToldByFabricAndWayThoseOfClosedConnectionsToo) {
  const std::string name = "nfs_rdma_bytes_total{fabric=";
  EXPECT_THAT(text_, HasSubstr(name + "\"iwarp\",way=\"rdma_write\"} 2000"));
  EXPECT_THAT(text_, HasSubstr(name + "\"iwarp\",way=\"rdma_read\"} 400"));
  EXPECT_THAT(text_, HasSubstr(name + "\"iwarp\",way=\"inline\"} 60"));
  EXPECT_THAT(text_, HasSubstr(name + "\"tcp\",way=\"inline\"} 154"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_connections{fabric=\"iwarp\"} 2"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_connections{fabric=\"tcp\"} 0"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_credits_granted{fabric=\"iwarp\"} 128"));
  EXPECT_THAT(text_, HasSubstr("nfs_rdma_calls_in_progress{fabric=\"iwarp\"} 10"));
}

TEST_F(MetricsText, WithoutNfs4ThereIsNothingOfItsState) {
  EXPECT_THAT(text_, Not(HasSubstr("nfs_rdma_nfs4")));
  nfs4::StateReport state;
  state.courteous = 3;
  state.opens.locks = 4;
  state.refused.opens = 5;
  state.refused.locks_per_file = 6;
  state.refused.owners = 7;
  inputs_.state = &state;
  const std::string text = metrics_text(make_metrics(inputs_));
  EXPECT_THAT(text, HasSubstr("nfs_rdma_nfs4_clients{state=\"courteous\"} 3"));
  EXPECT_THAT(text, HasSubstr("nfs_rdma_nfs4_locks 4"));
  EXPECT_THAT(text, HasSubstr("nfs_rdma_nfs4_refused_total{limit=\"opens\"} 5"));
  EXPECT_THAT(text, HasSubstr("nfs_rdma_nfs4_refused_total{limit=\"locks_per_file\"} 6"));
  EXPECT_THAT(text, HasSubstr("nfs_rdma_nfs4_refused_total{limit=\"owners\"} 7"));
}

TEST_F(MetricsText, EachFamilyIsDescribedOnce) {
  std::size_t count = 0;
  const std::string line = "# TYPE nfs_rdma_bytes_total counter";
  for (std::size_t at = text_.find(line); at != std::string::npos; at = text_.find(line, at + 1))
    ++count;
  EXPECT_EQ(count, 1u);
}

std::string content(const std::string& path) {
  std::ifstream file(std::string(NFSRDMA_SOURCE_DIR) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> names_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex word("nfs_rdma_[a-z0-9_]*[a-z0-9]");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), word); at != std::sregex_iterator();
       ++at) {
    names.insert(at->str());
  }
  return names;
}

TEST_F(MetricsText, TheDashboardAsksForWhatIsTold) {
  nfs4::StateReport state;
  inputs_.state = &state;
  const std::set<std::string> told = names_in(metrics_text(make_metrics(inputs_)));
  const std::set<std::string> asked = names_in(content("config/files/nfs-rdma-grafana.json"));
  EXPECT_GT(asked.size(), 10u);
  for (const std::string& name : asked)
    EXPECT_TRUE(told.contains(name)) << name;
}

TEST_F(MetricsText, TheManPageHasEachFamily) {
  nfs4::StateReport state;
  inputs_.state = &state;
  const std::set<std::string> listed = names_in(content("man/nfs-rdmad.8"));
  for (const prometheus::MetricFamily& family : make_metrics(inputs_))
    EXPECT_TRUE(listed.contains(family.name)) << family.name;
}

}  // namespace
}  // namespace nfsrdma
