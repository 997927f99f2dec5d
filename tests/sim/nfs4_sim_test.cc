// SPDX-License-Identifier: Apache-2.0
// Clients of NFSv4 against the real server, one seed one run (nfs4_simulation.h). Whatever happens,
// these hold: each request is run once, and a retry is answered as the first was, by the slots of
// sessions and by the sequences of minor version 0's owners; nobody gets an open or a lock that
// stands against what somebody else holds; who comes back after a restart gets what he held, and
// nobody else does; bytes that were acknowledged as stable outlive the loss of power, all others a
// restart; while a client has a delegation nobody does what it was promised that nobody does, and
// others see size and change attribute as its holder tells them, also after a restart when it has
// reclaimed it, which nobody can who lost it before; in the end nothing is left of the clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <functional>

#include "tests/sim/nfs4_simulation.h"

namespace nfsrdma::test {
namespace {

std::uint64_t environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

/// Of a struct that has nothing but counters, each.
template <typename Counts>
void add_counts(Counts* to, const Counts& more) {
  using Each = std::array<std::size_t, sizeof(Counts) / sizeof(std::size_t)>;
  auto sum = std::bit_cast<Each>(*to);
  const auto other = std::bit_cast<Each>(more);
  std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), std::plus<>());
  *to = std::bit_cast<Counts>(sum);
}

TEST(Nfs4Sim, Seeds) {
  const std::uint64_t first = environment("NFSRDMA_SIM_FIRST_SEED", 1);
  const std::uint64_t count = environment("NFSRDMA_SIM_SEEDS", 12);
  const std::uint64_t steps = environment("NFSRDMA_SIM_STEPS", 1500);
  Nfs4Simulation::Seen all;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Nfs4Simulation simulation(seed);
    simulation.traced = environment("NFSRDMA_SIM_TRACE", simulation.traced);
    const std::string problem = simulation.run(steps);
    EXPECT_TRUE(problem.empty()) << "NFSRDMA_SIM_FIRST_SEED=" << seed
                                 << " NFSRDMA_SIM_SEEDS=1 NFSRDMA_SIM_STEPS=" << steps << "\n"
                                 << problem;
    add_counts(&all, simulation.seen());
  }
  std::cout << all.ran << " requests, " << all.retried << " retries, " << all.late
            << " late duplicates, " << all.restarts << " restarts, " << all.evicted
            << " clients ended, " << all.given << " delegations, " << all.reclaimed
            << " of them reclaimed, " << all.asked << " holders asked for attributes\n";
  const SimModel::ByDelegation& by = all.by_delegation;
  std::cout << by.done << " OPENs by delegation, " << by.by_name << " of them by name, "
            << by.recalled << " when it was called back, " << by.in_grace
            << " where others wait; refused: " << by.denied << " for a share, " << by.only_read
            << " for writing, " << by.revoked << " revoked, " << by.ended << " ended, "
            << by.foreign << " another client's, " << by.other_file << " another file's\n";
  std::cout << "minor version 0: " << all.old.given << " delegations, " << all.old.recalled
            << " answers to CB_RECALL, " << all.old.returned << " given back, " << all.old.lost
            << " uses of lost ones, " << all.old.reclaimed << " reclaimed, " << all.old.kept_from_it
            << " not, since they were lost before the restart\n";
}

}  // namespace
}  // namespace nfsrdma::test
