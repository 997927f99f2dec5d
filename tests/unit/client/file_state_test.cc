// SPDX-License-Identifier: Apache-2.0
#include "client/library/file_state.h"

#include "tests/unit/client/mounted_fixture.h"

namespace nfsrdma {
namespace {

using xdr::nfsproc3;

class FileStateTest : public MountedFixture {
 protected:
  std::shared_ptr<FileState> open(Stability how = Stability::kUnstable) {
    return std::make_shared<FileState>(*mount_, budget_, test_handle(1), how);
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

/// Two files, of which the first is over the budget: the writer of the second commits it while its
/// owner closes it, flushing it and letting go.
class ClosedWhileFlushed : public FileStateTest {
 protected:
  void SetUp() override {
    budget_.limit = 4;
    auto first = open();
    write(*first, "abc", 0);
    answer_write(5);
    write(*second_, "def", 0);
    answer_write(5);
    group_.spawn(close(std::move(first), op_, &closed_));
    EXPECT_FALSE(closed_);
  }
  static Task<void> close(std::shared_ptr<FileState> file, OpContext op,
                          std::optional<Result<void>>* closed) {
    Result<void> result = co_await file->flush(op);
    file.reset();
    closed->emplace(std::move(result));
  }

  std::shared_ptr<FileState> second_ = open();
  std::optional<Result<void>> closed_;
};

TEST_F(ClosedWhileFlushed, BothGoOn) {
  answer_commit(5);
  EXPECT_TRUE(closed_ && closed_->ok());
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), 3u);
}

TEST_F(FileStateTest, AFileMayBeClosedWhileOthersWaitToFlushIt) {
  budget_.limit = 4;
  auto first = open(), second = open(), third = open();
  write(*first, "abc", 0);
  answer_write(5);
  write(*second, "def", 0);
  std::optional<Result<std::size_t>> third_written;
  group_.spawn(keep(third->write(op_, as_bytes("ghi"), 0), &third_written));
  answer_write(5);  // the writer of `second` commits `first` ...
  struct Owner {
    static Task<void> close(std::shared_ptr<FileState> file, OpContext op) {
      EXPECT_TRUE((co_await file->flush(op)).ok());
    }
  };
  group_.spawn(Owner::close(std::move(first), op_));
  answer_write(5);  // ... and that of `third` waits behind the owner to do the same
  answer_commit(5);
  answer_commit(5);  // of `second`, which is the oldest now
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_TRUE(third_written && third_written->ok());
  EXPECT_EQ(budget_.used(), 3u);
}

TEST_F(ClosedWhileFlushed, WhatTheOtherCouldNotSaveIsToldHere) {
  answer_commit(6);  // the server lost it ...
  xdr::WRITE3res res;
  res.status = xdr::nfsstat3::NFS3ERR_NOSPC;
  static_cast<void>(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE));
  answer(res);  // ... and does not take it again
  ASSERT_TRUE(closed_ && !closed_->ok());
  EXPECT_EQ(closed_->error().sys, ENOSPC);
  EXPECT_TRUE(written_ && written_->ok());
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
