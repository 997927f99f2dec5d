// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/path_table.h"

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

constexpr InodeKey kChild{1, 20, 21, 0};

class Paths : public ::testing::Test {
 protected:
  std::string log() const { return home.path() + "/handle-paths"; }
  TemporaryDirectory home;
};

TEST_F(Paths, RemembersThePlace) {
  PathTable table(home.path());
  table.note(kChild, 10, 11, "name");
  PathTable::Place place;
  ASSERT_TRUE(table.find(kChild, &place));
  EXPECT_EQ(place.parent_inode, 10u);
  EXPECT_EQ(place.parent_birth, 11u);
  EXPECT_EQ(place.name, "name");
}

TEST_F(Paths, SameInodeOfAnotherBirthIsAnother) {
  PathTable table(home.path());
  table.note(kChild, 10, 11, "name");
  PathTable::Place place;
  EXPECT_FALSE(table.find({1, 20, 22, 0}, &place));
}

TEST_F(Paths, SurvivesARestart) {
  PathTable(home.path()).note(kChild, 10, 11, "name");
  PathTable again(home.path());
  PathTable::Place place;
  ASSERT_TRUE(again.find(kChild, &place));
  EXPECT_EQ(place.name, "name");
}

TEST_F(Paths, TheLastPlaceCounts) {
  {
    PathTable table(home.path());
    table.note(kChild, 10, 11, "old");
    table.note(kChild, 12, 13, "new");
  }
  PathTable again(home.path());
  PathTable::Place place;
  ASSERT_TRUE(again.find(kChild, &place));
  EXPECT_EQ(place.name, "new");
  EXPECT_EQ(place.parent_inode, 12u);
}

TEST_F(Paths, ATornRecordEndsTheReadingAndIsCutOff) {
  {
    PathTable table(home.path());
    table.note(kChild, 10, 11, "whole");
    table.note({1, 30, 31, 0}, 10, 11, "torn");
  }
  std::filesystem::resize_file(log(), std::filesystem::file_size(log()) - 2);
  PathTable again(home.path());
  EXPECT_EQ(again.size(), 1u);
  again.note({1, 40, 41, 0}, 10, 11, "later");
  EXPECT_EQ(PathTable(home.path()).size(), 2u);
}

TEST_F(Paths, OutdatedRecordsAreDroppedAtStart) {
  {
    PathTable table(home.path());
    for (int i = 0; i < 100; ++i)
      table.note(kChild, 10, 11, "name" + std::to_string(i));
  }
  const auto before = std::filesystem::file_size(log());
  EXPECT_EQ(PathTable(home.path()).size(), 1u);
  EXPECT_LT(std::filesystem::file_size(log()), before / 10);
}

/// A file of two names seen in turn, by whoever may look names up.
TEST_F(Paths, TheLogDoesNotGrowWithHowOftenAPlaceChanges) {
  constexpr std::size_t kSmall = 10'000;
  PathTable table(home.path(), 1000, kSmall);
  for (std::uint64_t i = 0; i < 10; ++i)
    table.note({1, 100 + i, 1, 0}, 10, 11, "other");
  const auto grown = [&] { return std::filesystem::file_size(log()); };
  for (int i = 0; i < 1000; ++i)
    table.note(kChild, 10, 11, i % 2 == 0 ? "one" : "two");
  // The thread may be at it still, which the end of the table waits for.
  for (int i = 0; i < 1'000'000 && grown() > 2 * kSmall; ++i)
    table.note(kChild, 10, 11, i % 2 == 0 ? "one" : "two");
  EXPECT_LE(grown(), 2 * kSmall);
  table.note(kChild, 10, 11, "three");
  PathTable again(home.path());
  EXPECT_EQ(again.size(), 11u);
  PathTable::Place place;
  ASSERT_TRUE(again.find(kChild, &place));
  EXPECT_EQ(place.name, "three");
}

TEST_F(Paths, OfTooManyThoseGoThatWereNotSeenForLong) {
  constexpr std::size_t kMost = 8;
  PathTable table(home.path(), kMost);
  const InodeKey directory{1, 10, 11, 0};
  table.note(directory, 1, 1, "directory");
  for (std::uint64_t i = 0; i < 20; ++i)
    table.note({1, 100 + i, 1, 0}, 10, 11, "file");
  EXPECT_EQ(table.size(), kMost);
  PathTable::Place place;
  EXPECT_FALSE(table.find({1, 100, 1, 0}, &place));
  EXPECT_TRUE(table.find({1, 119, 1, 0}, &place));
  // Without it those in it were not found either.
  EXPECT_TRUE(table.find(directory, &place));
  EXPECT_EQ(PathTable(home.path(), kMost).size(), kMost);
}

/// As where there is no room for a second one.
TEST_F(Paths, ALogThatCannotBeWrittenAnewIsGoneOnWith) {
  {
    PathTable table(home.path());
    table.note(kChild, 10, 11, "name");
    table.note({1, 30, 31, 0}, 10, 11, "torn");
  }
  std::filesystem::resize_file(log(), std::filesystem::file_size(log()) - 2);
  std::filesystem::create_directory(log() + ".new");
  { PathTable(home.path()).note({1, 40, 41, 0}, 10, 11, "later"); }
  PathTable again(home.path());
  PathTable::Place place;
  EXPECT_TRUE(again.find(kChild, &place));
  EXPECT_TRUE(again.find({1, 40, 41, 0}, &place));
}

TEST_F(Paths, WhatIsGoneIsForgotten) {
  {
    PathTable table(home.path());
    table.note(kChild, 10, 11, "name");
    table.note({1, 30, 31, 0}, 10, 11, "other");
    table.forget(kChild);
    EXPECT_EQ(table.size(), 1u);
  }
  PathTable again(home.path());
  EXPECT_EQ(again.size(), 1u);
  PathTable::Place place;
  EXPECT_FALSE(again.find(kChild, &place));
}

TEST_F(Paths, NoFileIsMadeWhileNothingIsNoted) {
  { PathTable table(home.path()); }
  EXPECT_FALSE(std::filesystem::exists(log()));
}

}  // namespace
}  // namespace nfsrdma::test
