// SPDX-License-Identifier: Apache-2.0
// FileSystem: open files whose names are removed or replaced.
#include "client/request_ends.h"
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

TEST_F(FileSystemTest, BesideOpenFilesANameThatIsKnownToBeAbsentIsNotAskedForAgain) {
  remote_.add_file("a", "old");
  remote_.add_file("b", "new");
  age(fs_->root);
  NodeRef node = opened("a");
  look("b");
  look("c");
  EXPECT_EQ(last_error_, ENOENT);
  remote_.calls.clear();
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "c")), 0);
  EXPECT_EQ(remote_.calls, (std::map<std::string, int>{{"rename", 1}}));
  // Where nothing is known, what is open may be in the way.
  fs_->root->names.clear();
  ASSERT_EQ(run(fs_->rename(me_, fs_->root, "c", fs_->root, "a")), 0);
  EXPECT_EQ(read(node, 0, 10), "old");
  close(node);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
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

/// By version 4.0 it is opened by a name.
TEST_F(FileSystemTest, AnotherNameIsLookedForWhereThereIsOneAlone) {
  remote_.by_name = true;
  remote_.add_file("a");
  remote_.add_file("single");
  age(fs_->root);
  const NodeRef node = look("a"), single = look("single");
  ASSERT_EQ(run(fs_->link(me_, node, fs_->root, "b")), 0);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_EQ(node->name, "b");
  // It would be found, if somebody went through all names.
  fs_->root->names.store("single too", single);
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "single")), 0);
  EXPECT_EQ(single->name, "");
}

class SillyNamesIn : public FileSystemTest {
 protected:
  /// A directory "d", in which an open file was removed.
  void SetUp() override {
    FileSystemTest::SetUp();
    NodeRef directory;
    const SetAttributes set;
    const std::string d = "d", f = "f";
    ASSERT_EQ(run(fs_->make(
                  me_, fs_->root, "d",
                  [&](Remote& remote) { return remote.mkdir(me_, fs_->root->handle, d, set); },
                  &directory)),
              0);
    ASSERT_EQ(run(fs_->make(
                  me_, directory, "f",
                  [&](Remote& remote) {
                    return remote.create(me_, directory->handle, f, CreateMode::kGuarded, set);
                  },
                  &file_)),
              0);
    fs_->adopt_open(*file_, me_.caller, O_RDWR);
    ASSERT_EQ(run(fs_->remove(me_, directory, "f")), 0);
  }
  void TearDown() override {
    file_.reset();
    FileSystemTest::TearDown();
  }
  NodeRef file_;
};

TEST_F(SillyNamesIn, RmdirWaitsForThemOnTheirWayOut) {
  remote_.hold("remove");
  close(file_);  // starts removing the silly name
  int result = -1;
  start(fs_->rmdir(me_, fs_->root, "d"), &result);
  EXPECT_EQ(result, -1);
  remote_.release();
  EXPECT_EQ(result, 0);
}

TEST_F(SillyNamesIn, WhoIsKilledDoesNotWaitForThem) {
  remote_.hold("remove");
  close(file_);
  Interrupt interrupt;
  int result = -1;
  start(fs_->rmdir({me_.caller, &interrupt}, fs_->root, "d"), &result);
  EXPECT_EQ(result, -1);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
}

TEST_F(FileSystemTest, AReplacedFileKeepsItsHiddenNameWhereTheRenameMayHaveRun) {
  const Error timeout{Errc::kTimedOut, EIO, "soft"};
  for (const Error& end : {kInterrupted, timeout}) {
    remote_.add_file("a", "old");
    remote_.add_file("b", "new");
    age(fs_->root);
    NodeRef node = opened("a");
    remote_.renames_end_with = end;
    EXPECT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), end.sys);
    remote_.renames_end_with.reset();
    EXPECT_EQ(read(node, 0, 10), "old");
    close(node);
    EXPECT_EQ(names(), std::vector<std::string>{"a"});
    EXPECT_EQ(read(look("a"), 0, 10), "new");
  }
}

TEST_F(FileSystemTest, ARefusedRenameLeavesNoHiddenName) {
  remote_.add_file("a", "old");
  age(fs_->root);
  NodeRef node = opened("a");
  // The server alone knows that there is no "b".
  EXPECT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), ENOENT);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  close(node);
}

TEST_F(FileSystemTest, WithoutLinksARefusedRenameLeavesTheFileToWhoHasItOpen) {
  remote_.no_links = true;
  remote_.add_file("a", "old");
  age(fs_->root);
  NodeRef node = opened("a");
  EXPECT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), ENOENT);
  EXPECT_EQ(read(node, 0, 10), "old");
  close(node);
}

/// Of a file that is being opened while its name goes.
class SillyNamesOfOpenings : public FileSystemTest {
 protected:
  void SetUp() override {
    FileSystemTest::SetUp();
    remote_.add_file("a", "data");
    remote_.add_file("b", "new");
    age(fs_->root);
    node_ = look("a");
    age(node_);
  }
  void TearDown() override {
    node_.reset();
    FileSystemTest::TearDown();
  }
  void start_open(Interrupt* interrupt = nullptr) {
    remote_.hold("access");
    start(fs_->open({me_.caller, interrupt}, node_, O_RDONLY, &keep_), &opened_);
    EXPECT_EQ(opened_, -1);
  }
  void expect_usable() {
    remote_.release();
    EXPECT_EQ(opened_, 0);
    EXPECT_EQ(read(node_, 0, 10), "data");
    close(node_, O_RDONLY);
  }

  NodeRef node_;
  int opened_ = -1;
  bool keep_ = false;
};

TEST_F(SillyNamesOfOpenings, TheNameMayBeRemoved) {
  start_open();
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  expect_usable();
  EXPECT_EQ(names(), std::vector<std::string>{"b"});
}

TEST_F(SillyNamesOfOpenings, WhatItStandsForIsAskedWhereItIsNotKnown) {
  start_open();
  fs_->root->names.forget("a");
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  expect_usable();
}

TEST_F(SillyNamesOfOpenings, TheFileMayBeReplaced) {
  start_open();
  EXPECT_EQ(run(fs_->rename(me_, fs_->root, "b", fs_->root, "a")), 0);
  expect_usable();
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(SillyNamesOfOpenings, AnotherOnesCloseIsNotTheLast) {
  const NodeRef before = opened("a");
  age(node_);
  start_open();
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  close(before);
  expect_usable();
  EXPECT_EQ(names(), std::vector<std::string>{"b"});
}

TEST_F(SillyNamesOfOpenings, OneThatFailsLeavesNone) {
  Interrupt interrupt;
  start_open(&interrupt);
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_EQ(names().size(), 2u);
  interrupt.raise();
  EXPECT_EQ(opened_, EINTR);
  EXPECT_EQ(names(), std::vector<std::string>{"b"});
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
