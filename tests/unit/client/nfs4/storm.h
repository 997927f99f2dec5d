// SPDX-License-Identifier: Apache-2.0
// What the storms have in common, in which a server does everything wrong at random
// (misbehaving_server_test.cc, minor0_misbehaving_server_test.cc): seeds, dice, rubbish.
//
// Seeds: NFSRDMA_SEEDS (how many, from NFSRDMA_SEED on); a failure names its seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/nfs_types.h"
#include "client/op_context.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

/// An operation that is under way, or was.
struct StormCall {
  CancelToken cancel;
  OpContext op;
  bool done = false;
  // Operations keep references to theirs:
  std::array<std::byte, 64> room;
  std::string name;
  FileLock lock;
  SetAttributes set;
  std::size_t written = 0;
};

/// `Call`: StormCall, or with more in it.
template <typename Call>
class Storm {
 protected:
  static constexpr LockOwnerId kOwners = 3;

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(dice_() % limit); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  FileLock some_lock() {
    const std::uint64_t first = below(40);
    return {1 + below(kOwners),
            one_in(2) ? LockKind::kRead : LockKind::kWrite,
            {first, first + below(20)}};
  }
  Call& new_call() {
    Call& call = *asked_.emplace_back(std::make_unique<Call>());
    call.op.cancel = &call.cancel;
    return call;
  }
  template <typename T>
  static Task<void> note(Task<Result<T>> task, Call* call) {
    [[maybe_unused]] Result<T> result = co_await std::move(task);
    call->done = true;
  }
  void cancel_one() {
    if (!asked_.empty()) asked_[below(static_cast<std::uint32_t>(asked_.size()))]->cancel.cancel();
  }
  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::count_if(asked_.begin(), asked_.end(), [](const auto& one) { return !one->done; }));
  }
  /// Cut, nonsense or too long.
  void spoil(std::vector<std::byte>& reply) {
    if (one_in(3)) {
      reply.resize(below(static_cast<std::uint32_t>(reply.size())));
    } else if (one_in(2)) {
      for (std::byte& byte : reply)
        byte = static_cast<std::byte>(dice_());
    } else {
      reply.resize(60'000);
    }
  }

  std::mt19937_64 dice_;
  std::vector<std::unique_ptr<Call>> asked_;
};

inline std::uint64_t storm_number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

template <typename Run>
void for_each_seed(Run one) {
  const LogLevel before = log_level();
  set_log_level(LogLevel::kError);  // of locks that are lost
  const std::uint64_t first = storm_number("NFSRDMA_SEED", 1);
  const std::uint64_t count = storm_number("NFSRDMA_SEEDS", 150);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    one(seed);
    if (testing::Test::HasFailure()) break;
  }
  set_log_level(before);
}

}  // namespace nfsrdma
