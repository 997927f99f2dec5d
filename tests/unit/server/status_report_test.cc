// SPDX-License-Identifier: Apache-2.0
// Each number of the status document stands under its own name.
#include "server/status_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

using ::testing::HasSubstr;

/// No two numbers are equal, so that each can be in one place only; but every call was one of READ.
class StatusReport : public ::testing::Test {
 protected:
  StatusReport() {
    ConnectionInfo connection;
    connection.transport = TransportKind::kIwarp;
    connection.device = "iwarp";
    connection.inline_send = 101;
    connection.inline_recv = 102;
    connection.credits = 103;
    connection.ord = 104;
    connection.ird = 105;
    connection.age_seconds = 106;
    connection.crc = true;
    connection.stats = {.rdma_write_bytes = 201,
                        .rdma_read_bytes = 202,
                        .inline_bytes = 203,
                        .calls = 401,
                        .replies = 205,
                        .errors = 206};
    ShardReport shard;
    shard.connections = {connection};
    shard.latencies.resize(1);
    shard.latencies[0].add(100'000);  // below 114,688 ns
    shard.waiting = 307;
    shard.rejected = 301;
    shard.rejected_auth = 308;
    shard.outstanding = 302;
    shard.budget = 303;
    shard.in_use = 304;
    shard.arenas = 305;
    shard.exposed_regions = 306;
    Dispatcher::ProcedureStats read, unused;
    read.program = "NFS";
    read.name = "READ";
    read.calls = 401;
    read.on_workers = 402;
    unused.program = "NFS";
    unused.name = "LINK";
    shard.procedures = {read, unused};
    shards_ = {shard, shard};
    inputs_.shards = &shards_;
    inputs_.exports = &exports_;
    inputs_.uptime = std::chrono::milliseconds(1500);
    inputs_.listeners = {{"iwarp", "0.0.0.0:20049"}};
    inputs_.replies = {
        .entries = 501, .bytes = 502, .hits = 503, .misses = 504, .evicted = 505, .uncached = 506};
    inputs_.commits = {.jobs = 601, .syncs = 602, .failures = 603};
    inputs_.cached_files = 701;
    inputs_.read_page_bytes = 702;
  }
  // Of both shards together where nothing else is said.
  std::string document() const { return make_status_document(inputs_); }

  std::vector<ShardReport> shards_;
  std::vector<ExportEntry> exports_;
  StatusInputs inputs_;
};

TEST_F(StatusReport, CachesAndCommitsHaveTheirNumbers) {
  EXPECT_THAT(document(), HasSubstr("\"drc\":{\"entries\":501,\"bytes\":502,\"hits\":503,"
                                    "\"misses\":504,\"evicted\":505,\"uncached\":506}"));
  EXPECT_THAT(document(), HasSubstr("\"fsync\":{\"jobs\":601,\"syncs\":602,\"failures\":603}"));
}

TEST_F(StatusReport, ConnectionsHaveTheirNumbers) {
  const std::string text = document();
  for (const char* part :
       {"\"fabric\":\"iwarp\",\"device\":\"iwarp\"", "\"inline_send\":101,\"inline_recv\":102",
        "\"credits\":103", "\"ord\":104,\"ird\":105", "\"crc\":true",
        "\"rdma_write_bytes\":201,\"rdma_read_bytes\":202,\"inline_bytes\":203",
        "\"calls\":401,\"replies\":205,\"errors\":206", "\"age_seconds\":106"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(StatusReport, TotalsAreSumsOverTheShards) {
  const std::string text = document();
  const std::string totals = text.substr(text.find("\"totals\":"));
  for (const char* part :
       {"\"connections\":2", "\"calls\":802", "\"calls_in_progress\":604", "\"rejected\":602",
        "\"rejected_auth\":616", "\"rdma_write_bytes\":402", "\"rdma_read_bytes\":404",
        "\"inline_bytes\":406", "\"errors\":412", "\"budget\":606", "\"in_use\":608",
        "\"arenas\":610", "\"exposed_regions\":612", "\"cached_files\":701",
        "\"read_page_bytes\":702"}) {
    EXPECT_THAT(totals, HasSubstr(part));
  }
}

TEST_F(StatusReport, ShardsThatDoNotAnswerAreCounted) {
  EXPECT_THAT(document(), HasSubstr("\"silent_shards\":0,"));
  shards_[1].silent = true;
  EXPECT_THAT(document(), HasSubstr("\"silent_shards\":1,"));
}

TEST_F(StatusReport, ProceduresThatWereCalledAreListed) {
  const std::string text = document();
  EXPECT_THAT(text, HasSubstr("{\"program\":\"NFS\",\"name\":\"READ\",\"calls\":802,"
                              "\"on_workers\":804}"));
  EXPECT_EQ(text.find("LINK"), std::string::npos);
}

TEST_F(StatusReport, ExportsShowWhatIsInForce) {
  ExportEntry entry;
  entry.path = "/data";
  ExportClient client;
  client.text = "192.0.2.0/24";
  client.options.read_only = false;
  client.options.root_squash = false;
  client.options.secure = false;
  entry.clients = {client};
  exports_ = {entry};
  EXPECT_THAT(document(), HasSubstr("{\"path\":\"/data\",\"clients\":[{\"client\":\"192.0.2.0/24\","
                                    "\"access\":\"rw\",\"sync\":true,\"secure\":false,"
                                    "\"squash\":\"no_root_squash\"}]}"));
  EXPECT_THAT(document(), HasSubstr("\"uptime_seconds\":1.5,"));
  EXPECT_THAT(document(),
              HasSubstr("\"listeners\":[{\"fabric\":\"iwarp\",\"address\":\"0.0.0.0:20049\"}]"));
}

TEST_F(StatusReport, LatenciesAreBucketsWithTheirEnds) {
  EXPECT_THAT(document(), HasSubstr("\"latency_us\":[[114.688,1]]"));
  EXPECT_THAT(document(), HasSubstr("\"calls_waiting\":614"));
}

}  // namespace
}  // namespace nfsrdma
