// SPDX-License-Identifier: Apache-2.0
// Bench: a load of one kind against a server for a time, over the asynchronous core on one loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/async_mount.h"
#include "client/tool/histogram.h"

namespace nfsrdma::tool {

enum class Load : std::uint8_t { kRead, kWrite, kRandRead, kRandWrite, kNull, kGetattr, kMeta };

struct BenchOptions {
  Load load = Load::kRead;
  std::uint64_t file_bytes = std::uint64_t{1} << 30;
  std::uint64_t block_bytes = 1 << 20;
  std::uint32_t depth = 8;  // calls under way per connection
  std::uint32_t connections = 1;
  double seconds = 10;
  bool stable = false;  // writes FILE_SYNC instead of UNSTABLE
};

struct BenchResult {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::string first_error;
  double seconds = 0;         // measured
  double cpu_seconds = 0;     // of this process, within those
  double commit_seconds = 0;  // the COMMIT behind a write load, not in the above
  Histogram latency;
  std::vector<ConnectionInfo> connections;
};

/// Runs the load. On an error *detail says what happened. Everything outlives the Task.
Task<Result<void>> run_load(EventLoop& loop, Fabrics fabrics, MountSettings settings,
                            const BenchOptions& options, BenchResult* result, std::string* detail);

}  // namespace nfsrdma::tool
