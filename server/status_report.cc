// SPDX-License-Identifier: Apache-2.0
#include "server/status_report.h"

#include <unistd.h>

#include <fstream>
#include <map>
#include <tuple>

#include "rpcrdma/connection_json.h"

namespace nfsrdma {

namespace {

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string_view squash_word(const ExportOptions& options) {
  return options.all_squash ? "all_squash" : options.root_squash ? "root_squash" : "no_root_squash";
}

void write_exports(JsonWriter& json, const std::vector<ExportEntry>& exports) {
  json.begin_array();
  for (const ExportEntry& entry : exports) {
    json.begin_object();
    json.field("path", entry.path);
    json.key("clients");
    json.begin_array();
    for (const ExportClient& client : entry.clients) {
      json.begin_object();
      json.field("client", client.text);
      json.field("access", client.options.read_only ? "ro" : "rw");
      json.field("sync", client.options.sync);
      json.field("secure", client.options.secure);
      json.field("squash", squash_word(client.options));
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_totals(JsonWriter& json, const StatusInputs& inputs) {
  TransferStats sum;
  std::size_t connections = 0, outstanding = 0;
  std::uint64_t rejected = 0, rejected_auth = 0;
  std::size_t waiting = 0;
  for (const ShardReport& shard : *inputs.shards) {
    for (const TransferStats& stats : shard.closed)
      sum += stats;
    for (const ConnectionInfo& info : shard.connections)
      sum += info.stats;
    connections += shard.connections.size();
    outstanding += shard.outstanding;
    rejected += shard.rejected;
    rejected_auth += shard.rejected_auth;
    waiting += shard.waiting;
  }
  json.begin_object();
  json.field("connections", connections);
  // Since the start, those of closed connections too:
  json.field("calls", sum.calls);
  json.field("rdma_write_bytes", sum.rdma_write_bytes);
  json.field("rdma_read_bytes", sum.rdma_read_bytes);
  json.field("inline_bytes", sum.inline_bytes);
  json.field("errors", sum.errors);
  json.field("calls_in_progress", outstanding);
  json.field("calls_waiting", waiting);
  json.field("rejected", rejected);
  json.field("rejected_auth", rejected_auth);  // of them, for their credentials
  json.field("read_page_bytes", inputs.read_page_bytes);
  json.end_object();
}

void write_memory(JsonWriter& json, const StatusInputs& inputs) {
  std::size_t budget = 0, in_use = 0, arenas = 0, exposed_regions = 0;
  for (const ShardReport& shard : *inputs.shards) {
    budget += shard.budget;
    in_use += shard.in_use;
    arenas += shard.arenas;
    exposed_regions += shard.exposed_regions;
  }
  json.begin_object();
  json.field("budget", budget);
  json.field("in_use", in_use);
  json.field("arenas", arenas);
  json.field("exposed_regions", exposed_regions);
  json.field("resident", resident_bytes());
  json.field("cached_files", inputs.cached_files);
  json.end_object();
}

/// As pairs of a bucket's end in microseconds and a count; empty buckets are left out. The last
/// bucket has no end: null.
template <typename Count>
void write_latency(JsonWriter& json, const LatencyHistogram<Count>& latency) {
  json.begin_array();
  for (std::size_t i = 0; i < latency.buckets.size(); ++i) {
    if (latency.buckets[i] == 0) continue;
    json.begin_array();
    if (const std::uint64_t end = LatencyBuckets::end(i); end != 0) {
      json.value(static_cast<double>(end) / 1000);
    } else {
      json.null();
    }
    json.value(latency.buckets[i]);
    json.end_array();
  }
  json.end_array();
}

/// By program, name and transport, of all shards together.
void write_operations(JsonWriter& json, const std::vector<ShardReport>& shards) {
  json.begin_array();
  for (const CallCounts& counts : sum_counts(shards)) {
    json.begin_object();
    json.field("program", counts.program);
    json.field("name", counts.name);
    json.field("fabric", transport_name(counts.transport));
    json.field("calls", counts.calls);
    json.field("errors", counts.errors);
    json.field("seconds", static_cast<double>(counts.latency.sum_ns) / 1e9);
    json.key("latency_us");
    write_latency(json, counts.latency);
    json.end_object();
  }
  json.end_array();
}

void write_procedures(JsonWriter& json, const std::vector<ShardReport>& shards) {
  struct Sum {
    std::uint64_t calls = 0;
    std::uint64_t on_workers = 0;
  };
  std::map<std::pair<std::string_view, std::string_view>, Sum> sums;
  for (const ShardReport& shard : shards) {
    for (const Dispatcher::ProcedureStats& row : shard.procedures) {
      Sum& sum = sums[{row.program, row.name}];
      sum.calls += row.calls;
      sum.on_workers += row.on_workers;
    }
  }
  json.begin_array();
  for (const auto& [name, sum] : sums) {
    if (sum.calls == 0) continue;
    json.begin_object();
    json.field("program", name.first);
    json.field("name", name.second);
    json.field("calls", sum.calls);
    json.field("on_workers", sum.on_workers);
    json.end_object();
  }
  json.end_array();
}

void write_caches(JsonWriter& json, const StatusInputs& inputs) {
  json.key("drc");
  json.begin_object();
  json.field("entries", inputs.replies.entries);
  json.field("bytes", inputs.replies.bytes);
  json.field("hits", inputs.replies.hits);
  json.field("misses", inputs.replies.misses);
  json.field("evicted", inputs.replies.evicted);
  json.field("uncached", inputs.replies.uncached);
  json.end_object();
  json.key("fsync");
  json.begin_object();
  json.field("jobs", inputs.commits.jobs);
  json.field("syncs", inputs.commits.syncs);
  json.field("failures", inputs.commits.failures);
  json.end_object();
}

}  // namespace

std::size_t silent_shards(const std::vector<ShardReport>& shards) {
  return static_cast<std::size_t>(std::ranges::count_if(shards, &ShardReport::silent));
}

std::vector<CallCounts> sum_counts(const std::vector<ShardReport>& shards) {
  std::map<std::tuple<std::string_view, std::string_view, TransportKind>, CallCounts> sums;
  for (const ShardReport& shard : shards) {
    for (const CallCounts& counts : shard.counts) {
      auto [place, fresh] =
          sums.try_emplace({counts.program, counts.name, counts.transport}, counts);
      if (fresh) continue;
      place->second.calls += counts.calls;
      place->second.errors += counts.errors;
      place->second.latency += counts.latency;
    }
  }
  std::vector<CallCounts> out;
  out.reserve(sums.size());
  for (auto& [key, counts] : sums)
    out.push_back(std::move(counts));
  return out;
}

std::string make_status_document(const StatusInputs& inputs) {
  JsonWriter json;
  json.begin_object();
  json.field("version", kStatusVersion);
  json.field("server", NFSRDMA_VERSION);
  json.field("pid", ::getpid());
  json.field("uptime_seconds", std::chrono::duration<double>(inputs.uptime).count());
  json.key("listeners");
  json.begin_array();
  for (const auto& [transport, address] : inputs.listeners) {
    json.begin_object();
    json.field("fabric", transport);
    json.field("address", address);
    json.end_object();
  }
  json.end_array();
  json.key("exports");
  write_exports(json, *inputs.exports);
  json.key("connections");
  json.begin_array();
  for (std::size_t s = 0; s < inputs.shards->size(); ++s) {
    const ShardReport& shard = (*inputs.shards)[s];
    for (std::size_t i = 0; i < shard.connections.size(); ++i) {
      write_connection(json, shard.connections[i], {}, [&](JsonWriter& more) {
        more.key("latency_us");
        write_latency(more, shard.latencies[i]);
      });
    }
  }
  json.end_array();
  json.field("silent_shards", silent_shards(*inputs.shards));
  json.key("totals");
  write_totals(json, inputs);
  json.key("memory");
  write_memory(json, inputs);
  write_caches(json, inputs);
  json.key("procedures");
  write_procedures(json, *inputs.shards);
  json.key("operations");
  write_operations(json, *inputs.shards);
  if (inputs.state != nullptr) {
    json.key("nfs4");
    nfs4::write_state(json, *inputs.state);
  }
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma
