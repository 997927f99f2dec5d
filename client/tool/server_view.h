// SPDX-License-Identifier: Apache-2.0
// A server's status documents as numbers: what it has done since it started (ServerSample), and
// between two of them (ServerRates). For `nfs-rdma top` and `nfs-rdma clients`.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {

/// Counts by the end of their bucket in microseconds; infinity: the last bucket, which has none.
using LatencyCounts = std::map<double, std::uint64_t>;

/// The bucket's end that `share` (0..1) of all are not above; 0 when there are none.
double latency_percentile(const LatencyCounts& counts, double share);

struct ServerSample {
  struct Operation {
    std::uint64_t calls = 0;
    std::uint64_t errors = 0;
    LatencyCounts latency;
  };
  /// All connections from one address. Counters of those that ended meanwhile are gone with them.
  struct Client {
    std::set<std::string> fabrics;
    std::set<std::uint64_t> connections;  // their ids
    std::uint64_t calls = 0;
    std::uint64_t rdma_write_bytes = 0;
    std::uint64_t rdma_read_bytes = 0;
    std::uint64_t inline_bytes = 0;
    std::uint64_t credits = 0;
    std::uint64_t calls_in_progress = 0;
    LatencyCounts latency;
  };
  struct Name {
    std::string program, name, fabric;
    bool operator<(const Name& other) const {
      return std::tie(program, name, fabric) < std::tie(other.program, other.name, other.fabric);
    }
  };
  std::string version;
  std::uint64_t pid = 0;
  double uptime = 0;
  std::map<Name, Operation> operations;
  std::map<std::string, Client> clients;
  std::uint64_t connections = 0, calls = 0, calls_in_progress = 0, calls_waiting = 0;
  std::uint64_t rdma_write_bytes = 0, rdma_read_bytes = 0, inline_bytes = 0;
  std::uint64_t memory_in_use = 0, memory_budget = 0;

  static ServerSample of(const JsonValue& document);
};

/// "192.0.2.7" of "192.0.2.7:700", "2001:db8::1" of "[2001:db8::1]:700".
std::string host_of(const std::string& peer);

struct ServerRates {
  struct Line {
    std::string name;     // "NFSv3 READ", or a client's address
    std::string fabrics;  // "iwarp,tcp"
    double calls = 0;     // per second, like all that follows but where it says so
    double errors = 0;
    double p50_us = 0, p99_us = 0;
    double rdma_write_bytes = 0, rdma_read_bytes = 0, inline_bytes = 0;
    std::uint64_t connections = 0;  // now
    std::uint64_t credits = 0;      // now
    std::uint64_t calls_in_progress = 0;
  };
  std::vector<Line> operations;  // those that were called, the most frequent first
  std::vector<Line> clients;     // all, the busiest first
  Line total;

  /// `before` empty (as constructed), or of another process: since the server started. Counters
  /// that went back (a connection is gone) have not grown.
  static ServerRates between(const ServerSample& before, const ServerSample& now);
};

/// The screen of `nfs-rdma top`: at most `rows` lines of at most `columns` characters.
std::string top_text(const ServerSample& now, const ServerRates& rates, std::size_t columns,
                     std::size_t rows);

}  // namespace nfsrdma::tool
