// SPDX-License-Identifier: Apache-2.0
// FileSystem: holes, reserved space, and copies on the server.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

class FileSystemSpaceTest : public FileSystemTest {
 protected:
  int seek(const NodeRef& node, std::uint64_t offset, SeekFor what, std::uint64_t* found) {
    return run(fs_->seek(me_, node, offset, what, found));
  }
  int copy(const NodeRef& from, std::uint64_t from_offset, const NodeRef& to,
           std::uint64_t to_offset, std::uint64_t* count) {
    return run(fs_->copy(me_, from, from_offset, to, to_offset, count));
  }
};

TEST_F(FileSystemSpaceTest, SeekSeesUnwrittenData) {
  remote_.add_file("a", std::string(10, '\0'));
  age(fs_->root);
  NodeRef node = look("a");
  std::uint64_t found = 99;
  EXPECT_EQ(seek(node, 0, SeekFor::kData, &found), ENXIO);
  ASSERT_EQ(write(node, 6, "xy"), 0);
  ASSERT_EQ(seek(node, 0, SeekFor::kData, &found), 0);
  EXPECT_EQ(found, 6u);
  ASSERT_EQ(seek(node, 6, SeekFor::kHole, &found), 0);
  EXPECT_EQ(found, 8u);
}

TEST_F(FileSystemSpaceTest, AHoleIsNotFilledAgainByWhatWasWrittenBefore) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);
  ASSERT_EQ(run(fs_->change_space(me_, node, FileSystem::Space::kFreed, 2, 4)), 0);
  const std::string expected("ab\0\0\0\0gh", 8);
  EXPECT_EQ(file->data, expected);
  remote_.restart();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, expected);
  EXPECT_EQ(read(node, 0, 10), expected);
}

TEST_F(FileSystemSpaceTest, SpaceMakesAFileLongerAndAHoleDoesNot) {
  remote_.add_file("a", "abc");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(run(fs_->change_space(me_, node, FileSystem::Space::kFreed, 2, 100)), 0);
  EXPECT_EQ(fs_->visible(*node).size, 3u);
  ASSERT_EQ(run(fs_->change_space(me_, node, FileSystem::Space::kTaken, 2, 100)), 0);
  EXPECT_EQ(fs_->visible(*node).size, 102u);
}

TEST_F(FileSystemSpaceTest, ACopyHasWhatWasWrittenToEither) {
  remote_.set_write_size(4);
  remote_.add_file("from");
  auto target = remote_.add_file("to");
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  ASSERT_EQ(write(from, 0, "abcdefgh"), 0);
  ASSERT_EQ(write(to, 0, "ABCDEFGH"), 0);
  std::uint64_t count = 4;
  ASSERT_EQ(copy(from, 2, to, 1, &count), 0);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(target->data, "AcdefFGH");
  // What was written to the target before is not written again behind the copy.
  remote_.restart();
  ASSERT_EQ(fsync(to), 0);
  EXPECT_EQ(target->stable_data, "AcdefFGH");
  EXPECT_EQ(remote_.calls["read"], 0);
}

TEST_F(FileSystemSpaceTest, ACopyEndsWithItsSource) {
  remote_.add_file("from", "abc");
  auto target = remote_.add_file("to");
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  std::uint64_t count = 1000;
  ASSERT_EQ(copy(from, 1, to, 0, &count), 0);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(target->data, "bc");
  EXPECT_EQ(fs_->visible(*to).size, 2u);
  for (const std::uint64_t offset : {std::uint64_t{3}, UINT64_MAX}) {
    count = 1000;
    ASSERT_EQ(copy(from, offset, to, 0, &count), 0);
    EXPECT_EQ(count, 0u);
  }
  EXPECT_EQ(remote_.calls["copy"], 1);
}

/// A source that another client has made longer is not taken for as long as it was.
TEST_F(FileSystemSpaceTest, ACopyAsksHowLongItsSourceIs) {
  auto source = remote_.add_file("from", "abc");
  auto target = remote_.add_file("to");
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  remote_.write_elsewhere(*source, "abcdef");
  age(from);
  std::uint64_t count = 1000;
  ASSERT_EQ(copy(from, 0, to, 0, &count), 0);
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(target->data, "abcdef");
}

TEST_F(FileSystemSpaceTest, ASourceThatBecameShorterIsCopiedToItsEnd) {
  auto source = remote_.add_file("from", "abcdef");
  auto target = remote_.add_file("to");
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  remote_.write_elsewhere(*source, "xy");
  std::uint64_t count = 1000;
  ASSERT_EQ(copy(from, 0, to, 0, &count), 0);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(target->data, "xy");
  // For another reason it is no use to ask again.
  remote_.fail_copies_with = EINVAL;
  EXPECT_EQ(copy(from, 0, to, 0, &count), EINVAL);
  EXPECT_EQ(remote_.calls["copy"], 3);
}

TEST_F(FileSystemSpaceTest, WhatIsWrittenMeanwhileIsNotAskedFor) {
  remote_.add_file("from", "abc");
  auto target = remote_.add_file("to");
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  age(from);
  remote_.hold();
  int error = -1;
  std::uint64_t count = 1000;
  start(fs_->copy(me_, from, 0, to, 0, &count), &error);  // waits for GETATTR
  ASSERT_EQ(write(from, 3, "def"), 0);
  remote_.release();
  EXPECT_EQ(error, 0);
  EXPECT_EQ(target->data, "abc");
}

TEST_F(FileSystemSpaceTest, TheServerMayCopyLess) {
  remote_.add_file("from", "abcdef");
  auto target = remote_.add_file("to");
  remote_.most_of_a_copy = 4;
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  std::uint64_t count = 6;
  ASSERT_EQ(copy(from, 0, to, 0, &count), 0);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(target->data, "abcd");
}

TEST_F(FileSystemSpaceTest, WithoutTheVersionNothingIsChanged) {
  remote_.before_version_42 = true;
  remote_.add_file("a", "abc");
  auto target = remote_.add_file("b", "b");
  age(fs_->root);
  NodeRef node = look("a"), other = look("b");
  std::uint64_t found = 0, count = 2;
  EXPECT_EQ(seek(node, 0, SeekFor::kData, &found), ENOSYS);
  EXPECT_EQ(run(fs_->change_space(me_, node, FileSystem::Space::kFreed, 0, 2)), ENOSYS);
  EXPECT_EQ(copy(node, 0, other, 0, &count), ENOSYS);
  EXPECT_EQ(target->data, "b");
  EXPECT_EQ(read(node, 0, 3), "abc");
}

TEST_F(FileSystemSpaceTest, DataThatCouldNotBeWrittenIsNotCopied) {
  remote_.add_file("from", "...");
  remote_.add_file("to");
  age(fs_->root);
  NodeRef from = look("from"), to = look("to");
  ASSERT_EQ(write(from, 0, "abc"), 0);
  remote_.fail_writes_with = ENOSPC;
  std::uint64_t count = 3;
  EXPECT_EQ(copy(from, 0, to, 0, &count), ENOSPC);
  EXPECT_EQ(remote_.calls["copy"], 0);
}

}  // namespace
}  // namespace nfsrdma
