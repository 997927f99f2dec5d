// SPDX-License-Identifier: Apache-2.0
// What counting costs: nanoseconds for all that the dispatcher does for the statistics of one call
// (Dispatcher::measure), and of one operation in a COMPOUND. tests/bench/README.md puts them beside
// the processor time of a whole call.
#include <benchmark/benchmark.h>

#include <chrono>

#include "rpcrdma/base/latency_histogram.h"
#include "server/call_metrics.h"

namespace nfsrdma {
namespace {

const ProcedureRow kRows[] = {{"NULL"}, {"GETATTR"}, {"READ"}, {"WRITE"}};
const ProgramTable kTables[] = {{100003, 3, "NFSv3", kRows}};

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// The look at the clock when the call is answered, its line, its connection's.
void one_call(benchmark::State& state) {
  CallMetrics metrics(kTables);
  LatencyHistogram<std::uint32_t> connection;
  std::uint64_t before = now_ns();
  std::size_t row = 0;
  for (auto unused : state) {
    const std::uint64_t now = now_ns();
    metrics.add(row++ & 3, TransportKind::kIwarp, now - before, false);
    connection.add(now - before);
    before = now;
    benchmark::DoNotOptimize(connection);
  }
}
BENCHMARK(one_call);

/// The clock was looked at already, to learn where operations of its kind run best.
void one_operation(benchmark::State& state) {
  CallMetrics metrics(kTables);
  std::vector<OperationTime> times;
  std::uint32_t number = 3;
  for (auto unused : state) {
    times.push_back({number, 0, 1000 + number});
    metrics.add_operation(times.back(), TransportKind::kIwarp);
    if (++number == 76) {
      number = 3;
      times.clear();
    }
  }
}
BENCHMARK(one_operation);

/// In one_call above; in a READ of NFSv4 the operations have one more than without statistics, and
/// the call takes the last of theirs.
void one_look_at_the_clock(benchmark::State& state) {
  for (auto unused : state)
    benchmark::DoNotOptimize(now_ns());
}
BENCHMARK(one_look_at_the_clock);

}  // namespace
}  // namespace nfsrdma

BENCHMARK_MAIN();
