// SPDX-License-Identifier: Apache-2.0
#include "client/library/file_data.h"

#include <algorithm>
#include <vector>

namespace nfsrdma {

namespace {

/// When the pieces of one write came back with different verifiers the server restarted in between:
/// a verifier that no COMMIT will return makes all of it count as lost.
std::uint64_t kept_verifier(const WriteResult& written) {
  return written.verifier_changed ? ~written.verifier : written.verifier;
}

/// As off_t has it: an lseek() that failed and was not looked at is 2^64 - 1 here.
constexpr std::uint64_t kLargestOffset = INT64_MAX;
constexpr Error kNegative{Errc::kInvalid, EINVAL, "negative offset"};

/// COMMITs that made nothing stable, one behind the other, before that is an error. A server that
/// restarts has new verifiers once or twice; one that never has the same one would be asked for
/// ever, and nobody can interrupt that.
constexpr int kLostInARow = 8;

}  // namespace

std::shared_ptr<FileData> UnstableBudget::find(const FileHandle& handle) const {
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second->shared_from_this();
}

std::shared_ptr<FileData> UnstableBudget::obtain(AsyncMount& mount, const FileHandle& handle) {
  if (auto known = find(handle)) return known;
  return std::make_shared<FileData>(mount, *this, handle);
}

FileData::FileData(AsyncMount& mount, UnstableBudget& budget, const FileHandle& handle)
    : mount_(mount), budget_(budget), handle_(handle) {
  budget_.by_handle_.emplace(handle_, this);
}

FileData::~FileData() {
  budget_.used_ -= unstable_.memory();
  budget_.by_handle_.erase(handle_);
}

void FileData::account(std::size_t before) {
  budget_.used_ += unstable_.memory() - before;
  if (unstable_.empty()) {
    unlink();
  } else if (!linked()) {
    budget_.files_.push_back(*this);
  }
}

Task<Result<std::size_t>> FileData::write(const OpContext& op, ByteSpan data, std::uint64_t offset,
                                          Stability stability) {
  if (offset > kLargestOffset) co_return kNegative;
  if (data.size() > kLargestOffset - offset) {
    co_return Error{Errc::kInvalid, EFBIG, "bytes behind the largest offset"};
  }
  std::size_t done = 0;
  do {
    const ByteSpan part = data.subspan(done, std::min(data.size() - done, most_at_once()));
    NFSRDMA_CO_CHECK_OK(co_await write_part(op, part, offset + done, stability));
    done += part.size();
  } while (done < data.size());
  co_return data.size();
}

/// So that a write of any size is kept in parts that the budget has room for.
std::size_t FileData::most_at_once() const {
  if (budget_.limit == 0) return SIZE_MAX;
  return std::max<std::size_t>(budget_.limit / 4, mount_.write_size());
}

Task<Result<void>> FileData::write_part(const OpContext& op, ByteSpan data, std::uint64_t offset,
                                        Stability stability) {
  NFSRDMA_CO_CHECK_OK(co_await write_here(op, data, offset, stability));
  Result<void> room = co_await make_room(op);
  if (!room.ok()) {
    // It has failed, and nothing of it is kept: who goes on in spite of that would fill the memory.
    const std::size_t before = unstable_.memory();
    unstable_.forget(offset, data.size());
    account(before);
  }
  co_return std::move(room);
}

Task<Result<void>> FileData::write_here(const OpContext& op, ByteSpan data, std::uint64_t offset,
                                        Stability stability) {
  while (alone_)
    co_await changed_.wait();
  ++writers_;
  const Stability how = budget_.limit == 0 ? Stability::kFileSync : stability;
  const std::uint64_t sent_over = mount_.connections_made();
  Result<WriteResult> written = co_await mount_.write(op, handle_, offset, data, how);
  bool again = false;
  if (written.ok()) {
    const std::size_t before = unstable_.memory();
    if (written->stability == Stability::kUnstable) {
      written_over_ = unstable_.empty() ? sent_over : std::min(written_over_, sent_over);
      unstable_.wrote(offset, data, kept_verifier(*written));
      // A server that was asked for stable storage, and has not done it, is taken at its word.
      again = written->verifier_changed || how != Stability::kUnstable;
    } else {
      unstable_.forget(offset, data.size());
    }
    account(before);
  }
  if (--writers_ == 0) changed_.wake_all();
  if (!written.ok()) co_return written.error();
  if (again) {
    // Some pieces of this very write may be lost already; which ones only a flush finds out.
    std::uint64_t told = errors_;
    NFSRDMA_CO_CHECK_OK(co_await flush(op, &told));
  }
  co_return Result<void>();
}

/// Flushes whatever was written to longest ago until the budget holds. What the server does not
/// make stable, of files that others have open, is in nobody's way: an error is of this file.
Task<Result<void>> FileData::make_room(const OpContext& op) {
  std::vector<std::shared_ptr<FileData>> failed;
  while (budget_.exceeded() && budget_.oldest() != nullptr) {
    const std::shared_ptr<FileData> oldest = budget_.oldest()->shared_from_this();
    // Those that fail come round again when others move them, too: then it is up to this one.
    const bool again = std::find(failed.begin(), failed.end(), oldest) != failed.end();
    if (again) co_return co_await flush_for_others(op);
    Result<void> flushed = co_await oldest->flush_for_others(op);
    if (flushed.ok()) continue;
    if (oldest.get() == this) co_return std::move(flushed);
    if (oldest->linked()) budget_.files_.push_back(*oldest);
    failed.push_back(oldest);
  }
  co_return Result<void>();
}

Task<Result<std::size_t>> FileData::read(const OpContext& op, MutableByteSpan into,
                                         std::uint64_t offset) {
  if (offset > kLargestOffset) co_return kNegative;
  into = into.first(std::min<std::uint64_t>(into.size(), kLargestOffset - offset));
  for (;;) {
    const std::uint64_t restored = restored_;
    NFSRDMA_CO_TRY(const ReadResult found, co_await mount_.read(op, handle_, offset, into));
    NFSRDMA_CO_TRY(const bool certain, co_await is_certain(op, restored));
    if (certain) co_return found.count;
  }
}

Task<Result<Attributes>> FileData::getattr(const OpContext& op) {
  for (;;) {
    const std::uint64_t restored = restored_;
    NFSRDMA_CO_TRY(const Attributes found, co_await mount_.getattr(op, handle_));
    NFSRDMA_CO_TRY(const bool certain, co_await is_certain(op, restored));
    if (certain) co_return found;
  }
}

Task<Result<bool>> FileData::is_certain(const OpContext& op, std::uint64_t restored) {
  if (in_doubt()) NFSRDMA_CO_CHECK_OK(co_await flush_for_others(op));
  co_return restored_ == restored;
}

Task<void> FileData::begin_alone() {
  while (alone_)
    co_await changed_.wait();
  alone_ = true;
  while (writers_ != 0)
    co_await changed_.wait();
}

void FileData::end_alone() {
  alone_ = false;
  changed_.wake_all();
}

Task<Result<void>> FileData::flush(const OpContext& op, std::uint64_t* told) {
  co_await begin_alone();
  Result<void> result = co_await flush_alone(op);
  const bool unheard = std::exchange(*told, errors_) != errors_;
  if (result.ok() && unheard) result = *error_;
  end_alone();
  co_return std::move(result);
}

Task<Result<void>> FileData::flush_for_others(const OpContext& op) {
  co_await begin_alone();
  Result<void> result = co_await flush_alone(op);
  end_alone();
  co_return std::move(result);
}

Task<Result<void>> FileData::flush_alone(const OpContext& op) {
  Result<void> result = co_await commit_all(op);
  if (!result.ok()) {
    ++errors_;
    error_ = result.error();
  }
  co_return std::move(result);
}

Task<Result<void>> FileData::commit_all(const OpContext& op) {
  int lost_in_a_row = 0;
  while (!unstable_.empty()) {
    const std::uint64_t mark = unstable_.mark();
    NFSRDMA_CO_TRY(CommitResult commit, co_await mount_.commit(op, handle_, 0, 0));
    const std::size_t before = unstable_.memory();
    unstable_.committed(mark, commit.verifier);
    account(before);
    lost_in_a_row = unstable_.memory() < before ? 0 : lost_in_a_row + 1;
    if (lost_in_a_row == kLostInARow) {
      co_return Error{Errc::kProtocol, EIO, "the server keeps losing what it has committed"};
    }
    NFSRDMA_CO_CHECK_OK(co_await write_again(op));
  }
  co_return Result<void>();
}

Task<Result<void>> FileData::write_again(const OpContext& op) {
  while (unstable_.has_lost()) {
    const std::size_t before = unstable_.memory();
    UnstableData::Piece piece = *unstable_.take_lost();
    account(before);
    Result<WriteResult> written =
        co_await mount_.write(op, handle_, piece.offset, piece.bytes, Stability::kUnstable);
    if (!written.ok()) co_return written.error();
    ++restored_;
    const std::size_t now = unstable_.memory();
    if (written->stability == Stability::kUnstable) {
      unstable_.wrote(std::move(piece), kept_verifier(*written));
    }
    account(now);
  }
  co_return Result<void>();
}

Task<Result<void>> FileData::change(const OpContext& op, SetAttributes set) {
  co_await begin_alone();
  // What goes wrong with the data is for those who have the file open, but what may come to be on
  // the server later would undo this.
  Result<void> result = co_await flush_alone(op);
  if (result.ok()) {
    const Result<Wcc> done = co_await mount_.setattr(op, handle_, set);
    if (!done.ok()) result = done.error();
  }
  end_alone();
  co_return std::move(result);
}

}  // namespace nfsrdma
