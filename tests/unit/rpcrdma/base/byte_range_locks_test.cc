// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/byte_range_locks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

namespace nfsrdma {
namespace {

using testing::ElementsAre;
using Outcome = ByteRangeLocks::Outcome;

TEST(ByteRange, NamesBytesAsTheRfcSays) {
  EXPECT_FALSE(byte_range(0, 0));
  EXPECT_EQ(byte_range(5, 1), (ByteRange{5, 5}));
  EXPECT_EQ(byte_range(0, UINT64_MAX), (ByteRange{0, UINT64_MAX}));
  EXPECT_EQ(byte_range(7, UINT64_MAX), (ByteRange{7, UINT64_MAX}));
  EXPECT_EQ(byte_range(UINT64_MAX, UINT64_MAX), (ByteRange{UINT64_MAX, UINT64_MAX}));
  EXPECT_EQ(byte_range(1, UINT64_MAX - 1), (ByteRange{1, UINT64_MAX - 1}));
  EXPECT_FALSE(byte_range(2, UINT64_MAX - 1));
  EXPECT_FALSE(byte_range(UINT64_MAX, 1));
  EXPECT_EQ(length_of({5, 5}), 1u);
  EXPECT_EQ(length_of({7, UINT64_MAX}), UINT64_MAX);
}

TEST(ByteRangeLocks, AConflictNamesTheHolder) {
  ByteRangeLocks locks;
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {10, 19}), Outcome::kDone);
  EXPECT_EQ(locks.conflict(2, LockKind::kRead, {0, 99}), nullptr);
  const ByteRangeLocks::Held* held = locks.conflict(2, LockKind::kWrite, {19, 99});
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(*held, (ByteRangeLocks::Held{1, {10, 19}, LockKind::kRead}));
  EXPECT_EQ(locks.lock(2, LockKind::kWrite, {19, 99}), Outcome::kConflict);
  EXPECT_EQ(locks.held().size(), 1u);
  EXPECT_EQ(locks.lock(2, LockKind::kWrite, {20, 99}), Outcome::kDone);
}

TEST(ByteRangeLocks, ALimitLeavesThingsAsTheyWere) {
  ByteRangeLocks locks;
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {0, 9}), Outcome::kDone);
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {20, 29}), Outcome::kDone);
  EXPECT_EQ(locks.lock(2, LockKind::kRead, {0, 9}, 0), Outcome::kTooMany);
  EXPECT_EQ(locks.lock(1, LockKind::kWrite, {4, 5}, 1), Outcome::kTooMany);
  EXPECT_EQ(locks.unlock(1, {4, 5}, 0), Outcome::kTooMany);
  EXPECT_EQ(locks.held().size(), 2u);
  // What needs no more room is done all the same.
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {10, 19}, 0), Outcome::kDone);
  EXPECT_THAT(locks.held(), ElementsAre(ByteRangeLocks::Held{1, {0, 29}, LockKind::kRead}));
  EXPECT_EQ(locks.unlock(1, {4, 5}, 1), Outcome::kDone);
}

TEST(ByteRangeLocks, GapsAreWhatAnOwnerDoesNotHave) {
  ByteRangeLocks locks;
  EXPECT_THAT(locks.gaps(1, {0, UINT64_MAX}), ElementsAre(ByteRange{0, UINT64_MAX}));
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {10, 19}), Outcome::kDone);
  EXPECT_EQ(locks.lock(1, LockKind::kWrite, {20, 29}), Outcome::kDone);
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {40, 49}), Outcome::kDone);
  EXPECT_EQ(locks.lock(2, LockKind::kRead, {0, 9}), Outcome::kDone);
  EXPECT_THAT(locks.gaps(1, {0, 99}),
              ElementsAre(ByteRange{0, 9}, ByteRange{30, 39}, ByteRange{50, 99}));
  EXPECT_THAT(locks.gaps(1, {15, 45}), ElementsAre(ByteRange{30, 39}));
  EXPECT_THAT(locks.gaps(1, {12, 27}), ElementsAre());
  EXPECT_THAT(locks.gaps(1, {9, 10}), ElementsAre(ByteRange{9, 9}));
  EXPECT_EQ(locks.lock(1, LockKind::kRead, {80, UINT64_MAX}), Outcome::kDone);
  EXPECT_THAT(locks.gaps(1, {50, UINT64_MAX}), ElementsAre(ByteRange{50, 79}));
}

TEST(ByteRangeLocks, ReleaseTakesAllOfOneOwner) {
  ByteRangeLocks locks;
  for (LockOwnerId owner : {1, 2}) {
    EXPECT_EQ(locks.lock(owner, LockKind::kRead, {0, 9}), Outcome::kDone);
    EXPECT_EQ(locks.lock(owner, LockKind::kRead, {20, UINT64_MAX}), Outcome::kDone);
  }
  locks.release(1);
  EXPECT_FALSE(locks.holds_any(1));
  EXPECT_TRUE(locks.holds_any(2));
  locks.release(2);
  EXPECT_TRUE(locks.empty());
}

/// They are searched for by owner, so that whoever holds nothing costs nothing: 10,000 such owners
/// beside 10,000 locks would be looked for 10^8 times.
TEST(ByteRangeLocks, OwnersAreFoundAmongManyOthers) {
  constexpr LockOwnerId kOwners = 10'000;
  ByteRangeLocks locks;
  for (LockOwnerId owner = 0; owner < kOwners; ++owner)
    locks.put(2 * owner + 1, LockKind::kRead, {owner, owner});
  for (LockOwnerId owner = 0; owner <= kOwners; ++owner) {
    ASSERT_FALSE(locks.holds_any(2 * owner));
    locks.release(2 * owner);
    ASSERT_EQ(locks.gaps(2 * owner, {5, 7}), (std::vector<ByteRange>{{5, 7}}));
  }
  ASSERT_EQ(locks.held().size(), kOwners);
  for (const LockOwnerId owner : {LockOwnerId{0}, kOwners / 2, kOwners - 1}) {
    ASSERT_TRUE(locks.holds_any(2 * owner + 1));
    ASSERT_EQ(locks.gaps(2 * owner + 1, {owner, owner}), std::vector<ByteRange>());
    locks.release(2 * owner + 1);
    ASSERT_FALSE(locks.holds_any(2 * owner + 1));
  }
  ASSERT_EQ(locks.held().size(), kOwners - 3);
  EXPECT_TRUE(std::ranges::is_sorted(locks.held(), {}, &ByteRangeLocks::Held::owner));
}

// Every state that two owners can reach on four bytes, and every lock and unlock in each, against
// bytes that know who holds them.

constexpr std::size_t kBytes = 4;
/// What of `owner` at byte i: nothing, a read lock, a write lock.
using Model = std::array<std::array<std::optional<LockKind>, kBytes>, 2>;

class Exhaustive : public testing::TestWithParam<std::uint64_t> {
 protected:
  /// The model's byte `i` in the file.
  std::uint64_t at(std::size_t i) const { return GetParam() + i; }

  std::vector<ByteRangeLocks::Held> expected(const Model& model) const {
    std::vector<ByteRangeLocks::Held> out;
    for (LockOwnerId owner = 0; owner < 2; ++owner) {
      for (std::size_t i = 0; i < kBytes; ++i) {
        if (!model[owner][i]) continue;
        if (i > 0 && model[owner][i] == model[owner][i - 1]) {
          out.back().range.last = at(i);
        } else {
          out.push_back({owner, {at(i), at(i)}, *model[owner][i]});
        }
      }
    }
    return out;
  }
  ByteRangeLocks make(const Model& model) const {
    ByteRangeLocks locks;
    for (const ByteRangeLocks::Held& held : expected(model))
      EXPECT_EQ(locks.lock(held.owner, held.kind, held.range), Outcome::kDone);
    return locks;
  }
};

TEST_P(Exhaustive, EveryStepFromEveryState) {
  std::set<Model> seen{Model{}};
  std::deque<Model> todo{Model{}};
  std::size_t steps = 0;
  while (!todo.empty()) {
    const Model model = todo.front();
    todo.pop_front();
    const ByteRangeLocks start = make(model);
    ASSERT_EQ(start.held(), expected(model));
    for (std::size_t first = 0; first < kBytes; ++first) {
      for (std::size_t last = first; last < kBytes; ++last) {
        for (LockOwnerId owner = 0; owner < 2; ++owner) {
          for (const auto kind : {std::optional<LockKind>(), std::optional(LockKind::kRead),
                                  std::optional(LockKind::kWrite)}) {
            ++steps;
            bool free = true;
            Model next = model;
            for (std::size_t i = first; i <= last; ++i) {
              const auto& other = model[1 - owner][i];
              if (kind && other && (*kind == LockKind::kWrite || *other == LockKind::kWrite))
                free = false;
              next[owner][i] = kind;
            }
            ByteRangeLocks locks = start;
            const ByteRange range{at(first), at(last)};
            const Outcome outcome =
                kind ? locks.lock(owner, *kind, range) : locks.unlock(owner, range);
            ASSERT_EQ(outcome, free ? Outcome::kDone : Outcome::kConflict);
            ASSERT_EQ(locks.held(), expected(free ? next : model));
            if (free && seen.insert(next).second) todo.push_back(next);
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 1296u);  // six ways to share a byte, four bytes
  EXPECT_EQ(steps, 1296u * 10 * 2 * 3);
}

INSTANTIATE_TEST_SUITE_P(Where, Exhaustive, testing::Values(0, UINT64_MAX - (kBytes - 1)));

}  // namespace
}  // namespace nfsrdma
