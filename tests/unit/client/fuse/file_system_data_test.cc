// SPDX-License-Identifier: Apache-2.0
// FileSystem: data.
#include "rpcrdma/base/log.h"
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

/// From a restart until the COMMIT that tells of it, the size is what applications made it.
TEST_F(FileSystemTest, WhatARestartedServerMayHaveLostIsThereAgainBeforeItsSizeCounts) {
  NodeRef node = written_before_a_restart();
  age(node);
  EXPECT_EQ(run(fs_->getattr(me_, node)), 0);  // as the timer does
  EXPECT_EQ(fs_->visible(*node).size, 8u);
  EXPECT_EQ(fs_->attribute_seconds(*node), 0);
  std::uint64_t offset = 8;
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(remote_.root_object()->names.at("a")->data, "abcdefgh");
  close(node);
}

TEST_F(FileSystemTest, AnAppendFindsOutThatTheServerMayHaveLostWhatIsBeforeIt) {
  NodeRef node = written_before_a_restart();
  age(node);
  node->kernel_size_old = true;
  std::uint64_t offset = 8;
  EXPECT_EQ(run(fs_->append_offset(me_, node, &offset)), 0);
  EXPECT_EQ(offset, 8u);
  close(node);
}

TEST_F(FileSystemTest, StatAndReadSeeWhatARestartedServerLost) {
  NodeRef node = written_before_a_restart();
  EXPECT_EQ(read(node, 2, 4), "cdef");
  EXPECT_EQ(remote_.calls["commit"], 2);  // the second one of what the first one found lost
  ASSERT_EQ(write(node, 8, "ijkl"), 0);
  remote_.restart();
  age(node);
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(fs_->visible(*node).size, 12u);
  EXPECT_EQ(read(node, 0, 12), "abcdefghijkl");
  close(node);
}

/// A WRITE tells of the restart, too.
TEST_F(FileSystemTest, AnAnswerFromBehindARestartPutsInDoubtWhatIsFromBeforeIt) {
  NodeRef node = written_before_a_restart();
  ASSERT_EQ(write(node, 0, "ABCD"), 0);
  EXPECT_EQ(fs_->visible(*node).size, 8u);
  EXPECT_EQ(read(node, 4, 4), "efgh");
  close(node);
}

/// Somebody else's change looks the same until the COMMIT is answered.
TEST_F(FileSystemTest, AFileThatOthersCutIsAsLongAsTheyMadeItBehindACommit) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(write(node, 0, "abcdefgh"), 0);
  remote_.write_elsewhere(*file, "xy");
  age(node);
  EXPECT_EQ(run(fs_->refresh(me_, node)), 0);
  EXPECT_EQ(fs_->visible(*node).size, 2u);
  EXPECT_EQ(remote_.calls["commit"], 1);
  EXPECT_EQ(remote_.calls["write"], 2);
  EXPECT_EQ(file->data, "xy");
  close(node);
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

/// The WRITE was answered meanwhile, behind the READ that did not see it.
TEST_F(FileSystemTest, AShortReadIsFilledUpToDataThatWasOnItsWayWhenItWasAsked) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a", "abc");
  age(fs_->root);
  NodeRef node = opened("a");
  remote_.hold();
  int written = -1, error = -1;
  start(fs_->writer_of(*node).write(me_, node, 20, as_bytes(std::string_view("wxyz")), nullptr),
        &written);
  std::string out(8, '?');
  std::size_t count = 0;
  remote_.short_reads = 3;
  start(fs_->read(me_, node, 0, {reinterpret_cast<std::byte*>(out.data()), out.size()}, &count),
        &error);
  remote_.release();
  EXPECT_EQ(error, 0);
  EXPECT_EQ(out.substr(0, count), std::string("abc\0\0\0\0\0", 8));
  close(node);
}

TEST_F(FileSystemTest, AFlushGoesOnWhenWhatItSendsPutsOlderDataInDoubt) {
  remote_.set_write_size(4);
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = opened("a");
  ASSERT_EQ(write(node, 0, "abcd"), 0);  // unstable
  ASSERT_EQ(write(node, 6, "x"), 0);     // waits for a flush
  remote_.restart();
  EXPECT_EQ(run(fs_->writer_of(*node).flush(me_, node, false)), 0);
  EXPECT_EQ(file->data, std::string("abcd\0\0x", 7));
  close(node);
}

/// Nothing of ours is behind it: the server is right.
TEST_F(FileSystemTest, AShortReadIsNotFilledUpToASizeFromBefore) {
  auto file = remote_.add_file("a", "abcdef");
  age(fs_->root);
  NodeRef node = look("a");
  file->data = "abc";  // and tells the old size still
  EXPECT_EQ(read(node, 0, 6), "abc");
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

/// As behind a lock that is lost: each WRITE is refused before it is sent.
TEST_F(FileSystemTest, AnyNumberOfWritesMayFailAtOnce) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  constexpr std::uint64_t kPieces = 100'000;
  write_in_pieces(node, kPieces);
  remote_.fail_writes_with = EIO;
  EXPECT_EQ(fsync(node), EIO);
  EXPECT_EQ(remote_.calls["write"], static_cast<int>(kPieces));
  remote_.fail_writes_with = 0;
}

/// It takes so long that writers have to wait for its end.
TEST_F(FileSystemTest, WritersGoOnBehindALongFlushAndAReadThatWaitedWithIt) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  write_in_pieces(node, 400);
  FileWriter& writer = fs_->writer_of(*node);
  remote_.hold("write");
  int flushed = -1, settled = -1, written = -1;
  start(writer.flush(me_, node, false), &flushed);
  // The last one of those that are under way, and so of all to be answered.
  start(writer.settle(me_, node, 2 * (FileWriter::kMostFlights - 1), 1), &settled);
  remote_.release();
  EXPECT_EQ(flushed, 0);
  EXPECT_EQ(settled, 0);
  const std::string more = "y";
  start(writer.write(me_, node, 1, as_bytes(more), nullptr), &written);
  EXPECT_EQ(written, 0);
}

TEST_F(FileSystemTest, WhoOnlyReadsClosesWithoutWaitingForOthersData) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  remote_.hold();
  std::uint64_t reader_told = 0, writer_told = 0;
  int reader = -1, writer = -1;
  start(fs_->write_out_at_close(me_, node, false, &reader_told), &reader);
  EXPECT_EQ(reader, 0);
  start(fs_->write_out_at_close(me_, node, true, &writer_told), &writer);
  EXPECT_EQ(writer, -1);
  remote_.release();
  EXPECT_EQ(writer, 0);
  EXPECT_EQ(file->stable_data, "abc");
}

TEST_F(FileSystemTest, WhatIsLostIsToldToTheCloseOfWhoWrites) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "abc"), 0);
  remote_.fail_writes_with = ENOSPC;
  std::uint64_t reader_told = 0, writer_told = 0;
  EXPECT_EQ(run(fs_->write_out_at_close(me_, node, false, &reader_told)), 0);
  EXPECT_EQ(run(fs_->write_out_at_close(me_, node, true, &writer_told)), ENOSPC);
  remote_.fail_writes_with = 0;
  EXPECT_EQ(run(fs_->write_out_at_close(me_, node, false, &reader_told)), 0);
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

/// What it sent may be carried out at any time: nothing that is to be behind it goes before that.
TEST_F(FileSystemTest, AWriteThroughGoesOnWhenItsCallerIsKilled) {
  auto file = remote_.add_file("a", "......");
  age(fs_->root);
  NodeRef node = opened("a");
  FileWriter& writer = fs_->writer_of(*node);
  const FileLock all{7, LockKind::kWrite, kAllBytes};
  ASSERT_EQ(run(fs_->lock(me_, node, all, LockWait::kNo, O_RDWR, 1)), 0);
  Interrupt interrupt;
  const RequestContext killed{me_.caller, &interrupt};
  remote_.set_write_size(2);
  remote_.hold();
  int result = -1, unlocked = -1, written = -1;
  start(writer.write_through(killed, node, 0, as_bytes(std::string_view("abcd")), nullptr),
        &result);
  interrupt.raise();
  EXPECT_EQ(result, EINTR);
  EXPECT_FALSE(writer.idle());
  start(fs_->let_go(me_, node, 7), &unlocked);
  start(writer.write(me_, node, 0, as_bytes(std::string_view("xy")), nullptr), &written);
  EXPECT_EQ(remote_.calls["unlock"], 0);
  EXPECT_EQ(written, -1);
  remote_.release();
  while (fs_->tasks.running() > 0)
    loop_->turn(Duration(0));
  EXPECT_EQ(unlocked, 0);
  EXPECT_EQ(written, 0);
  EXPECT_EQ(remote_.calls["unlock"], 1);
  EXPECT_EQ(fsync(node), 0);
  EXPECT_EQ(file->stable_data, "xycd..");
  EXPECT_TRUE(writer.idle());
  close(node);
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

std::string& logged() {
  static std::string text;
  return text;
}

/// AddressSanitizer sees whether that is asked of the directory when it is gone.
TEST_F(FileSystemTest, LostDataOfAFileThatOutlivesItsDirectoryIsTold) {
  const auto top = remote_.add_directory(*remote_.root_object(), "d");
  remote_.add_file_in(*remote_.add_directory(*top, "e"), "f", "");
  age(fs_->root);
  NodeRef above = look("d");
  NodeRef parent, node;
  ASSERT_EQ(run(fs_->lookup(me_, above, "e", &parent)), 0);
  fs_->nodes.reference(parent);
  ASSERT_EQ(run(fs_->lookup(me_, parent, "f", &node)), 0);
  fs_->nodes.reference(node);
  bool keep = false;
  ASSERT_EQ(run(fs_->open(me_, node, O_RDWR, &keep)), 0);
  EXPECT_EQ(write(node, 0, "data"), 0);
  remote_.fail_writes_with = ENOSPC;
  remote_.hold("write");
  fs_->write_back_all();
  close(node);
  for (NodeRef* one : {&node, &parent, &above}) {
    const std::uint64_t id = (*one)->id;
    one->reset();
    fs_->nodes.forget(id, 1);
  }
  set_log_sink(
      [](int, std::string_view line, std::span<const LogField>) { logged() += std::string(line); });
  remote_.release();
  set_log_sink(nullptr);
  EXPECT_NE(logged().find(": data that was written is lost"), std::string::npos) << logged();
}

}  // namespace
}  // namespace nfsrdma
