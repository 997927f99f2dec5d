// SPDX-License-Identifier: Apache-2.0
#include "client/library/file_state.h"

#include "tests/unit/client/mounted_fixture.h"

namespace nfsrdma {
namespace {

using xdr::nfsproc3;

/// Memory for a write of three bytes.
constexpr std::size_t kOne = UnstableData::kPieceMemory + 3;

class FileStateTest : public MountedFixture {
 protected:
  std::shared_ptr<FileState> open(Stability how = Stability::kUnstable, unsigned file = 1) {
    return std::make_shared<FileState>(*mount_, budget_, test_handle(file), how);
  }
  std::shared_ptr<FileState> open(unsigned file) { return open(Stability::kUnstable, file); }
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
  void fail_commit(xdr::nfsstat3 status) {
    static_cast<void>(next_call<xdr::COMMIT3args>(nfsproc3::NFSPROC3_COMMIT));
    xdr::COMMIT3res res;
    res.status = status;
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

/// RFC 1813, 3.3.7: the server says what it has done, and may have done less than a broken one
/// should.
TEST_F(FileStateTest, AStableWriteThatIsAnsweredUnstableIsCommitted) {
  for (const bool no_budget : {false, true}) {
    budget_.limit = no_budget ? 0 : UnstableBudget().limit;
    auto file = open(no_budget ? Stability::kUnstable : Stability::kFileSync);
    write(*file, "abc", 0);
    answer_write(5);
    EXPECT_FALSE(written_);
    answer_commit(5);
    EXPECT_TRUE(written_ && written_->ok());
    EXPECT_EQ(budget_.used(), 0u);
  }
}

TEST_F(FileStateTest, AServerThatNeverKeepsAnythingIsGivenUp) {
  auto file = open();
  write(*file, "abc", 0);
  answer_write(5);
  flush(*file);
  for (unsigned round = 0; !flushed_ && round < 100; ++round) {
    answer_commit(100 + round);
    if (!flushed_) answer_write(5);
  }
  ASSERT_TRUE(flushed_ && !flushed_->ok());
  EXPECT_EQ(flushed_->error().sys, EIO);
  // It may have come to its senses.
  flush(*file);
  answer_commit(5);
  answer_write(5);
  answer_commit(5);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(FileStateTest, OneThatKeepsALittleEachTimeIsNot) {
  constexpr std::uint64_t kPieces = 12;
  auto file = open();
  for (std::uint64_t i = 1; i <= kPieces; ++i) {
    write(*file, "abc", 10 * i);
    answer_write(i);
  }
  flush(*file);
  for (std::uint64_t kept = 1; kept <= kPieces; ++kept) {
    ASSERT_FALSE(flushed_);
    answer_commit(kept);
    for (std::uint64_t i = kept + 1; i <= kPieces; ++i)
      answer_write(i);
  }
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

TEST_F(FileStateTest, NothingIsWrittenAtWhatIsNoOffset) {
  auto file = open();
  const std::string text(2 * kTestTransfer, 'x');
  // An lseek() that failed: the second piece would be in front of the file's 4096th byte.
  write(*file, text, UINT64_MAX);
  ASSERT_TRUE(written_ && !written_->ok());
  EXPECT_EQ(written_->error().sys, EINVAL);
  // Of parts that the limit makes none goes out, either.
  budget_.limit = 4 * kTestTransfer;
  write(*file, text, INT64_MAX - kTestTransfer);
  ASSERT_TRUE(written_ && !written_->ok());
  EXPECT_EQ(written_->error().sys, EFBIG);
  EXPECT_EQ(environment_->transport(), nullptr);
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(FileStateTest, NothingIsReadAtWhatIsNoOffset) {
  auto file = open();
  std::array<std::byte, 8> room{};
  std::optional<Result<std::size_t>> read;
  group_.spawn(keep(file->read(op_, room, UINT64_MAX), &read));
  ASSERT_TRUE(read && !read->ok());
  EXPECT_EQ(read->error().sys, EINVAL);
  EXPECT_EQ(environment_->transport(), nullptr);
  group_.spawn(keep(file->read(op_, room, INT64_MAX - 3), &read));
  EXPECT_EQ(next_call<xdr::READ3args>(nfsproc3::NFSPROC3_READ).count, 3u);
  xdr::READ3res res;
  res.resok.eof = true;
  answer(res);
  ASSERT_TRUE(read && read->ok());
  EXPECT_EQ(**read, 0u);
}

TEST_F(FileStateTest, OverTheBudgetTheOldestFileIsCommitted) {
  budget_.limit = kOne + 1;
  auto first = open();
  auto second = open(2);
  write(*first, "abc", 0);
  answer_write(5);
  write(*second, "def", 0);
  answer_write(5);
  EXPECT_FALSE(written_);
  answer_commit(5);
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), kOne);
}

/// What the server will not make stable, of one file, is no reason to keep all that is written to
/// others.
TEST_F(FileStateTest, AFileThatCannotBeCommittedIsInNobodysWay) {
  budget_.limit = kOne + 1;
  auto first = open(), second = open(2), third = open(3);
  write(*first, "abc", 0);
  answer_write(5);
  write(*second, "def", 0);
  answer_write(5);
  fail_commit(xdr::nfsstat3::NFS3ERR_STALE);
  answer_commit(5);  // of `second` itself
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), kOne);
  for (int i = 0; i < 3; ++i) {
    write(*third, "ghi", 0);
    answer_write(5);
    fail_commit(xdr::nfsstat3::NFS3ERR_STALE);
    answer_commit(5);
    EXPECT_TRUE(written_ && written_->ok());
    EXPECT_EQ(budget_.used(), kOne);
  }
}

TEST_F(FileStateTest, WhoWritesOnWhereNothingCanBeCommittedFillsNoMemory) {
  budget_.limit = kOne + 1;
  auto file = open();
  write(*file, "abc", 0);
  answer_write(5);
  for (unsigned i = 1; i < 4; ++i) {
    write(*file, "def", 3 * i);
    answer_write(5);
    fail_commit(xdr::nfsstat3::NFS3ERR_IO);
    ASSERT_TRUE(written_ && !written_->ok());
    EXPECT_EQ(written_->error().sys, EIO);
    EXPECT_EQ(budget_.used(), kOne);
  }
}

TEST_F(FileStateTest, ALargeWriteIsCommittedInParts) {
  budget_.limit = 2 * kTestTransfer;
  auto file = open();
  const std::string text(8 * kTestTransfer, 'x');
  write(*file, text, 0);
  std::size_t commits = 0, most = 0;
  for (std::uint64_t part = 0; part < 8; ++part) {
    EXPECT_EQ(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).offset, part * kTestTransfer);
    answer_write(5);
    most = std::max(most, budget_.used());
    if (!budget_.exceeded()) continue;
    answer_commit(5);
    ++commits;
  }
  ASSERT_TRUE(written_ && written_->ok());
  EXPECT_EQ(**written_, text.size());
  EXPECT_EQ(commits, 4u);
  EXPECT_LE(most, budget_.limit + kTestTransfer);
}

/// Two files, of which the first is over the budget: the writer of the second commits it while its
/// owner closes it, flushing it and letting go.
class ClosedWhileFlushed : public FileStateTest {
 protected:
  void SetUp() override {
    budget_.limit = kOne + 1;
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

  std::shared_ptr<FileState> second_ = open(2);
  std::optional<Result<void>> closed_;
};

TEST_F(ClosedWhileFlushed, BothGoOn) {
  answer_commit(5);
  EXPECT_TRUE(closed_ && closed_->ok());
  EXPECT_TRUE(written_ && written_->ok());
  EXPECT_EQ(budget_.used(), kOne);
}

TEST_F(FileStateTest, AFileMayBeClosedWhileOthersWaitToFlushIt) {
  budget_.limit = kOne + 1;
  auto first = open(), second = open(2), third = open(3);
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
  EXPECT_EQ(budget_.used(), kOne);
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

/// The last one wins, whoever wrote it by whatever File.
TEST_F(FileStateTest, WhatAnotherFileMadeStableIsNotUndoneAfterARestart) {
  auto first = open(), second = open(Stability::kFileSync);
  write(*first, "olds", 0);
  answer_write(5);
  write(*second, "NEW", 0);
  answer_write(5, xdr::stable_how::FILE_SYNC);
  flush(*first);
  answer_commit(6);
  const auto again = next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE);
  EXPECT_EQ(again.offset, 3u);
  EXPECT_EQ(as_text(again.data.bytes), "s");
  answer_write(6);
  answer_commit(6);
  EXPECT_TRUE(flushed_ && flushed_->ok());
}

TEST_F(FileStateTest, ACloseCommitsWhatOthersWrote) {
  auto first = open(), second = open();
  write(*first, "abc", 0);
  answer_write(5);
  flush(*second);
  answer_commit(5);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  EXPECT_EQ(budget_.used(), 0u);
  EXPECT_EQ(budget_.find(test_handle(1))->handle(), test_handle(1));
  first.reset();
  second.reset();
  EXPECT_EQ(budget_.find(test_handle(1)), nullptr);
}

/// Nothing that comes to the server later undoes a cut.
TEST_F(FileStateTest, ACutGoesBehindWhatAnotherFileWrote) {
  auto first = open(), second = open();
  write(*first, "abcdef", 0);
  answer_write(5);
  std::optional<Result<void>> cut;
  group_.spawn(keep(second->truncate(op_, 2), &cut));
  answer_commit(5);
  EXPECT_EQ(next_call<xdr::SETATTR3args>(nfsproc3::NFSPROC3_SETATTR).new_attributes.size.size, 2u);
  write(*first, "x", 9);  // waits
  EXPECT_EQ(transport().out().size(), 1u);
  answer(xdr::SETATTR3res());
  EXPECT_TRUE(cut && cut->ok());
  answer_write(5);
  EXPECT_TRUE(written_ && written_->ok());
}

TEST_F(FileStateTest, WhatIsLostIsToldToAllWhoHaveTheFileOpen) {
  auto first = open(), second = open();
  write(*first, "abc", 0);
  answer_write(5);
  flush(*second);
  answer_commit(6);  // lost ...
  xdr::WRITE3res res;
  res.status = xdr::nfsstat3::NFS3ERR_NOSPC;
  static_cast<void>(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE));
  answer(res);  // ... and not taken again
  ASSERT_TRUE(flushed_ && !flushed_->ok());
  auto third = open();  // has not heard of it, and need not
  flush(*third);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  flush(*first);
  ASSERT_TRUE(flushed_ && !flushed_->ok());
  EXPECT_EQ(flushed_->error().sys, ENOSPC);
  flush(*first);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  flush(*second);
  EXPECT_TRUE(flushed_ && flushed_->ok());
}

/// What is written, and not committed, when the server restarts, having lost it.
class BehindARestart : public FileStateTest {
 protected:
  void SetUp() override {
    write(*file_, "x", 0);
    answer_write(5);
    flush(*file_);
    answer_commit(5);
    write(*file_, "abc", 0);
    answer_write(5);
    read();
    answer_read("abc");
    EXPECT_EQ(text_read(), "abc");  // nothing else was asked for
    transport().lose();
    environment_->settle();
    connected_ = false;  // the next call makes it anew
  }
  void read() {
    read_.reset();
    group_.spawn(keep(file_->read(op_, room_, 0), &read_));
  }
  void answer_read(std::string_view text) {
    static_cast<void>(next_call<xdr::READ3args>(nfsproc3::NFSPROC3_READ));
    xdr::READ3res res;
    res.resok.count = static_cast<std::uint32_t>(text.size());
    res.resok.eof = true;
    res.resok.data.bytes = as_bytes(text);
    answer(res);
  }
  void answer_size(std::uint64_t size) {
    static_cast<void>(next_call<xdr::GETATTR3args>(nfsproc3::NFSPROC3_GETATTR));
    xdr::GETATTR3res res;
    res.resok.obj_attributes.type = xdr::ftype3::NF3REG;
    res.resok.obj_attributes.size = size;
    answer(res);
  }
  void save() {
    answer_commit(6);
    EXPECT_EQ(as_text(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE).data.bytes), "abc");
    answer_write(6);
    answer_commit(6);
  }
  std::string text_read() {
    if (!read_ || !read_->ok()) return "nothing";
    return std::string(as_text(ByteSpan(room_).first(**read_)));
  }

  std::shared_ptr<FileState> file_ = open();
  std::array<std::byte, 8> room_{};
  std::optional<Result<std::size_t>> read_;
};

TEST_F(BehindARestart, WhatIsReadHasWhatTheServerHadLost) {
  read();
  answer_read("x");
  EXPECT_FALSE(read_);
  save();
  EXPECT_FALSE(read_);
  answer_read("abc");
  EXPECT_EQ(text_read(), "abc");
  read();
  answer_read("abc");
  EXPECT_EQ(text_read(), "abc");
}

TEST_F(BehindARestart, WhatIsReadWhileAnotherSavesItIsReadOnceMore) {
  flush(*file_);
  answer_commit(6);
  static_cast<void>(next_call<xdr::WRITE3args>(nfsproc3::NFSPROC3_WRITE));
  read();
  answer_write(6);
  answer_read("x");  // overtook the WRITE
  EXPECT_FALSE(read_);
  answer_commit(6);
  EXPECT_TRUE(flushed_ && flushed_->ok());
  answer_read("abc");
  EXPECT_EQ(text_read(), "abc");
}

TEST_F(BehindARestart, TheSizeIsThatOfWhatWasWritten) {
  std::optional<Result<Attributes>> found;
  group_.spawn(keep(file_->getattr(op_), &found));
  answer_size(1);
  EXPECT_FALSE(found);
  save();
  answer_size(3);
  ASSERT_TRUE(found && found->ok());
  EXPECT_EQ((*found)->size, 3u);
}

TEST_F(BehindARestart, AConnectionThatIsNewForAnotherReasonCostsOneCommit) {
  read();
  answer_read("abc");
  answer_commit(5);
  EXPECT_EQ(text_read(), "abc");
}

TEST_F(BehindARestart, WhatCannotBeSavedIsNotReadAsItWas) {
  read();
  answer_read("x");
  fail_commit(xdr::nfsstat3::NFS3ERR_IO);
  ASSERT_TRUE(read_ && !read_->ok());
  EXPECT_EQ(read_->error().sys, EIO);
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
