// SPDX-License-Identifier: Apache-2.0
// FileSystem: open files whose names are removed or replaced.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

// --- silly names ---

TEST_F(FileSystemTest, AnOpenFileKeepsWorkingWhenItsNameIsRemoved) {
  remote_.add_file("a", "data");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  look("a");
  EXPECT_EQ(last_error_, ENOENT);
  EXPECT_EQ(read(node, 0, 10), "data");
  ASSERT_EQ(names().size(), 1u);
  EXPECT_EQ(names()[0].substr(0, 4), ".nfs");
  close(node);
  EXPECT_TRUE(names().empty());
}

TEST_F(FileSystemTest, AnOpenFileKeepsWorkingWhenItIsReplaced) {
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  EXPECT_EQ(read(node, 0, 10), "old");
  EXPECT_EQ(read(look("a"), 0, 10), "new");
  close(node);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileSystemTest, AReplacedNameIsNeverAbsent) {
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  ASSERT_EQ(remote_.log.size(), 2u);
  EXPECT_EQ(remote_.log[0].substr(0, 9), "link .nfs");
  EXPECT_EQ(remote_.log[1], "rename b a");
  close(node);
}

TEST_F(FileSystemTest, WithoutLinksAReplacedOpenFileIsMovedAway) {
  remote_.no_links = true;
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  EXPECT_EQ(read(node, 0, 10), "old");
  close(node);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(FileSystemTest, AClosedFileIsRemovedAtOnce) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  close(node);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_TRUE(names().empty());
}

TEST_F(FileSystemTest, TheSillyNameOfAnOpenFileIsBusy) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, names()[0])), EBUSY);
  close(node);
}

TEST_F(FileSystemTest, WhoIsKilledWhileAnOpenFileIsRemovedLeavesNoSillyName) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  remote_.hold();
  Interrupt interrupt;
  int result = -1;
  start(fs_->remove({me_.caller, &interrupt}, fs_->root, "a"), &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  remote_.release();
  ASSERT_EQ(names().size(), 1u);
  EXPECT_EQ(names()[0].substr(0, 4), ".nfs");
  close(node);
  EXPECT_TRUE(names().empty());
}

TEST_F(FileSystemTest, RmdirWaitsForSillyNamesOnTheirWayOut) {
  NodeRef directory;
  const SetAttributes set;
  const std::string d = "d", f = "f";
  ASSERT_EQ(run(fs_->make(
                me_, fs_->root, "d",
                [&](Remote& remote) { return remote.mkdir(me_, fs_->root->handle, d, set); },
                &directory)),
            0);
  NodeRef file;
  ASSERT_EQ(run(fs_->make(
                me_, directory, "f",
                [&](Remote& remote) {
                  return remote.create(me_, directory->handle, f, CreateMode::kGuarded, set);
                },
                &file)),
            0);
  fs_->adopt_open(*file, me_.caller, O_RDWR);
  ASSERT_EQ(run(fs_->remove(me_, directory, "f")), 0);
  remote_.hold();
  close(file);  // starts removing the silly name
  int result = -1;
  start(fs_->rmdir(me_, fs_->root, "d"), &result);
  remote_.release();
  EXPECT_EQ(result, 0);
}

TEST_F(FileSystemTest, RenamingAFileOntoItsOwnLinkHidesNothing) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->link(me_, node, fs_->root, "b")), 0);
  remote_.log.clear();
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "a", fs_->root, "b")), 0);
  EXPECT_EQ(remote_.log, std::vector<std::string>{"rename a b"});
  close(node);
}

}  // namespace
}  // namespace nfsrdma
