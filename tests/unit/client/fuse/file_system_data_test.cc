// SPDX-License-Identifier: Apache-2.0
// FileSystem: data.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

// --- data ---

TEST_F(FileSystemTest, ASmallFileIsFlushedByOneStableWrite) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  ASSERT_EQ(write(node, 3, "def"), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(remote_.log, std::vector<std::string>{"write 0+6 as 0 sync"});
  EXPECT_EQ(file->stable_data, "abcdef");
  EXPECT_EQ(remote_.calls["commit"], 0);
}

TEST_F(FileSystemTest, LargerFilesAreWrittenUnstableAndCommittedOnce) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefghij"), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(remote_.calls["write"], 3);
  EXPECT_EQ(remote_.calls["commit"], 1);
  EXPECT_EQ(file->stable_data, "abcdefghij");
}

TEST_F(FileSystemTest, UncommittedDataSurvivesARestartOfTheServer) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);  // two whole WRITEs leave at once
  ASSERT_EQ(remote_.calls["write"], 2);
  remote_.restart();
  ASSERT_EQ(file->data, "");
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "abcdefgh");
}

TEST_F(FileSystemTest, TheLastCloseWritesBack) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  opened("a");
  write(node, 0, "abc");
  close(node);
  EXPECT_EQ(file->stable_data, "");
  close(node);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, AWriteErrorIsReportedOnceAtFsync) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.fail_writes_with = ENOSPC;
  ASSERT_EQ(write(node, 0, "abc"), 0);
  EXPECT_EQ(fsync(node), ENOSPC);
  remote_.fail_writes_with = 0;
  EXPECT_EQ(fsync(node), 0);
}

TEST_F(FileSystemTest, AWriteErrorIsToldToAllWhoHaveTheFileOpen) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  FileWriter& writer = fs_->writer_of(*node);
  std::uint64_t first = writer.errors_told(), second = writer.errors_told();
  remote_.fail_writes_with = ENOSPC;
  ASSERT_EQ(write(node, 0, "abc"), 0);
  EXPECT_EQ(run(writer.flush(me_, node, true)), 0);
  EXPECT_EQ(writer.lost(), ENOSPC);
  // Who opens it before anybody was told has to do it.
  std::uint64_t third = writer.errors_told();
  EXPECT_EQ(writer.take_error(&first), ENOSPC);
  EXPECT_EQ(writer.take_error(&first), 0);
  EXPECT_EQ(writer.lost(), 0);
  std::uint64_t later = writer.errors_told();
  EXPECT_EQ(writer.take_error(&later), 0);
  EXPECT_EQ(writer.take_error(&second), ENOSPC);
  EXPECT_EQ(writer.take_error(&third), ENOSPC);
  // And the next one.
  remote_.fail_writes_with = EDQUOT;
  ASSERT_EQ(write(node, 0, "abc"), 0);
  EXPECT_EQ(run(writer.flush(me_, node, true)), 0);
  for (std::uint64_t* const told : {&first, &second, &third, &later})
    EXPECT_EQ(writer.take_error(told), EDQUOT);
  remote_.fail_writes_with = 0;
}

TEST_F(FileSystemTest, WhatTheServerRefusedIsNotReadFromTheKernelsPages) {
  remote_.add_file("a", "......");
  age(fs_->root);
  NodeRef node = opened("a");
  const std::uint64_t outdated = node->pages_outdated;
  remote_.fail_writes_with = ENOSPC;
  ASSERT_EQ(write(node, 2, "ab"), 0);
  EXPECT_EQ(fsync(node), ENOSPC);
  EXPECT_GT(node->pages_outdated, outdated);
  EXPECT_EQ(node->pages_dropped, node->pages_outdated);
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  remote_.fail_writes_with = 0;
  close(node);
}

/// The WRITE to come sets times of which the kernel hears nothing.
TEST_F(FileSystemTest, AttributesAreNotBelievedWhileDataIsToBeWritten) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  EXPECT_GT(fs_->attribute_seconds(*node), 0);
  ASSERT_EQ(write(node, 0, "ab"), 0);
  EXPECT_EQ(fs_->attribute_seconds(*node), 0);
  EXPECT_EQ(fsync(node), 0);
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_GT(fs_->attribute_seconds(*node), 0);
}

TEST_F(FileSystemTest, WhatIsNotStableIsCommittedBeforeItIsWrittenOver) {
  remote_.set_write_size(2);
  remote_.add_file("a", "......");
  age(fs_->root);
  NodeRef node = look("a");
  FileWriter& writer = fs_->writer_of(*node);
  ASSERT_EQ(write(node, 0, "abcd"), 0);
  EXPECT_EQ(run(writer.flush(me_, node, false)), 0);
  ASSERT_TRUE(writer.data().unstable(0, 4));
  EXPECT_EQ(run(writer.write_through(me_, node, 4, as_bytes(std::string_view("ef")), nullptr)), 0);
  EXPECT_EQ(remote_.calls["commit"], 0);
  remote_.fail_writes_with = EIO;
  EXPECT_EQ(run(writer.write_through(me_, node, 1, as_bytes(std::string_view("x")), nullptr)), EIO);
  EXPECT_EQ(remote_.calls["commit"], 1);
  EXPECT_FALSE(writer.data().has_unstable());
  remote_.fail_writes_with = 0;
  EXPECT_EQ(fsync(node), 0);
}

TEST_F(FileSystemTest, ACommitErrorIsReportedOnceAtFsync) {
  remote_.set_write_size(2);
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.fail_commits_with = EIO;
  ASSERT_EQ(write(node, 0, "abcdef"), 0);
  EXPECT_EQ(fsync(node), EIO);
  remote_.fail_commits_with = 0;
  EXPECT_EQ(fsync(node), 0);
}

TEST_F(FileSystemTest, ReadSeesUnwrittenData) {
  remote_.add_file("a", "......");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 2, "XY"), 0);
  EXPECT_EQ(read(node, 0, 10), "..XY..");
}

TEST_F(FileSystemTest, AReadBeforeUnwrittenDataDoesNotEndTheFile) {
  remote_.add_file("a", "ab");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 100, "X"), 0);
  EXPECT_EQ(read(node, 0, 4), std::string("ab\0\0", 4));
}

TEST_F(FileSystemTest, TheVisibleSizeCoversUnwrittenData) {
  remote_.add_file("a", "ab");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 2, "cd"), 0);
  EXPECT_EQ(fs_->visible(*node).size, 4u);
}

TEST_F(FileSystemTest, StatWritesBackFirst) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  ASSERT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(node->attributes.size, 3u);
  EXPECT_TRUE(same_time(node->attributes.mtime, file->attributes.mtime));
}

TEST_F(FileSystemTest, SettingTimesComesAfterTheData) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  SetAttributes set;
  set.mtime = SetAttributes::Time{false, {12345, 0}};
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->attributes.mtime.tv_sec, 12345);
}

TEST_F(FileSystemTest, AWriteThatGoesPastTheKernelsPagesHasThemDropped) {
  remote_.add_file("a", "data");
  NodeRef node = opened("a");
  invalidated_.clear();
  run(fs_->drop_read_pages(me_, node));
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{}) << "nobody has read into them";
  node->read_into_pages = true;
  run(fs_->drop_read_pages(me_, node));
  EXPECT_EQ(invalidated_, std::vector<std::uint64_t>{node->id});
  run(fs_->drop_read_pages(me_, node));
  EXPECT_EQ(invalidated_.size(), 1u) << "nor since then";
  hold_kernel_ = true;
  node->read_into_pages = true;
  bool answered = false;
  struct Answer {
    static Task<void> behind(Task<void> dropped, bool* is) {
      co_await std::move(dropped);
      *is = true;
    }
  };
  fs_->tasks.spawn(Answer::behind(fs_->drop_read_pages(me_, node), &answered));
  EXPECT_FALSE(answered) << "the kernel still has them";
  bool second = false;
  fs_->tasks.spawn(Answer::behind(fs_->drop_read_pages(me_, node), &second));
  EXPECT_FALSE(second) << "nor is one answered meanwhile that is done as well";
  EXPECT_EQ(kernel_waits_.size(), 1u);
  kernel_waits_.front()();
  kernel_waits_.clear();
  EXPECT_TRUE(answered);
  EXPECT_TRUE(second);
  close(node);
}

TEST_F(FileSystemTest, ManyDirectWritesDoNotAllWaitForTheKernel) {
  remote_.add_file("a", "data");
  NodeRef node = opened("a");
  hold_kernel_ = true;
  node->read_into_pages = true;
  constexpr unsigned kWrites = 64;  // the kernel has 128 under way, READs among them
  unsigned answered = 0;
  struct Answer {
    static Task<void> behind(Task<void> dropped, unsigned* count) {
      co_await std::move(dropped);
      ++*count;
    }
  };
  for (unsigned n = 0; n < kWrites; ++n)
    fs_->tasks.spawn(Answer::behind(fs_->drop_read_pages(me_, node), &answered));
  EXPECT_EQ(answered, kWrites - 16);
  kernel_waits_.front()();
  kernel_waits_.clear();
  EXPECT_EQ(answered, kWrites);
  close(node);
}

TEST_F(FileSystemTest, ATruncatedFileDoesNotGrowBackAfterARestart) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);
  SetAttributes set;
  set.size = 2;
  ASSERT_EQ(run(fs_->setattr(me_, node, set)), 0);
  remote_.restart();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->data, "ab");
}

TEST_F(FileSystemTest, WritesCarryTheWritersCredentials) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  const std::string text = "abc";
  ASSERT_EQ(run(fs_->writer_of(*node).write(other_, node, 0, as_bytes(text), nullptr)), 0);
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(remote_.log, std::vector<std::string>{"write 0+3 as 1000 sync"});
}

TEST_F(FileSystemTest, WritersWaitWhenTheBudgetIsFull) {
  FileSystemOptions options;
  options.write_budget = 8;
  build(options);
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  remote_.hold();
  ASSERT_EQ(write(node, 0, "0123456789"), 0);
  int result = -1;
  const std::string text = "more";
  start(fs_->writer_of(*node).write(me_, node, 10, as_bytes(text), nullptr), &result);
  EXPECT_EQ(result, -1);
  remote_.release();
  EXPECT_EQ(result, 0);
}

TEST_F(FileSystemTest, AnInterruptedFlushKeepsTheData) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  Interrupt interrupt;
  int result = -1;
  remote_.hold();
  start(fs_->writer_of(*node).flush({me_.caller, &interrupt}, node, true), &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  remote_.release();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, RaisingAnInterruptMayEndTheRequestThatOwnsIt) {
  auto interrupt = std::make_unique<Interrupt>();
  struct Ends final : Cancellable {
    std::unique_ptr<Interrupt>* owner;
    void on_cancel() override { owner->reset(); }
  } call;
  call.owner = &interrupt;
  interrupt->token->enlist(call);
  interrupt->raise();
  EXPECT_EQ(interrupt, nullptr);
}

TEST_F(FileSystemTest, WriteThroughIsStableWhenItReturns) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  const std::string text = "abc";
  ASSERT_EQ(run(fs_->writer_of(*node).write_through(me_, node, 0, as_bytes(text), nullptr)), 0);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, ARewriteAfterARestartDoesNotUndoAWriteThrough) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "aaaaaaaa"), 0);
  const std::string text = "XX";
  ASSERT_EQ(run(fs_->writer_of(*node).write_through(me_, node, 2, as_bytes(text), nullptr)), 0);
  remote_.restart();
  ASSERT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "aaXXaaaa");
}

}  // namespace
}  // namespace nfsrdma
