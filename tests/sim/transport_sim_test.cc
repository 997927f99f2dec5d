// SPDX-License-Identifier: Apache-2.0
// Client and server under faults, one seed one run. Whatever fails, these hold: every call
// completes exactly once, data is whole or the call failed, nothing stays exposed, no rule of the
// fabric is broken, and when the faults are over the server answers a new connection.
//
// The sweeps fail each work request, post, registration and network event of a scenario in turn.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/support/sim_pair.h"

namespace nfsrdma::test {
namespace {

struct Workload {
  int calls = 12;
  std::uint32_t largest = 200'000;
};

/// What went wrong, or nothing.
std::string run_workload(std::uint64_t seed, const SimFaults& faults, const Workload& work) {
  std::vector<std::unique_ptr<ToyCall>> calls;  // outlive the client
  SimPair pair(seed, faults, {}, 24u << 20);
  std::mt19937_64 random(seed);
  pair.fabric.device_info().max_send_sge = 1 + random() % 8;
  pair.fabric.device_info().max_outbound_reads = 1 + random() % 16;
  pair.connect();
  constexpr std::uint32_t kProcedures[] = {kToyNull, kToyRead, kToyWrite, kToyList};
  for (int i = 0; i < work.calls; ++i) {
    const std::uint32_t size =
        static_cast<std::uint32_t>(random() % 3 == 0 ? random() % work.largest : random() % 6000);
    calls.push_back(std::make_unique<ToyCall>(++pair.last_xid, kProcedures[random() % 4], size,
                                              static_cast<std::uint32_t>(random())));
    pair.client->submit(*calls.back());
    if (random() % 4 == 0) pair.run(random() % 40);
  }
  pair.run();
  pair.network.advance(*pair.loop, std::chrono::minutes(2));
  pair.run();
  if (pair.log.closed == 0 && pair.log.ready == 0) return "neither ready nor closed";
  for (auto& call : calls) {
    if (call->completions != 1) return "completions: " + std::to_string(call->completions);
    if (call->ok && !call->good && !call->refused) return "corrupt result";
    if (!call->ok && pair.log.closed == 0 && call->error.code == Errc::kClosed) {
      return "closed without a close";
    }
  }
  if (pair.handler.bad_calls > 0) return "corrupt call";
  if (!pair.fabric.violations().empty()) return pair.fabric.violations().front();
  if (pair.fabric.exposed_regions() > 0) return "memory still exposed";
  // After the storm a new connection works.
  pair.network.faults() = {};
  pair.log = {};
  pair.client.reset();
  pair.run();
  pair.connect();
  if (!pair.call(kToyRead, 70'000).good) return "no service after the fault";
  if (!pair.call(kToyWrite, 70'000).good) return "no service after the fault";
  pair.client.reset();
  pair.run();
  if (pair.server->connection_count() != 0) return "connections left behind";
  if (pair.fabric.queue_pairs() != 0) return "queue pairs left behind";
  return "";
}

std::uint64_t environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

TEST(TransportSim, SeedsWithoutFaults) {
  const std::uint64_t first = environment("NFSRDMA_SIM_FIRST_SEED", 1);
  const std::uint64_t count = environment("NFSRDMA_SIM_SEEDS", 60);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    EXPECT_EQ(run_workload(seed, {}, {}), "") << "seed " << seed;
  }
}

TEST(TransportSim, SeedsWithACutConnection) {
  const std::uint64_t first = environment("NFSRDMA_SIM_FIRST_SEED", 1);
  const std::uint64_t count = environment("NFSRDMA_SIM_SEEDS", 100);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SimFaults faults;
    faults.cut_event = 1 + seed * 7 % 160;
    EXPECT_EQ(run_workload(seed, faults, {}), "") << "seed " << seed;
  }
}

TEST(TransportSim, EveryWorkRequestFailsOnce) {
  for (std::uint64_t n = 1; n <= 60; ++n) {
    SimFaults faults;
    faults.fail_work = n;
    EXPECT_EQ(run_workload(11, faults, {}), "") << "work request " << n;
  }
}

TEST(TransportSim, EveryPostIsPartialOnce) {
  for (std::uint64_t n = 1; n <= 50; ++n) {
    SimFaults faults;
    faults.fail_post = n;
    EXPECT_EQ(run_workload(12, faults, {}), "") << "post " << n;
  }
}

TEST(TransportSim, EveryRegistrationFailsOnce) {
  for (std::uint64_t n = 1; n <= 40; ++n) {
    SimFaults faults;
    faults.fail_register = n;
    EXPECT_EQ(run_workload(13, faults, {}), "") << "registration " << n;
  }
}

TEST(TransportSim, EveryEventCutsOnce) {
  for (std::uint64_t n = 1; n <= 150; ++n) {
    SimFaults faults;
    faults.cut_event = n;
    EXPECT_EQ(run_workload(14, faults, {}), "") << "event " << n;
  }
}

TEST(TransportSim, FailedConnectionAttemptIsReported) {
  SimFaults faults;
  faults.fail_connect = 1;
  SimPair pair(1, faults);
  pair.connect();
  EXPECT_EQ(pair.log.closed, 1);
}

}  // namespace
}  // namespace nfsrdma::test
