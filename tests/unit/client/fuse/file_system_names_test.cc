// SPDX-License-Identifier: Apache-2.0
// FileSystem: names, permissions and close-to-open.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

// --- names ---

TEST_F(FileSystemTest, AFreshNameIsAnsweredFromTheCache) {
  remote_.add_file("a");
  age(fs_->root);
  look("a");
  look("a");
  EXPECT_EQ(remote_.calls["lookup"], 1);
}

TEST_F(FileSystemTest, AnAbsentNameIsAnsweredFromTheCache) {
  look("a");
  look("a");
  EXPECT_EQ(last_error_, ENOENT);
  EXPECT_EQ(remote_.calls["lookup"], 1);
}

TEST_F(FileSystemTest, WithPositiveLookupCacheAnAbsentNameIsAskedAgain) {
  FileSystemOptions options;
  options.cache_absent_names = false;
  build(options);
  look("a");
  look("a");
  EXPECT_EQ(remote_.calls["lookup"], 2);
}

TEST_F(FileSystemTest, ACachedNameIsAskedAgainForAnotherCaller) {
  remote_.add_file("a");
  look("a");
  look("a", other_);
  EXPECT_EQ(remote_.calls["lookup"], 2);
}

TEST_F(FileSystemTest, ACallerThatMayNotSearchIsRefusedFromTheCache) {
  remote_.add_file("a");
  remote_.root_object()->denied[1000] = access_bits::kLookup;
  look("a");
  EXPECT_EQ(run(fs_->permit(other_, fs_->root, access_bits::kLookup, false)), EACCES);
  look("a", other_);
  EXPECT_EQ(last_error_, EACCES);
}

TEST_F(FileSystemTest, NamesAreForgottenWhenTheDirectoryChangedElsewhere) {
  look("a");
  remote_.add_file("a");
  age(fs_->root);
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  EXPECT_NE(look("a"), nullptr);
}

TEST_F(FileSystemTest, OwnChangesKeepTheOtherNames) {
  remote_.add_file("a");
  age(fs_->root);
  look("a");
  look("b");
  ASSERT_EQ(run(fs_->remove(me_, fs_->root, "b")), ENOENT);
  NodeRef a = look("a");
  ASSERT_EQ(run(fs_->link(me_, a, fs_->root, "c")), 0);
  const int before = remote_.calls["lookup"];
  look("a");
  look("c");
  EXPECT_EQ(remote_.calls["lookup"], before);
}

TEST_F(FileSystemTest, ALateAnswerDoesNotHideANameMadeMeanwhile) {
  int result = -1;
  NodeRef found;
  remote_.hold();
  start(fs_->lookup(me_, fs_->root, "a", &found), &result);
  // The file comes into being after the server looked, as far as the client can tell.
  fs_->root->names.forget("a");
  remote_.release();
  EXPECT_EQ(result, ENOENT);
  remote_.add_file("a");
  EXPECT_NE(look("a"), nullptr);
}

TEST_F(FileSystemTest, TheKernelKeepsNoNamesOfAPrivateDirectory) {
  remote_.root_object()->attributes.mode = 0700;
  age(fs_->root);
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  EXPECT_EQ(fs_->entry_seconds(*fs_->root), 0);
}

TEST_F(FileSystemTest, TheKernelKeepsNamesOfAPublicDirectory) {
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  EXPECT_GT(fs_->entry_seconds(*fs_->root), 0);
}

TEST_F(FileSystemTest, TheKernelKeepsNoAttributesOfASetIdFile) {
  remote_.add_file("f");
  const NodeRef node = look("f");
  EXPECT_GT(fs_->attribute_seconds(*node), 0);
  SetAttributes set;
  set.mode = 04755;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_EQ(fs_->attribute_seconds(*node), 0);
}

TEST_F(FileSystemTest, OneHandleIsOneNode) {
  NodeRef first = (remote_.add_file("a"), age(fs_->root), look("a"));
  ASSERT_EQ(run(fs_->link(me_, first, fs_->root, "b")), 0);
  EXPECT_EQ(look("b"), first);
}

TEST_F(FileSystemTest, ForgettingDropsTheNode) {
  remote_.add_file("a");
  age(fs_->root);
  const std::size_t before = fs_->nodes.alive();
  const std::uint64_t id = look("a")->id;
  fs_->nodes.forget(id, 1);
  EXPECT_EQ(fs_->nodes.find(id), nullptr);
  EXPECT_EQ(fs_->nodes.alive(), before);
}

TEST_F(FileSystemTest, UnwrittenDataKeepsAForgottenNode) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  {
    NodeRef node = look("a");
    ASSERT_EQ(write(node, 0, "data"), 0);
    fs_->nodes.forget(node->id, 1);
  }
  run(fs_->finish());
  EXPECT_EQ(file->stable_data, "data");
}

// --- permissions ---

TEST_F(FileSystemTest, OpenAsksAsTheCaller) {
  auto file = remote_.add_file("a");
  file->denied[1000] = access_bits::kRead;
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node, O_RDONLY, &keep)), EACCES);
  EXPECT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  close(node);
}

TEST_F(FileSystemTest, OpenForReadingAndWritingNeedsBothRights) {
  auto file = remote_.add_file("a");
  file->denied[1000] = access_bits::kModify;
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node, O_RDWR, &keep)), EACCES);
  EXPECT_EQ(run(fs_->open(other_, node, O_RDONLY, &keep)), 0);
  close(node);
}

TEST_F(FileSystemTest, OpenForExecutionNeedsExecuteOnly) {
  auto file = remote_.add_file("a");
  file->denied[1000] = access_bits::kRead;
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  EXPECT_EQ(run(fs_->open(other_, node, O_RDONLY | 0x20, &keep)), 0);
  close(node);
}

// --- close-to-open ---

TEST_F(FileSystemTest, OpenKeepsPagesOfAnUnchangedFile) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = false;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_TRUE(keep);
  close(node);
}

TEST_F(FileSystemTest, OpenDropsPagesOfAFileChangedElsewhere) {
  auto [file, node] = changed_elsewhere("one", "three");
  bool keep = true;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_TRUE(keep);
  EXPECT_EQ(fs_->visible(*node).size, 5u);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  close(node, O_RDONLY);
}

/// Else somebody reads by the size from before, or finds pages that are about to go.
TEST_F(FileSystemTest, NobodyReadsOrWritesWhileTheKernelDropsPages) {
  auto [file, node] = changed_elsewhere("one", "three");
  hold_kernel_ = true;
  int reader = -1, writer = -1;
  bool reader_keeps = false, writer_keeps = false;
  start(fs_->open(me_, node, O_RDONLY, &reader_keeps), &reader);
  start(fs_->open(me_, node, O_WRONLY, &writer_keeps), &writer);
  EXPECT_EQ(reader, -1);
  EXPECT_EQ(writer, -1);
  ASSERT_EQ(kernel_waits_.size(), 1u) << "a second time would be beside whoever is first";
  kernel_waits_[0]();
  EXPECT_EQ(reader, 0);
  EXPECT_TRUE(reader_keeps);
  EXPECT_EQ(writer, 0);
  EXPECT_TRUE(writer_keeps);
  close(node, O_WRONLY);
  close(node, O_RDONLY);
}

TEST_F(FileSystemTest, AFileThatIsBeingOpenedSurvivesTheRemovalOfItsName) {
  auto [file, node] = changed_elsewhere("one", "three");
  hold_kernel_ = true;
  int opened = -1;
  bool keep = false;
  start(fs_->open(me_, node, O_RDONLY, &keep), &opened);
  ASSERT_EQ(kernel_waits_.size(), 1u);
  EXPECT_EQ(run(fs_->remove(me_, fs_->root, "a")), 0);
  EXPECT_EQ(names().size(), 1u) << "by another name";
  kernel_waits_[0]();
  EXPECT_EQ(opened, 0);
  EXPECT_EQ(read(node, 0, 9), "three");
  close(node, O_RDONLY);
}

/// What came while it was waited for is dropped by the kernel itself.
TEST_F(FileSystemTest, AnOpenDoesNotWaitForOneChangeAfterAnother) {
  auto [file, node] = changed_elsewhere("one", "three");
  hold_kernel_ = true;
  int opened = -1;
  bool keep = true;
  start(fs_->open(me_, node, O_RDONLY, &keep), &opened);
  ASSERT_EQ(kernel_waits_.size(), 1u);
  remote_.write_elsewhere(*file, "seven");
  ASSERT_EQ(run(fs_->getattr(me_, node)), 0);
  kernel_waits_[0]();
  EXPECT_EQ(opened, 0);
  EXPECT_FALSE(keep);
  close(node, O_RDONLY);
}

/// The kernel must hear of it before it has pages of a write(2) under way.
TEST_F(FileSystemTest, WhoIsToWriteAFileThatGotShorterLooksItUpAgainFirst) {
  auto [file, node] = changed_elsewhere("five5", "one");
  bool keep = true;
  EXPECT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0) << "readers need not";
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), ESTALE);
  EXPECT_EQ(node->opens, 1u);
  fs_->told(*node, 0);
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), 0);
  close(node, O_WRONLY);
  remote_.write_elsewhere(*file, "longer");
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), 0) << "that does no harm";
  close(node, O_WRONLY);
  close(node, O_RDONLY);
}

TEST_F(FileSystemTest, WhoCannotLookItUpAgainIsLetInAllTheSame) {
  auto [file, node] = changed_elsewhere("five5", "one");
  bool keep = true;
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), ESTALE);
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), 0);
  EXPECT_TRUE(node->kernel_size_high) << "the next one is to try";
  close(node, O_WRONLY);
}

TEST_F(FileSystemTest, AFileThatGetsShorterAgainAndAgainCanBeOpened) {
  auto [file, node] = changed_elsewhere("12345", "1234");
  bool keep = true;
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), ESTALE);
  fs_->told(*node, 0);
  remote_.write_elsewhere(*file, "123");
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), 0) << "open(2) tries but twice";
  close(node, O_WRONLY);
  fs_->told(*node, 0);
  remote_.write_elsewhere(*file, "12");
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), ESTALE);
}

TEST_F(FileSystemTest, AnAnswerThatTheKernelOvertakesHasToldItNothing) {
  auto file = remote_.add_file("a", "five5");
  age(fs_->root);
  NodeRef node = look("a");
  bool keep = true;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  hold_kernel_ = true;
  remote_.write_elsewhere(*file, "one");
  ASSERT_EQ(run(fs_->getattr(me_, node)), 0);
  ASSERT_EQ(kernel_waits_.size(), 1u) << "its attributes go along with the data";
  fs_->told(*node, 0);
  EXPECT_TRUE(node->kernel_size_old);
  kernel_waits_[0]();
  fs_->told(*node, 0);
  EXPECT_FALSE(node->kernel_size_old);
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), ESTALE) << "it may have come too late";
  fs_->told(*node, 1);
  EXPECT_TRUE(node->kernel_size_high);
  fs_->told(*node, 0);
  EXPECT_TRUE(node->kernel_size_high) << "it is not known to have it";
  EXPECT_EQ(run(fs_->open(me_, node, O_WRONLY, &keep)), 0);
  EXPECT_FALSE(node->kernel_size_high);
  close(node, O_WRONLY);
  close(node, O_RDONLY);
}

/// Else another process that has just opened it may go by its size from before, while the kernel
/// takes the answer to the first one.
TEST_F(FileSystemTest, TheKernelKeepsNoAttributesOfWhatOthersHaveJustChanged) {
  auto [file, node] = changed_elsewhere("one", "three");
  bool keep = true;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_EQ(fs_->attribute_seconds(*node), 0);
  fs_->told(*node, 1);
  EXPECT_EQ(fs_->attribute_seconds(*node), 0);
  EXPECT_GT(node->not_kept_until, fs_->loop.now() + std::chrono::seconds(2));
  EXPECT_LE(node->not_kept_until, fs_->loop.now() + std::chrono::seconds(3));
  node->not_kept_until = fs_->loop.now();
  EXPECT_GT(fs_->attribute_seconds(*node), 0);
  SetAttributes set;
  set.size = 2;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  EXPECT_GT(fs_->attribute_seconds(*node), 0) << "it changed the size itself";
  close(node, O_RDONLY);
}

TEST_F(FileSystemTest, OpenOfAnUnchangedFileLeavesTheKernelsAttributes) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  EXPECT_TRUE(outdated_.empty());
  close(node);
}

TEST_F(FileSystemTest, OwnWritesKeepThePages) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(write(node, 0, "two"), 0);
  ASSERT_EQ(fsync(node), 0);
  close(node);
  bool keep = false;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDONLY, &keep)), 0);
  EXPECT_TRUE(keep);
  close(node);
}

TEST_F(FileSystemTest, AChangeElsewhereOfAnOpenFileInvalidatesItsPages) {
  auto file = remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  remote_.write_elsewhere(*file, "three");
  ASSERT_EQ(run(fs_->getattr(me_, node)), 0);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  close(node);
}

TEST_F(FileSystemTest, AWriteElsewhereBetweenOwnWritesIsNoticed) {
  auto file = remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = opened("a");
  remote_.write_elsewhere(*file, "three");
  ASSERT_EQ(write(node, 0, "X"), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  close(node);
}

TEST_F(FileSystemTest, AnOvertakenAnswerDoesNotBringOldAttributesBack) {
  remote_.add_file("a", "one");
  age(fs_->root);
  NodeRef node = look("a");
  const Attributes old = node->attributes;
  const std::uint64_t started = fs_->begin_request();
  ASSERT_EQ(write(node, 0, "longer"), 0);
  ASSERT_EQ(fsync(node), 0);
  fs_->apply(*node, old, started);
  EXPECT_EQ(node->attributes.size, 6u);
}

class DirectoryThatChanges : public FileSystemTest {
 protected:
  DirectoryThatChanges() {
    for (const char* name : {"a", "b", "c", "d", "e"})
      remote_.add_file(name);
    remote_.names_per_page = 2;
    remote_.directory_verifier = 7;
  }
  void TearDown() override {
    names_.clear();
    FileSystemTest::TearDown();
  }
  int list(std::uint64_t cookie) {
    return run(fs_->list(me_, fs_->root, cookie, &verifier_, true, &names_, &last_));
  }
  std::uint64_t verifier_ = 0;
  std::vector<ListedName> names_;
  bool last_ = false;
};

TEST_F(DirectoryThatChanges, IsReadOnBehindWhatTheReaderHadLast) {
  ASSERT_EQ(list(0), 0);
  ASSERT_EQ(names_.size(), 2u);
  remote_.directory_verifier = 8;
  ASSERT_EQ(list(2), 0);  // the page from the beginning ends there
  ASSERT_EQ(names_.size(), 2u);
  EXPECT_EQ(names_[0].name, "c");
  EXPECT_EQ(verifier_, 8u);
  remote_.directory_verifier = 9;
  ASSERT_EQ(list(3), 0);  // in the middle of one
  ASSERT_EQ(names_.size(), 1u);
  EXPECT_EQ(names_[0].name, "d");
  remote_.directory_verifier = 10;
  ASSERT_EQ(list(5), 0);
  EXPECT_TRUE(names_.empty());
  EXPECT_TRUE(last_);
}

TEST_F(DirectoryThatChanges, IsNotReadOnBehindACookieThatIsGone) {
  ASSERT_EQ(list(0), 0);
  remote_.directory_verifier = 8;
  EXPECT_EQ(list(99), EINVAL);
}

TEST_F(FileSystemTest, WhatALinkSaysIsAskedForOncePerStateOfIt) {
  const std::string name = "l", target = "target";
  ASSERT_TRUE(run(remote_.symlink(me_, remote_.root(), name, target)).ok());
  age(fs_->root);
  const NodeRef node = look("l");
  std::string text;
  const auto asked = [&] {
    text.clear();
    const int before = remote_.calls["readlink"];
    EXPECT_EQ(run(fs_->readlink(me_, node, &text)), 0);
    return remote_.calls["readlink"] - before;
  };
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(asked(), 0);
  EXPECT_EQ(text, "target");
  age(node);
  EXPECT_EQ(asked(), 1) << "nothing is believed that is too old";
  const auto link = remote_.root_object()->names["l"];
  link->text = "elsewhere";
  remote_.write_elsewhere(*link, "");
  age(node);
  ASSERT_EQ(run(fs_->getattr(me_, node)), 0);
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(text, "elsewhere");
  EXPECT_EQ(asked(), 0);
}

}  // namespace
}  // namespace nfsrdma
