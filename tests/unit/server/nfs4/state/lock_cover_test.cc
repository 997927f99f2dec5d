// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/lock_cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

namespace nfsrdma::nfs4 {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
constexpr auto kNone = std::nullopt;
constexpr std::optional kRead = LockKind::kRead;
constexpr std::optional kWrite = LockKind::kWrite;

TEST(LockCover, WritingWinsAndNeighboursAreOne) {
  const std::vector<ByteRangeLocks::Held> held{
      {1, {10, 19}, LockKind::kRead},         {2, {15, 29}, LockKind::kRead},
      {3, {30, 39}, LockKind::kWrite},        {4, {40, 49}, LockKind::kWrite},
      {5, {60, UINT64_MAX}, LockKind::kRead},
  };
  EXPECT_THAT(cover(held, {0, UINT64_MAX}),
              ElementsAre(CoverPiece{{0, 9}, kNone}, CoverPiece{{10, 29}, kRead},
                          CoverPiece{{30, 49}, kWrite}, CoverPiece{{50, 59}, kNone},
                          CoverPiece{{60, UINT64_MAX}, kRead}));
  EXPECT_THAT(cover(held, {12, 30}),
              ElementsAre(CoverPiece{{12, 29}, kRead}, CoverPiece{{30, 30}, kWrite}));
  EXPECT_THAT(cover({}, {5, 5}), ElementsAre(CoverPiece{{5, 5}, kNone}));
}

TEST(LockCover, DifferencesGoOneWay) {
  const std::vector<CoverPiece> from{{{0, 9}, kRead}, {{10, 19}, kWrite}, {{20, 29}, kNone}};
  const std::vector<CoverPiece> to{{{0, 4}, kNone}, {{5, 29}, kRead}};
  EXPECT_THAT(raised(from, to), ElementsAre(CoverPiece{{20, 29}, kRead}));
  EXPECT_THAT(lowered(from, to),
              ElementsAre(CoverPiece{{0, 4}, kNone}, CoverPiece{{10, 19}, kRead}));
  EXPECT_THAT(raised(from, from), IsEmpty());
  // Two pieces of the old that become one of the new.
  const std::vector<CoverPiece> all{{{0, 29}, kNone}};
  EXPECT_THAT(lowered(from, all), ElementsAre(CoverPiece{{0, 19}, kNone}));
}

/// Against bytes, at the start of the file and at its last possible byte.
TEST(LockCover, AgreesWithBytes) {
  constexpr std::size_t kBytes = 10;
  std::mt19937 random(20261122);
  const auto below = [&](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  const auto stronger = [](const std::optional<LockKind>& a, const std::optional<LockKind>& b) {
    return a && (!b || (*a == LockKind::kWrite && *b == LockKind::kRead));
  };
  using Bytes = std::array<std::optional<LockKind>, kBytes>;
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t base = round % 2 == 0 ? 0 : UINT64_MAX - (kBytes - 1);
    const ByteRange all{base, base + (kBytes - 1)};
    std::array<Bytes, 2> bytes{};
    std::array<std::vector<CoverPiece>, 2> covers;
    for (int which = 0; which < 2; ++which) {
      std::vector<ByteRangeLocks::Held> held;
      for (std::size_t i = below(5); i > 0; --i) {
        const std::size_t first = below(kBytes), last = first + below(kBytes - first);
        const auto kind = below(2) == 0 ? LockKind::kRead : LockKind::kWrite;
        held.push_back({i, {base + first, base + last}, kind});
        for (std::size_t at = first; at <= last; ++at)
          if (stronger(kind, bytes[which][at])) bytes[which][at] = kind;
      }
      covers[which] = cover(held, all);
      std::uint64_t next = base;
      for (const CoverPiece& piece : covers[which]) {
        ASSERT_EQ(piece.range.first, next) << "a gap";
        for (std::uint64_t at = piece.range.first; at - base <= piece.range.last - base; ++at) {
          ASSERT_EQ(piece.kind, bytes[which][at - base]);
          if (at == UINT64_MAX) break;
        }
        next = piece.range.last + 1;
      }
      ASSERT_EQ(next, all.last + 1);
    }
    // Both differences, carried out, make the one of the other.
    Bytes changed = bytes[0];
    for (const auto& pieces : {raised(covers[0], covers[1]), lowered(covers[0], covers[1])}) {
      for (const CoverPiece& piece : pieces) {
        for (std::uint64_t at = piece.range.first - base; at <= piece.range.last - base; ++at) {
          ASSERT_NE(changed[at], piece.kind) << "named though it stays as it is";
          changed[at] = piece.kind;
        }
      }
    }
    ASSERT_EQ(changed, bytes[1]);
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4
