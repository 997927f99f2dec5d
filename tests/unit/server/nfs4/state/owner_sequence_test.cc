// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/owner_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace nfsrdma::nfs4 {
namespace {

using testing::ElementsAre;
using Verdict = OwnerSequence::Verdict;

constexpr std::uint32_t kOpen = 18, kClose = 4;
constexpr std::array<std::byte, 2> kFirst{std::byte{1}, std::byte{2}};
constexpr std::array<std::byte, 1> kSecond{std::byte{3}};

TEST(OwnerSequence, AFreshOwnerTakesAnyIdAndThenTheNext) {
  for (const std::uint32_t first : {0u, 1u, 77u, UINT32_MAX}) {
    OwnerSequence owner;
    EXPECT_EQ(owner.begin(first, kOpen), Verdict::kNew);
    owner.finish(true, kFirst);
    for (const std::uint32_t wrong : {first - 1, first + 2, first + 0x80000000u})
      EXPECT_EQ(owner.begin(wrong, kClose), Verdict::kBad);
    EXPECT_EQ(owner.begin(first + 1, kClose), Verdict::kNew);
  }
}

TEST(OwnerSequence, ARetryGetsTheAnswerOfTheLast) {
  OwnerSequence owner;
  EXPECT_EQ(owner.begin(5, kOpen), Verdict::kNew);
  owner.finish(true, kFirst);
  EXPECT_EQ(owner.begin(5, kOpen), Verdict::kReplay);
  EXPECT_THAT(owner.reply(), ElementsAre(std::byte{1}, std::byte{2}));
  EXPECT_EQ(owner.begin(5, kClose), Verdict::kBad) << "no retry of an OPEN";
  EXPECT_EQ(owner.begin(6, kClose), Verdict::kNew);
  owner.finish(true, kSecond);
  EXPECT_EQ(owner.begin(6, kClose), Verdict::kReplay);
  EXPECT_THAT(owner.reply(), ElementsAre(std::byte{3}));
  EXPECT_EQ(owner.begin(5, kOpen), Verdict::kBad) << "the one before is forgotten";
}

TEST(OwnerSequence, SomeErrorsLeaveTheIdUnused) {
  OwnerSequence owner;
  EXPECT_EQ(owner.begin(5, kOpen), Verdict::kNew);
  owner.finish(true, kFirst);
  EXPECT_EQ(owner.begin(6, kClose), Verdict::kNew);
  owner.finish(counts_in_sequence(10025), kSecond);
  EXPECT_EQ(owner.begin(5, kOpen), Verdict::kReplay) << "still the last one";
  EXPECT_EQ(owner.begin(6, kClose), Verdict::kNew) << "the same id again";
  owner.finish(counts_in_sequence(10013), kSecond);
  EXPECT_EQ(owner.begin(6, kClose), Verdict::kReplay);
}

TEST(OwnerSequence, TheErrorsThatDoNotCount) {
  int uncounted = 0;
  for (std::uint32_t status = 0; status < 11000; ++status)
    uncounted += counts_in_sequence(status) ? 0 : 1;
  EXPECT_EQ(uncounted, 8);
  for (const std::uint32_t status : {10018, 10019, 10020, 10022, 10023, 10025, 10026, 10036})
    EXPECT_FALSE(counts_in_sequence(status)) << status;
  EXPECT_TRUE(counts_in_sequence(0));
}

}  // namespace
}  // namespace nfsrdma::nfs4
