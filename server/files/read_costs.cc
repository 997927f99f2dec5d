// SPDX-License-Identifier: Apache-2.0
#include "server/files/read_costs.h"

#include <algorithm>
#include <limits>

namespace nfsrdma {

namespace {

/// Showing counts this many times: the pages have to be given back as well.
constexpr std::uint64_t kShowFactor = 2;
/// So many to begin with go both ways by turns, and later one in so many the way that lost.
constexpr std::uint32_t kFirst = 32;
constexpr std::uint32_t kTryOther = 256;

}  // namespace

bool ReadCosts::pages_next() {
  if (never_.load(std::memory_order_relaxed)) return false;
  const std::uint32_t asked = asked_.fetch_add(1, std::memory_order_relaxed);
  if (asked < kFirst) return asked % 2 == 1;
  const std::uint64_t copy = copy_.load(std::memory_order_relaxed);
  const std::uint64_t show = show_.load(std::memory_order_relaxed);
  const bool other = asked % kTryOther == 0;
  return (show * kShowFactor < copy) != other;
}

void ReadCosts::not_shown(std::size_t bytes) {
  note(show_, bytes, copy_.load(std::memory_order_relaxed) * std::uint64_t{bytes} / 1000);
}

void ReadCosts::note(Cost& cost, std::size_t bytes, std::uint64_t ns) {
  const auto now = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(ns * 1000 / bytes, 1, std::numeric_limits<std::uint32_t>::max()));
  const std::uint32_t before = cost.load(std::memory_order_relaxed);
  // Quickly down, slowly up, and never by much: whoever is interrupted measures too much.
  std::uint32_t next = now;
  if (before != 0 && now < before) {
    next = before - (before - now + 1) / 2;
  } else if (before != 0) {
    next = before + std::min(now - before, before) / 16;
  }
  cost.store(next, std::memory_order_relaxed);
}

}  // namespace nfsrdma
