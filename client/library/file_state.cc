// SPDX-License-Identifier: Apache-2.0
#include "client/library/file_state.h"

namespace nfsrdma {

namespace {

/// When the pieces of one write came back with different verifiers the server restarted in between:
/// a verifier that no COMMIT will return makes all of it count as lost.
std::uint64_t kept_verifier(const WriteResult& written) {
  return written.verifier_changed ? ~written.verifier : written.verifier;
}

}  // namespace

FileState::~FileState() {
  budget_.used_ -= unstable_.bytes();
}

void FileState::account(std::size_t before) {
  budget_.used_ += unstable_.bytes() - before;
  if (unstable_.empty()) {
    unlink();
  } else if (!linked()) {
    budget_.files_.push_back(*this);
  }
}

Task<Result<std::size_t>> FileState::read(const OpContext& op, MutableByteSpan into,
                                          std::uint64_t offset) {
  NFSRDMA_CO_TRY(ReadResult result, co_await mount_.read(op, handle_, offset, into));
  co_return result.count;
}

Task<Result<std::size_t>> FileState::write(const OpContext& op, ByteSpan data,
                                           std::uint64_t offset) {
  NFSRDMA_CO_TRY(std::size_t written, co_await write_here(op, data, offset));
  NFSRDMA_CO_CHECK_OK(co_await make_room(op));
  co_return written;
}

Task<Result<std::size_t>> FileState::write_here(const OpContext& op, ByteSpan data,
                                                std::uint64_t offset) {
  while (alone_)
    co_await changed_.wait();
  ++writers_;
  const Stability how = budget_.limit == 0 ? Stability::kFileSync : stability_;
  Result<WriteResult> written = co_await mount_.write(op, handle_, offset, data, how);
  bool again = false;
  if (written.ok()) {
    const std::size_t before = unstable_.bytes();
    if (written->stability == Stability::kUnstable) {
      unstable_.wrote(offset, data, kept_verifier(*written));
      again = written->verifier_changed;
    } else {
      unstable_.forget(offset, data.size());
    }
    account(before);
  }
  if (--writers_ == 0) changed_.wake_all();
  if (!written.ok()) co_return written.error();
  if (again) {
    // Some pieces of this very write may be lost already; which ones only a flush finds out.
    NFSRDMA_CO_CHECK_OK(co_await flush(op));
  }
  co_return data.size();
}

/// Flushes whatever was written to longest ago until the budget holds.
Task<Result<void>> FileState::make_room(const OpContext& op) {
  while (budget_.limit != 0 && budget_.used() > budget_.limit && budget_.oldest() != nullptr) {
    const std::shared_ptr<FileState> oldest = budget_.oldest()->shared_from_this();
    if (oldest.get() == this) {
      NFSRDMA_CO_CHECK_OK(co_await flush(op));
    } else {
      Result<void> flushed = co_await oldest->flush_for_others(op);
      if (!flushed.ok()) break;
    }
  }
  co_return Result<void>();
}

Task<void> FileState::begin_alone() {
  while (alone_)
    co_await changed_.wait();
  alone_ = true;
  while (writers_ != 0)
    co_await changed_.wait();
}

void FileState::end_alone() {
  alone_ = false;
  changed_.wake_all();
}

Task<Result<void>> FileState::flush(const OpContext& op) {
  co_await begin_alone();
  Result<void> result = co_await flush_alone(op);
  if (result.ok() && failed_) result = *std::exchange(failed_, std::nullopt);
  end_alone();
  co_return std::move(result);
}

Task<Result<void>> FileState::flush_for_others(const OpContext& op) {
  co_await begin_alone();
  Result<void> result = co_await flush_alone(op);
  // Before the owner goes on, who may be waiting to flush and close it.
  if (!result.ok()) failed_ = result.error();
  end_alone();
  co_return std::move(result);
}

Task<Result<void>> FileState::flush_alone(const OpContext& op) {
  while (!unstable_.empty()) {
    const std::uint64_t mark = unstable_.mark();
    NFSRDMA_CO_TRY(CommitResult commit, co_await mount_.commit(op, handle_, 0, 0));
    const std::size_t before = unstable_.bytes();
    unstable_.committed(mark, commit.verifier);
    account(before);
    NFSRDMA_CO_CHECK_OK(co_await write_again(op));
  }
  co_return Result<void>();
}

Task<Result<void>> FileState::write_again(const OpContext& op) {
  while (unstable_.has_lost()) {
    const std::size_t before = unstable_.bytes();
    UnstableData::Piece piece = *unstable_.take_lost();
    account(before);
    Result<WriteResult> written =
        co_await mount_.write(op, handle_, piece.offset, piece.bytes, Stability::kUnstable);
    if (!written.ok()) co_return written.error();
    const std::size_t now = unstable_.bytes();
    if (written->stability == Stability::kUnstable) {
      unstable_.wrote(std::move(piece), kept_verifier(*written));
    }
    account(now);
  }
  co_return Result<void>();
}

Task<Result<void>> FileState::truncate(const OpContext& op, std::uint64_t size) {
  NFSRDMA_CO_CHECK_OK(co_await flush(op));
  SetAttributes set;
  set.size = size;
  NFSRDMA_CO_CHECK_OK(co_await mount_.setattr(op, handle_, set));
  co_return Result<void>();
}

}  // namespace nfsrdma
