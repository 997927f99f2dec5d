// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <limits>
#include <map>
#include <utility>

namespace nfsrdma {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  void counter(const char* name, const char* help, double value, Labels labels = {}) {
    add(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
  }
  void gauge(const char* name, const char* help, double value, Labels labels = {}) {
    add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
  }
  void histogram(const char* name, const char* help, const LatencyHistogram<std::uint64_t>& latency,
                 Labels labels) {
    ClientMetric::Histogram& out =
        add(name, help, MetricType::Histogram, std::move(labels)).histogram;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < latency.buckets.size(); ++i) {
      seen += latency.buckets[i];
      // One bucket for a power of two is enough there, of the four that we have.
      if (i % 4 != 0) continue;
      const std::uint64_t end = LatencyBuckets::end(i);
      if (end != 0) out.bucket.push_back({seen, static_cast<double>(end) / 1e9});
    }
    out.bucket.push_back({seen, std::numeric_limits<double>::infinity()});
    out.sample_count = seen;
    out.sample_sum = static_cast<double>(latency.sum_ns) / 1e9;
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  /// Those of one family come one after the other.
  ClientMetric& add(const char* name, const char* help, MetricType type, Labels labels) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({name, help, type, {}});
    }
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }
  std::vector<MetricFamily> families_;
};

void add_calls(Families& out, const std::vector<CallCounts>& all) {
  const auto labels = [](const CallCounts& counts) {
    return Labels{{"program", std::string(counts.program)},
                  {"operation", std::string(counts.name)},
                  {"fabric", transport_name(counts.transport)}};
  };
  for (const CallCounts& counts : all) {
    out.counter("nfs_rdma_calls_total", "Calls, and operations of COMPOUNDs, answered.",
                static_cast<double>(counts.calls), labels(counts));
  }
  for (const CallCounts& counts : all) {
    out.counter("nfs_rdma_call_errors_total", "Answered with a status that is not OK.",
                static_cast<double>(counts.errors), labels(counts));
  }
  for (const CallCounts& counts : all) {
    out.histogram("nfs_rdma_call_duration_seconds",
                  "From the arrival of a call to its reply; of an operation in a COMPOUND, its own "
                  "time.",
                  counts.latency, labels(counts));
  }
}

/// All connections of one fabric.
struct OfFabric {
  TransferStats stats;
  std::size_t connections = 0;
  std::uint64_t credits = 0;
  std::uint64_t in_progress = 0;
};

std::map<std::string, OfFabric> by_fabric(const std::vector<ShardReport>& shards) {
  std::map<std::string, OfFabric> out;
  for (const ShardReport& shard : shards) {
    for (std::size_t kind = 0; kind < shard.closed.size(); ++kind) {
      if (shard.closed[kind].calls == 0 && shard.closed[kind].inline_bytes == 0) continue;
      out[transport_name(static_cast<TransportKind>(kind))].stats += shard.closed[kind];
    }
    for (const ConnectionInfo& info : shard.connections) {
      OfFabric& fabric = out[transport_name(info.transport)];
      fabric.stats += info.stats;
      ++fabric.connections;
      fabric.credits += info.credits;
      fabric.in_progress += info.calls_in_progress;
    }
  }
  return out;
}

void add_fabrics(Families& out, const std::map<std::string, OfFabric>& fabrics) {
  for (const auto& [name, fabric] : fabrics) {
    for (const auto& [way, bytes] : {std::pair{"rdma_write", fabric.stats.rdma_write_bytes},
                                     {"rdma_read", fabric.stats.rdma_read_bytes},
                                     {"inline", fabric.stats.inline_bytes}}) {
      out.counter("nfs_rdma_bytes_total", "Bytes moved, by the way that they took.",
                  static_cast<double>(bytes), {{"fabric", name}, {"way", way}});
    }
  }
  for (const auto& [name, fabric] : fabrics) {
    out.counter("nfs_rdma_transport_errors_total", "RDMA_ERROR, and messages that were none.",
                static_cast<double>(fabric.stats.errors), {{"fabric", name}});
  }
  const auto each = [&](const char* family, const char* help, auto value) {
    for (const auto& [name, fabric] : fabrics)
      out.gauge(family, help, static_cast<double>(value(fabric)), {{"fabric", name}});
  };
  each("nfs_rdma_connections", "Connections that are up.",
       [](const OfFabric& f) { return f.connections; });
  each("nfs_rdma_credits_granted", "Calls that clients may have outstanding.",
       [](const OfFabric& f) { return f.credits; });
  each("nfs_rdma_calls_in_progress", "Calls that are being served.",
       [](const OfFabric& f) { return f.in_progress; });
}

void add_memory(Families& out, const StatusInputs& inputs) {
  std::uint64_t rejected = 0;
  std::size_t waiting = 0, budget = 0, in_use = 0, exposed = 0;
  for (const ShardReport& shard : *inputs.shards) {
    rejected += shard.rejected;
    waiting += shard.waiting;
    budget += shard.budget;
    in_use += shard.in_use;
    exposed += shard.exposed_regions;
  }
  out.counter("nfs_rdma_rejected_calls_total", "Calls answered with an error of RPC.",
              static_cast<double>(rejected));
  out.gauge("nfs_rdma_calls_waiting", "Calls that wait for memory.", static_cast<double>(waiting));
  out.gauge("nfs_rdma_buffer_bytes", "Memory for messages and data that is in use.",
            static_cast<double>(in_use));
  out.gauge("nfs_rdma_buffer_limit_bytes", "How much of it there may be.",
            static_cast<double>(budget));
  out.gauge("nfs_rdma_exposed_regions", "Memory regions that a peer may reach.",
            static_cast<double>(exposed));
  out.gauge("nfs_rdma_cached_files", "Files in the descriptor cache.",
            static_cast<double>(inputs.cached_files));
  out.counter("nfs_rdma_read_page_bytes_total",
              "Data of READs that was sent from the page cache without a copy.",
              static_cast<double>(inputs.read_page_bytes));
}

void add_caches(Families& out, const StatusInputs& inputs) {
  out.gauge("nfs_rdma_reply_cache_entries", "Replies kept for clients that ask again.",
            static_cast<double>(inputs.replies.entries));
  out.counter("nfs_rdma_reply_cache_hits_total", "Calls answered from them.",
              static_cast<double>(inputs.replies.hits));
  out.counter("nfs_rdma_fsync_total", "fsync(2), each for all that waited.",
              static_cast<double>(inputs.commits.syncs));
  out.counter("nfs_rdma_fsync_failures_total", "Those that failed.",
              static_cast<double>(inputs.commits.failures));
}

void add_state(Families& out, const nfs4::StateReport& state) {
  for (const auto& [word, count] : {std::pair{"active", state.active},
                                    {"courteous", state.courteous},
                                    {"expired", state.expired},
                                    {"unconfirmed", state.unconfirmed}}) {
    out.gauge("nfs_rdma_nfs4_clients", "Clients of NFSv4.", static_cast<double>(count),
              {{"state", word}});
  }
  out.gauge("nfs_rdma_nfs4_sessions", "Sessions.", static_cast<double>(state.sessions.count));
  out.gauge("nfs_rdma_nfs4_opens", "Opens.", static_cast<double>(state.opens.opens));
  out.gauge("nfs_rdma_nfs4_locks", "Byte-range locks.", static_cast<double>(state.opens.locks));
  out.gauge("nfs_rdma_nfs4_delegations", "Delegations held.",
            static_cast<double>(state.delegations));
  out.gauge("nfs_rdma_nfs4_delegations_recalled", "Those that are being recalled.",
            static_cast<double>(state.delegations_recalled));
  out.gauge("nfs_rdma_nfs4_grace", "1 while clients may reclaim what they held.",
            state.in_grace ? 1 : 0);
  for (const auto& [word, count] : {std::pair{"clients", state.refused.clients},
                                    {"sessions", state.refused.sessions},
                                    {"opens", state.refused.opens},
                                    {"files", state.refused.files},
                                    {"locks", state.refused.locks},
                                    {"locks_per_file", state.refused.locks_per_file},
                                    {"owners", state.refused.owners},
                                    {"delegations", state.refused.delegations}}) {
    out.counter("nfs_rdma_nfs4_refused_total", "How often a limit was met.",
                static_cast<double>(count), {{"limit", word}});
  }
}

}  // namespace

std::vector<MetricFamily> make_metrics(const StatusInputs& inputs) {
  Families out;
  out.gauge("nfs_rdma_info", "1; the version is its label.", 1, {{"version", NFSRDMA_VERSION}});
  out.gauge("nfs_rdma_uptime_seconds", "Since the start.",
            std::chrono::duration<double>(inputs.uptime).count());
  out.gauge("nfs_rdma_shards_silent",
            "Threads that do not answer now: a file system hangs. Of them all is as of before.",
            static_cast<double>(silent_shards(*inputs.shards)));
  add_calls(out, sum_counts(*inputs.shards));
  add_fabrics(out, by_fabric(*inputs.shards));
  add_memory(out, inputs);
  add_caches(out, inputs);
  if (inputs.state != nullptr) add_state(out, *inputs.state);
  return out.take();
}

std::string metrics_text(const std::vector<MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace nfsrdma
