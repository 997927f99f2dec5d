// SPDX-License-Identifier: Apache-2.0
// CallMetrics: what one shard has answered, by procedure and transport, with latencies; and the
// operations of NFSv4 one by one. Written and read on the shard's thread alone, so that counting
// takes no lock and no atomic; who wants to know has a copy made there (Shard::report).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rpcrdma/base/latency_histogram.h"
#include "rpcrdma/connection_info.h"
#include "server/procedure.h"

namespace nfsrdma {

/// One line of a report.
struct CallCounts {
  std::string_view program;  // "NFSv3"
  std::string_view name;     // "READ"
  TransportKind transport = TransportKind::kTcp;
  std::uint64_t calls = 0;
  std::uint64_t errors = 0;  // answered with a status that is not OK
  LatencyHistogram<std::uint64_t> latency;
};

class CallMetrics {
 public:
  /// `rows`: of all procedures of all programs, in the order that add() numbers them.
  explicit CallMetrics(std::span<const ProgramTable> programs);

  void add(std::size_t row, TransportKind transport, std::uint64_t ns, bool failed) {
    count(procedures_[row], transport, ns, failed);
  }
  void add_operation(const OperationTime& operation, TransportKind transport);

  /// Those that were called at all. Operations of NFSv4 have the program "NFSv4" and their name.
  std::vector<CallCounts> report() const;

 private:
  struct Counts {
    std::uint64_t calls = 0;
    std::uint64_t errors = 0;
    LatencyHistogram<std::uint64_t> latency;
  };

  /// Of each transport, once it was used.
  using Row = std::array<std::unique_ptr<Counts>, kTransportKinds>;

  static void count(Row& row, TransportKind transport, std::uint64_t ns, bool failed) {
    std::unique_ptr<Counts>& counts = row[static_cast<std::size_t>(transport)];
    if (counts == nullptr) counts = std::make_unique<Counts>();
    ++counts->calls;
    counts->errors += failed ? 1 : 0;
    counts->latency.add(ns);
  }
  static void report_row(const Row& row, std::string_view program, std::string_view name,
                         std::vector<CallCounts>& out);

  struct Name {
    std::string_view program;
    std::string_view name;
  };
  std::vector<Name> names_;
  std::vector<Row> procedures_;
  std::vector<Row> operations_;  // by number
};

}  // namespace nfsrdma
