// SPDX-License-Identifier: Apache-2.0
#include "client/library/file_state.h"

#include "tests/unit/client/mounted_fixture.h"

namespace nfsrdma {
namespace {

using xdr::nfsproc3;

class FileStateTest : public MountedFixture {
 protected:
  std::unique_ptr<FileState> open(Stability how = Stability::kUnstable) {
    return std::make_unique<FileState>(*mount_, budget_, test_handle(1), how);
  }
  void answer_write(std::uint64_t verifier, xdr::stable_how how = xdr::stable_how::UNSTABLE) {
    xdr::WRITE3res res;
    res.resok.count = next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).count;
    res.resok.committed = how;
    store_be64(res.resok.verf.data(), verifier);
    answer(res);
  }
  void answer_commit(std::uint64_t verifier) {
    static_cast<void>(next_call<xdr::COMMIT3args>(nfsproc3::NFSPROC3_COMMIT));
    xdr::COMMIT3res res;
    store_be64(res.resok.verf.data(), verifier);
    answer(res);
  }
  void write(FileState& file, std::string_view text, std::uint64_t offset) {
    written_.reset();
    group_.spawn(keep(file.write(op_, as_bytes(text), offset), &written_));
  }
  void flush(FileState& file) {
    flushed_.reset();
    group_.spawn(keep(file.flush(op_), &flushed_));
  }

  UnstableBudget budget_;
  std::optional<Result<std::size_t>> written_;
  std::optional<Result<void>> flushed_;
};

TEST_F(FileStateTest, FlushCommitsWhatIsUnstable) {
  auto file = open();
  write(*file, "abc", 0);
  answer_write(5);
  ASSERT_TRUE(written_ && written_->ok());
  flush(*file);
  answer_commit(5);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(FileStateTest, FlushWritesAgainWhatARestartLost) {
  auto file = open();
  write(*file, "abc", 7);
  answer_write(5);
  flush(*file);
  answer_commit(6);
  const auto again = next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE);
  EXPECT_EQ(again.offset, 7u);
  EXPECT_EQ(as_text(again.data.bytes), "abc");
  EXPECT_FALSE(flushed_);
  answer_write(6);
  answer_commit(6);
  EXPECT_TRUE(flushed_ && flushed_->ok());
}

TEST_F(FileStateTest, AWriteWhosePiecesHaveDifferentVerifiersIsWrittenAgain) {
  auto file = open();
  const std::string text(2 * kTestTransfer, 'x');
  write(*file, text, 0);
  // Over two connections the answer from before the restart may come last.
  answer_write(6);
  answer_write(5);
  // No COMMIT can say which piece the restart lost: both go out again, and only then is it over.
  EXPECT_FALSE(written_);
  answer_commit(6);
  EXPECT_EQ(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).offset, 0u);
  answer_write(6);
  EXPECT_EQ(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).offset, kTestTransfer);
  answer_write(6);
  answer_commit(6);
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(FileStateTest, StableWritesNeedNoCommit) {
  auto file = open(Stability::kFileSync);
  write(*file, "abc", 0);
  answer_write(5, xdr::stable_how::FILE_SYNC);
  flush(*file);
  EXPECT_TRUE(flushed_ && flushed_->ok());
}

TEST_F(FileStateTest, WithoutABudgetWritesAreStable) {
  budget_.limit = 0;
  auto file = open();
  write(*file, "abc", 0);
  EXPECT_EQ(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).stable,
            xdr::stable_how::FILE_SYNC);
  answer_write(5, xdr::stable_how::FILE_SYNC);
}

TEST_F(FileStateTest, OverTheBudgetTheOldestFileIsCommitted) {
  budget_.limit = 4;
  auto first = open();
  auto second = open();
  write(*first, "abc", 0);
  answer_write(5);
  write(*second, "def", 0);
  answer_write(5);
  EXPECT_FALSE(written_);
  answer_commit(5);
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), 3u);
}

TEST_F(FileStateTest, CloseWaitsForAnotherFilesWriterThatFlushesThisOne) {
  struct Closer {
    static Task<void> run(std::unique_ptr<FileState> file, OpContext op, bool* done) {
      EXPECT_TRUE((co_await file->close(op)).ok());
      file.reset();
      *done = true;
    }
  };
  budget_.limit = 4;
  auto first = open();
  auto second = open();
  write(*first, "abc", 0);
  answer_write(5);
  write(*second, "def", 0);
  answer_write(5);
  // The writer of `second` is committing `first`, which its owner closes meanwhile.
  bool closed = false;
  group_.spawn(Closer::run(std::move(first), op_, &closed));
  EXPECT_FALSE(closed);
  answer_commit(5);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), 3u);
}

TEST_F(FileStateTest, AFailedCommitIsReported) {
  auto file = open();
  write(*file, "abc", 0);
  answer_write(5);
  flush(*file);
  xdr::COMMIT3res res;
  res.status = xdr::nfsstat3::NFS3ERR_IO;
  answer(res);
  ASSERT_TRUE(flushed_);
  EXPECT_EQ(flushed_->error().sys, EIO);
}

TEST_F(FileStateTest, WritesWaitWhileLostDataIsWrittenAgain) {
  auto file = open();
  write(*file, "old", 0);
  answer_write(5);
  flush(*file);
  write(*file, "new", 0);
  ASSERT_EQ(transport().out().size(), 1u);
  answer_commit(6);
  answer_write(6);
  answer_commit(6);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  EXPECT_EQ(as_text(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).data.bytes), "new");
  answer_write(6);
}

}  // namespace
}  // namespace nfsrdma
