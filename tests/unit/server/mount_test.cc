// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "server/mount/mount_list.h"
#include "server/mount/mount_program.h"

namespace nfsrdma {
namespace {

using testing::ElementsAre;

std::vector<std::string> all(const MountList& list) {
  std::vector<std::string> out;
  list.for_each([&out](const MountList::Entry& e) {
    out.push_back(e.host + ":" + e.directory);
    return true;
  });
  return out;
}

TEST(MountPath, IsNormalised) {
  EXPECT_EQ(normalise_mount_path("/a//b/./c/"), "/a/b/c");
  EXPECT_EQ(normalise_mount_path("/"), "/");
  EXPECT_EQ(normalise_mount_path("///"), "/");
}

TEST(MountPath, RelativePathsAndDotDotAreNone) {
  EXPECT_EQ(normalise_mount_path("a"), "");
  EXPECT_EQ(normalise_mount_path(""), "");
  EXPECT_EQ(normalise_mount_path("/a/../b"), "");
  EXPECT_EQ(normalise_mount_path(std::string_view("/a\0b", 4)), "");
}

TEST(MountPath, NamesThatOnlyBeginWithDotsAreNames) {
  EXPECT_EQ(normalise_mount_path("/..a/.b/..."), "/..a/.b/...");
}

TEST(MountList, KeepsOneEntryPerHostAndDirectory) {
  MountList list;
  list.add("h", "/a");
  list.add("h", "/b");
  list.add("h", "/a");
  EXPECT_THAT(all(list), ElementsAre("h:/b", "h:/a"));
}

TEST(MountList, RemovesOneOrAllOfAHost) {
  MountList list;
  list.add("h", "/a");
  list.add("h", "/b");
  list.add("i", "/a");
  list.remove("h", "/a");
  EXPECT_THAT(all(list), ElementsAre("h:/b", "i:/a"));
  list.remove_all("h");
  EXPECT_THAT(all(list), ElementsAre("i:/a"));
}

TEST(MountList, IsBounded) {
  MountList list;
  for (std::size_t i = 0; i < MountList::kMaxEntries + 10; ++i)
    list.add("h", std::to_string(i));
  EXPECT_EQ(all(list).size(), MountList::kMaxEntries);
  EXPECT_EQ(all(list).front(), "h:10");
}

TEST(MountProgram, HasTheSixProceduresOfVersion3) {
  const ProgramTable table = mount3_program();
  EXPECT_EQ(table.program, 100005u);
  EXPECT_EQ(table.version, 3u);
  ASSERT_EQ(table.procedures.size(), 6u);
  for (const ProcedureRow& row : table.procedures)
    EXPECT_NE(row.run, nullptr);
}

}  // namespace
}  // namespace nfsrdma
