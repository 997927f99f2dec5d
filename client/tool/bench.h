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
  /// Files that the bench has not made may be written to.
  bool overwrite = false;
};

struct BenchResult {
  std::uint64_t file_bytes = 0;  // of those in the options, what the file has
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

/// Are these the first bytes of a file that a bench has made? kMostHead of them tell.
bool is_bench_data(ByteSpan head);
inline constexpr std::size_t kMostHead = 4096;

/// Runs the load. A file that is not empty is written to only if a bench has made it, or with
/// options.overwrite: one that is too short for a load that reads is read as far as it goes. On an
/// error *detail says what happened. Everything outlives the Task.
Task<Result<void>> run_load(EventLoop& loop, Fabrics fabrics, MountSettings settings,
                            const BenchOptions& options, BenchResult* result, std::string* detail);

}  // namespace nfsrdma::tool
