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

TEST_F(Paths, NoFileIsMadeWhileNothingIsNoted) {
  { PathTable table(home.path()); }
  EXPECT_FALSE(std::filesystem::exists(log()));
}

}  // namespace
}  // namespace nfsrdma::test
