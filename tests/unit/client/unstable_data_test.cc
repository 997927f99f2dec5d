// SPDX-License-Identifier: Apache-2.0
#include "client/unstable_data.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace nfsrdma {
namespace {

constexpr std::uint64_t kBefore = 1, kAfter = 2;  // verifiers of two server instances

/// Of pieces with that many bytes together.
constexpr std::size_t memory_of(std::size_t pieces, std::size_t bytes) {
  return pieces * UnstableData::kPieceMemory + bytes;
}

std::string text_of(const UnstableData::Piece& piece) {
  return std::string(as_text(piece.bytes));
}

TEST(UnstableData, CommitWithTheSameVerifierLetsGo) {
  UnstableData data;
  data.wrote(0, as_bytes("abc"), kBefore);
  EXPECT_EQ(data.memory(), memory_of(1, 3));
  data.committed(data.mark(), kBefore);
  EXPECT_TRUE(data.empty());
  EXPECT_EQ(data.memory(), 0u);
}

TEST(UnstableData, CommitWithAnotherVerifierMeansLost) {
  UnstableData data;
  data.wrote(10, as_bytes("abc"), kBefore);
  data.committed(data.mark(), kAfter);
  ASSERT_TRUE(data.has_lost());
  auto piece = data.take_lost();
  EXPECT_EQ(piece->offset, 10u);
  EXPECT_EQ(text_of(*piece), "abc");
  EXPECT_TRUE(data.empty());
}

TEST(UnstableData, WritesBehindTheMarkAreNotCovered) {
  UnstableData data;
  data.wrote(0, as_bytes("abc"), kBefore);
  const std::uint64_t mark = data.mark();
  data.wrote(10, as_bytes("def"), kBefore);
  data.committed(mark, kBefore);
  EXPECT_EQ(data.memory(), memory_of(1, 3));
  EXPECT_FALSE(data.has_lost());
}

TEST(UnstableData, NewerDataTakesTheOldersPlace) {
  UnstableData data;
  data.wrote(0, as_bytes("aaaaaa"), kBefore);
  data.wrote(2, as_bytes("bb"), kAfter);
  data.committed(data.mark(), kAfter);
  // Only what the newer data does not cover was lost.
  std::string lost;
  while (auto piece = data.take_lost())
    lost += std::to_string(piece->offset) + text_of(*piece);
  EXPECT_EQ(lost, "0aa4aa");
}

TEST(UnstableData, StableWritesForgetWhatTheyCover) {
  UnstableData data;
  data.wrote(0, as_bytes("abcd"), kBefore);
  data.forget(1, 2);
  EXPECT_EQ(data.memory(), memory_of(2, 2));
  data.forget(0, UINT64_MAX);
  EXPECT_TRUE(data.empty());
}

TEST(UnstableData, TruncationForgetsTheEnd) {
  UnstableData data;
  data.wrote(0, as_bytes("abcd"), kBefore);
  data.truncated(1);
  EXPECT_EQ(data.memory(), memory_of(1, 1));
}

TEST(UnstableData, KeepsItsOwnCopy) {
  UnstableData data;
  std::string mine = "abc";
  data.wrote(0, as_bytes(mine), kBefore);
  mine = "xyz";
  data.committed(data.mark(), kAfter);
  EXPECT_EQ(text_of(*data.take_lost()), "abc");
}

/// Cut again and again, a large piece takes no more than twice what is left of it.
TEST(UnstableData, WhatIsLeftOfAPieceHoldsNoMoreMemoryThanItNeeds) {
  constexpr std::size_t kSize = 1 << 20;
  std::string all(kSize, 'a');
  UnstableData data;
  data.wrote(0, as_bytes(all), kBefore);
  data.forget(1, kSize - 2);
  EXPECT_EQ(data.memory(), memory_of(2, 2));
  data.wrote(0, as_bytes(all), kBefore);
  for (std::size_t begin = 0; begin < kSize; begin += kSize / 16) {
    data.forget(begin, kSize / 16 - 1);
    const std::size_t pieces = 1 + 16 * (begin + kSize / 16) / kSize;
    EXPECT_LE(data.memory(), memory_of(pieces, pieces + 2 * (kSize - begin - kSize / 16)));
  }
  data.committed(data.mark(), kAfter);
  std::string lost;
  while (auto piece = data.take_lost())
    lost += text_of(*piece);
  EXPECT_EQ(lost, std::string(16, 'a'));
  EXPECT_EQ(data.memory(), 0u);
}

/// A server that loses what is not committed whenever it restarts, and a client that follows the
/// rules: afterwards the server has every byte.
TEST(UnstableData, NothingIsLostOverRandomRestarts) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 generator(seed);
    constexpr std::size_t kSize = 64;
    std::string wanted(kSize, '.'), cached(kSize, '.'), disk(kSize, '.');
    std::uint64_t verifier = 1;
    UnstableData data;
    auto maybe_restart = [&] {
      if (generator() % 4 != 0) return;
      ++verifier;
      cached = disk;
    };
    for (int step = 0; step < 30; ++step) {
      const std::size_t offset = generator() % kSize;
      const std::size_t length = 1 + generator() % (kSize - offset);
      const std::string bytes(length, static_cast<char>('a' + generator() % 26));
      wanted.replace(offset, length, bytes);
      maybe_restart();
      cached.replace(offset, length, bytes);
      data.wrote(offset, as_bytes(bytes), verifier);
    }
    while (!data.empty()) {
      const std::uint64_t mark = data.mark();
      maybe_restart();
      disk = cached;
      data.committed(mark, verifier);
      while (auto piece = data.take_lost()) {
        maybe_restart();
        cached.replace(piece->offset, piece->bytes.size(), text_of(*piece));
        data.wrote(std::move(*piece), verifier);
      }
    }
    EXPECT_EQ(disk, wanted) << "seed " << seed;
    EXPECT_EQ(data.memory(), 0u);
  }
}

}  // namespace
}  // namespace nfsrdma
