// SPDX-License-Identifier: Apache-2.0
// FileSystem: whose changes are seen, and which of them are our own, when times do not tell.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

class ChangeAttributeTest : public FileSystemTest {
 protected:
  void SetUp() override {
    remote_.speak_version_4();
    FileSystemTest::SetUp();
  }
  /// Closes and opens it again: has the kernel been let to keep what it had read the last time?
  bool may_keep(const NodeRef& node) {
    close(node);
    age(node);
    bool keep = false;
    EXPECT_EQ(run(fs_->open(me_, node, O_RDWR, &keep)), 0);
    EXPECT_TRUE(keep) << "who is to write waits for it";
    return std::exchange(drops_, invalidated_.size()) == invalidated_.size();
  }
  std::size_t drops_ = 0;
  int asked_for(const std::string& name) {
    const int before = remote_.calls["lookup"];
    look(name);
    return remote_.calls["lookup"] - before;
  }
  int make(const std::string& name) {
    const SetAttributes set;
    NodeRef made;
    return run(fs_->make(
        me_, fs_->root, name,
        [&](Remote& remote) { return remote.mkdir(me_, fs_->root->handle, name, set); }, &made));
  }
};

TEST_F(ChangeAttributeTest, AChangeWithinATickOfTheClockIsSeen) {
  remote_.clock_stands = true;
  auto file = remote_.add_file("a", "old");
  NodeRef node = opened("a");
  EXPECT_TRUE(may_keep(node)) << "nothing was changed";
  remote_.write_elsewhere(*file, "new");
  EXPECT_FALSE(may_keep(node));
  EXPECT_TRUE(may_keep(node)) << "it has been read anew";
}

TEST_F(ChangeAttributeTest, OwnWritesAreNoChangeOfOthers) {
  remote_.clock_stands = true;
  remote_.set_write_size(4);
  remote_.add_file("a", "........");
  NodeRef node = opened("a");
  remote_.hold();
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);  // two WRITEs at once
  remote_.release();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_TRUE(may_keep(node));
}

TEST_F(ChangeAttributeTest, OwnNamesDoNotEmptyTheCache) {
  remote_.add_file("a", "data");
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "a", fs_->root, "b")), 0);
  EXPECT_TRUE(may_keep(node));
  ASSERT_EQ(run(fs_->link(me_, node, fs_->root, "c")), 0);
  EXPECT_TRUE(may_keep(node));
}

TEST_F(ChangeAttributeTest, OwnExtendedAttributesDoNotEmptyTheCache) {
  auto file = remote_.add_file("a", "data");
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->set_xattr(me_, node, "x", "value", XattrThere::kEither)), 0);
  EXPECT_TRUE(may_keep(node));
  EXPECT_EQ(file->xattrs["x"], "value");
  std::string value;
  ASSERT_EQ(run(fs_->get_xattr(me_, node, "x", &value)), 0);
  EXPECT_EQ(value, "value");
  EXPECT_EQ(run(fs_->set_xattr(me_, node, "x", "other", XattrThere::kNo)), EEXIST);
  ASSERT_EQ(run(fs_->remove_xattr(me_, node, "x")), 0);
  EXPECT_TRUE(may_keep(node));
  EXPECT_EQ(run(fs_->get_xattr(me_, node, "x", &value)), ENODATA);
}

TEST_F(ChangeAttributeTest, OwnAttributesDoNotHideWhatOthersWrote) {
  auto file = remote_.add_file("a", "old");
  NodeRef node = opened("a");
  remote_.write_elsewhere(*file, "new");
  ASSERT_EQ(run(fs_->set_xattr(me_, node, "x", "value", XattrThere::kEither)), 0);
  EXPECT_FALSE(may_keep(node));
  remote_.write_elsewhere(*file, "two");
  SetAttributes set;
  set.mode = 0600;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_FALSE(may_keep(node));
  set.mode = 0644;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_TRUE(may_keep(node));
}

TEST_F(ChangeAttributeTest, AChangeOfOthersBeforeARenameIsSeen) {
  remote_.clock_stands = true;
  remote_.add_file("a");
  age(fs_->root);
  look("a");
  EXPECT_EQ(asked_for("theirs"), 1);
  remote_.add_directory(*remote_.root_object(), "theirs");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "a", fs_->root, "b")), 0);
  EXPECT_EQ(asked_for("theirs"), 1);
}

/// After a rename by us, what others do is seen again as soon as its attributes have come.
TEST_F(ChangeAttributeTest, AfterOwnNamesOthersAreSeen) {
  remote_.clock_stands = true;
  auto file = remote_.add_file("a", "old");
  NodeRef node = opened("a");
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "a", fs_->root, "b")), 0);
  EXPECT_TRUE(may_keep(node));
  remote_.write_elsewhere(*file, "new");
  EXPECT_FALSE(may_keep(node));
}

TEST_F(ChangeAttributeTest, ADirectoryOfOursAloneKeepsItsNames) {
  remote_.clock_stands = true;
  remote_.add_directory(*remote_.root_object(), "d");
  age(fs_->root);
  EXPECT_EQ(asked_for("d"), 1);
  ASSERT_EQ(make("mine"), 0);
  EXPECT_EQ(asked_for("d"), 0);
}

TEST_F(ChangeAttributeTest, AChangeOfOthersBeforeOursIsSeen) {
  remote_.clock_stands = true;
  age(fs_->root);
  EXPECT_EQ(asked_for("theirs"), 1);
  EXPECT_EQ(asked_for("theirs"), 0) << "it is known not to be there";
  remote_.add_directory(*remote_.root_object(), "theirs");
  ASSERT_EQ(make("mine"), 0);
  EXPECT_EQ(asked_for("theirs"), 1);
  EXPECT_EQ(last_error_, 0);
}

TEST_F(ChangeAttributeTest, WhatWasNotAtomicMayHideOthers) {
  remote_.changes_are_atomic = false;
  remote_.add_directory(*remote_.root_object(), "d");
  age(fs_->root);
  EXPECT_EQ(asked_for("d"), 1);
  ASSERT_EQ(make("mine"), 0);
  EXPECT_EQ(asked_for("d"), 1);
}

/// Also in version 3: who writes can set the time of that back, but not that of the last change.
TEST_F(FileSystemTest, DataWithAnOldTimeIsNewData) {
  auto file = remote_.add_file("a", "old");
  age(fs_->root);
  NodeRef node = opened("a");
  const timespec mtime = file->attributes.mtime;
  remote_.write_elsewhere(*file, "new");
  file->attributes.mtime = mtime;
  close(node);
  age(node);
  invalidated_.clear();
  bool keep = true;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  close(node, O_RDONLY);
}

}  // namespace
}  // namespace nfsrdma
