// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/share_reservations.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <set>

namespace nfsrdma::nfs4 {
namespace {

constexpr Share kReadOnly{kShareRead, 0};
constexpr Share kReadWrite{kShareRead | kShareWrite, 0};
using Downgrade = ShareReservations::Downgrade;

TEST(ShareReservations, DenyStopsWhoeverComesLater) {
  ShareReservations file;
  EXPECT_TRUE(file.open(1, {kShareRead, kShareWrite}));
  EXPECT_FALSE(file.open(2, kReadWrite));
  EXPECT_TRUE(file.open(2, kReadOnly));
  EXPECT_FALSE(file.open(1, kReadWrite)) << "its own denial";
  EXPECT_EQ(file.share(1), (Share{kShareRead, kShareWrite}));
  EXPECT_FALSE(file.open(1, {kShareRead, kShareRead})) << "what it does itself";
  // Denying what another one does.
  EXPECT_FALSE(file.open(3, {kShareRead, kShareRead}));
  EXPECT_EQ(file.share(3), Share{});
}

TEST(ShareReservations, DenyStopsThoseWithoutAnOpen) {
  ShareReservations file;
  EXPECT_TRUE(file.allows(3));
  EXPECT_TRUE(file.open(1, {kShareRead, kShareWrite}));
  EXPECT_TRUE(file.allows(kShareRead));
  EXPECT_FALSE(file.allows(kShareWrite));
  EXPECT_FALSE(file.allows(3));
  file.close(1);
  EXPECT_TRUE(file.allows(3));
  EXPECT_TRUE(file.empty());
}

TEST(ShareReservations, DowngradeOnlyToWhatWasOpened) {
  ShareReservations file;
  EXPECT_TRUE(file.open(1, kReadWrite));
  EXPECT_EQ(file.downgrade(1, kReadOnly), Downgrade::kInvalid) << "never opened so";
  EXPECT_TRUE(file.open(1, kReadOnly));
  EXPECT_EQ(file.downgrade(1, {kShareRead, kShareRead}), Downgrade::kInvalid);
  EXPECT_EQ(file.downgrade(1, {0, 0}), Downgrade::kInvalid);
  EXPECT_EQ(file.downgrade(1, kReadOnly), Downgrade::kDone);
  EXPECT_EQ(file.share(1), kReadOnly);
  EXPECT_EQ(file.downgrade(1, kReadWrite), Downgrade::kInvalid) << "no way back";
}

TEST(ShareReservations, UndoTakesBackOneOpenAndNoOther) {
  ShareReservations file;
  EXPECT_TRUE(file.open(1, kReadOnly));
  EXPECT_TRUE(file.open(1, kReadWrite));
  EXPECT_TRUE(file.undo(1, kReadWrite));
  EXPECT_EQ(file.share(1), kReadOnly);
  EXPECT_EQ(file.downgrade(1, kReadWrite), Downgrade::kInvalid) << "nobody has it open so";
  // The same twice, of which one counts.
  EXPECT_TRUE(file.open(1, kReadWrite));
  EXPECT_TRUE(file.open(1, kReadWrite));
  EXPECT_TRUE(file.undo(1, kReadWrite));
  EXPECT_EQ(file.share(1), kReadWrite);
  // What was given up meanwhile does not come back, nor does it go twice.
  EXPECT_EQ(file.downgrade(1, kReadOnly), Downgrade::kDone);
  EXPECT_TRUE(file.undo(1, kReadWrite));
  EXPECT_EQ(file.share(1), kReadOnly);
  EXPECT_FALSE(file.undo(1, kReadOnly));
  EXPECT_TRUE(file.empty());
  EXPECT_FALSE(file.undo(1, kReadOnly));
}

TEST(ShareReservations, MoreOpensThanAreCountedAreNotCountedBack) {
  ShareReservations file;
  for (int i = 0; i < 70000; ++i)
    ASSERT_TRUE(file.open(1, kReadOnly));
  for (int i = 0; i < 70000; ++i)
    ASSERT_TRUE(file.undo(1, kReadOnly));
  EXPECT_EQ(file.share(1), kReadOnly);
  file.close(1);
  EXPECT_TRUE(file.empty());
}

/// One client with very many owners must not hold up the others: each question is one step, or this
/// does not end.
TEST(ShareReservations, ManyOpensAreNotWalkedForEachQuestion) {
  constexpr OpenId kMany = 200'000;
  ShareReservations file;
  for (OpenId id = 0; id < kMany; ++id) {
    ASSERT_TRUE(file.open(id, id == 0 ? Share{kShareRead, kShareWrite} : kReadOnly));
    ASSERT_TRUE(file.allows(kShareRead));
    ASSERT_FALSE(file.allows(kShareWrite));
    ASSERT_TRUE(file.allows(kShareWrite, 0));
    ASSERT_FALSE(file.open(kMany, kReadWrite));
    ASSERT_EQ(file.share(id / 2).access, kShareRead);
    ASSERT_EQ(file.together(), (Share{kShareRead, kShareWrite}));
  }
  for (OpenId id = 0; id < kMany; ++id) {
    if (id % 2 == 0) {
      file.close(id);
    } else {
      ASSERT_FALSE(file.undo(id, kReadOnly));
    }
    ASSERT_TRUE(file.allows(3));
  }
  EXPECT_TRUE(file.empty());
  EXPECT_EQ(file.together(), Share{});
}

// Two owners, every sequence of opens, downgrades and closes as far as new states come of it,
// against sets of opens.

using Opens = std::set<std::pair<int, int>>;  // access, deny of each OPEN in effect

Share sum_of(const Opens& opens) {
  Share sum;
  for (const auto& [access, deny] : opens) {
    sum.access |= static_cast<std::uint8_t>(access);
    sum.deny |= static_cast<std::uint8_t>(deny);
  }
  return sum;
}

/// Is there a subset of `opens` that makes up `share`? By all sums that subsets have.
bool some_subset(const Opens& opens, const Share& share) {
  std::array<std::array<bool, 4>, 4> reached{};
  for (const auto& [access, deny] : opens) {
    auto next = reached;
    next[access][deny] = true;
    for (int a = 0; a < 4; ++a) {
      for (int d = 0; d < 4; ++d) {
        if (reached[a][d]) next[a | access][d | deny] = true;
      }
    }
    reached = next;
  }
  return reached[share.access][share.deny];
}

struct Step {
  enum class What { kOpen, kDowngrade, kClose } what;
  OpenId id;
  Share share;
};

TEST(ShareReservations, EveryStepFromEveryStateOfTwo) {
  using Model = std::array<Opens, 2>;
  std::vector<Step> steps;
  for (OpenId id = 0; id < 2; ++id) {
    for (int access = 1; access <= 3; ++access) {
      for (int deny = 0; deny <= 3; ++deny) {
        const Share share{static_cast<std::uint8_t>(access), static_cast<std::uint8_t>(deny)};
        steps.push_back({Step::What::kOpen, id, share});
        steps.push_back({Step::What::kDowngrade, id, share});
      }
    }
    steps.push_back({Step::What::kClose, id, {}});
  }
  std::set<Model> seen{Model{}};
  std::deque<std::pair<Model, ShareReservations>> todo{{Model{}, ShareReservations()}};
  while (!todo.empty()) {
    const auto [model, start] = todo.front();
    todo.pop_front();
    for (const Step& step : steps) {
      Model next = model;
      ShareReservations file = start;
      Opens& own = next[step.id];
      Share there = sum_of(model[0]);
      there.access |= sum_of(model[1]).access;
      there.deny |= sum_of(model[1]).deny;
      if (step.what == Step::What::kOpen) {
        const bool free =
            (step.share.access & there.deny) == 0 && (step.share.deny & there.access) == 0;
        ASSERT_EQ(file.open(step.id, step.share), free);
        if (free) own.insert({step.share.access, step.share.deny});
      } else if (step.what == Step::What::kDowngrade) {
        if (own.empty()) continue;
        const bool good = some_subset(own, step.share);
        ASSERT_EQ(file.downgrade(step.id, step.share) == Downgrade::kDone, good);
        if (good) {
          std::erase_if(own, [&step](const auto& open) {
            return (open.first & ~step.share.access) != 0 || (open.second & ~step.share.deny) != 0;
          });
        }
      } else {
        file.close(step.id);
        own.clear();
      }
      Share both;
      for (OpenId id = 0; id < 2; ++id) {
        ASSERT_EQ(file.share(id), sum_of(next[id]));
        both.access |= sum_of(next[id]).access;
        both.deny |= sum_of(next[id]).deny;
      }
      ASSERT_EQ(file.together(), both);
      for (std::uint8_t access = 1; access <= 3; ++access) {
        ASSERT_EQ(file.allows(access), (both.deny & access) == 0);
        for (OpenId id = 0; id < 2; ++id)
          ASSERT_EQ(file.allows(access, id), (sum_of(next[1 - id]).deny & access) == 0);
      }
      if (seen.insert(next).second) todo.emplace_back(next, file);
    }
  }
  EXPECT_EQ(seen.size(), 130u);
}

}  // namespace
}  // namespace nfsrdma::nfs4
