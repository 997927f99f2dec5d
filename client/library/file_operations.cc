// SPDX-License-Identifier: Apache-2.0
// File: locks, holes, space and copies. What is not stable yet goes to the server first, so that it
// sees what the program wrote.
#include <cerrno>

#include "client/library/mount_impl.h"

namespace nfsrdma::client {
namespace {

template <typename T>
using Outcome = nfsrdma::Result<T>;

const Error kNoRange{Errc::kInvalid, EINVAL, "range"};
/// Of a file that is none, as far as locks go: a directory.
const Error kNotOpen{Errc::kSystem, EINVAL, "not a regular file"};

std::error_code bad_descriptor() {
  return std::make_error_code(std::errc::bad_file_descriptor);
}

std::optional<ByteRange> bytes_of(std::uint64_t offset, std::uint64_t length) {
  return byte_range(offset, length == 0 ? UINT64_MAX : length);
}

LockKind kind_of(LockType type) {
  return type == LockType::kShared ? LockKind::kRead : LockKind::kWrite;
}

Task<Outcome<void>> lock_range(File::Impl& file, LockRange wanted, Duration wait) {
  OpenFile* opened = file.state->opened();
  if (opened == nullptr) co_return kNotOpen;
  const std::optional<ByteRange> range = bytes_of(wanted.offset, wanted.length);
  if (!range) co_return kNoRange;
  Outcome<void> done = co_await opened->lock(kind_of(wanted.type), *range, wait);
  file.mount->keep(opened->handle());
  co_return done;
}

Task<Outcome<void>> unlock_range(File::Impl& file, std::uint64_t offset, std::uint64_t length) {
  OpenFile* opened = file.state->opened();
  if (opened == nullptr) co_return kNotOpen;
  const std::optional<ByteRange> range = bytes_of(offset, length);
  if (!range) co_return kNoRange;
  Outcome<void> flushed = co_await file.state->flush(file.mount->op);
  Outcome<void> done = co_await opened->unlock(*range);
  if (!flushed.ok()) co_return flushed;
  co_return done;
}

Task<Outcome<std::optional<LockRange>>> find_lock(File::Impl& file, LockRange wanted) {
  OpenFile* opened = file.state->opened();
  if (opened == nullptr) co_return kNotOpen;
  const std::optional<ByteRange> range = bytes_of(wanted.offset, wanted.length);
  if (!range) co_return kNoRange;
  NFSRDMA_CO_TRY(const std::optional<LockHolder> found,
                 co_await opened->test_lock(kind_of(wanted.type), *range));
  if (!found) co_return std::optional<LockRange>();
  const FileLock& lock = found->lock;
  const bool to_the_end = lock.range.last == UINT64_MAX;
  co_return std::optional<LockRange>(
      LockRange{lock.kind == LockKind::kRead ? LockType::kShared : LockType::kExclusive,
                lock.range.first, to_the_end ? 0 : length_of(lock.range)});
}

Task<Outcome<std::uint64_t>> find_place(File::Impl& file, std::uint64_t offset, SeekFor what) {
  Mount::Impl& mount = *file.mount;
  NFSRDMA_CO_CHECK_OK(co_await file.state->flush(mount.op));
  co_return co_await mount.mount->seek(mount.op, file.state->handle(), offset, what);
}

Task<Outcome<void>> change_space(File::Impl& file, bool take, std::uint64_t offset,
                                 std::uint64_t length) {
  Mount::Impl& mount = *file.mount;
  NFSRDMA_CO_CHECK_OK(co_await file.state->flush(mount.op));
  const FileHandle& handle = file.state->handle();
  Outcome<Wcc> done = Wcc{};
  if (take) {
    done = co_await mount.mount->allocate(mount.op, handle, offset, length);
  } else {
    done = co_await mount.mount->deallocate(mount.op, handle, offset, length);
  }
  if (!done.ok()) co_return done.error();
  co_return Outcome<void>();
}

Task<Outcome<std::uint64_t>> copy_bytes(File::Impl& from, std::uint64_t offset, File::Impl& to,
                                        std::uint64_t to_offset, std::uint64_t length) {
  Mount::Impl& mount = *from.mount;
  NFSRDMA_CO_CHECK_OK(co_await from.state->flush(mount.op));
  NFSRDMA_CO_CHECK_OK(co_await to.state->flush(mount.op));
  // What lies behind the end must not be asked for (RFC 7862, 15.2.3).
  const FileHandle& handle = from.state->handle();
  NFSRDMA_CO_TRY(const Attributes now, co_await mount.mount->getattr(mount.op, handle));
  if (offset >= now.size) co_return std::uint64_t{0};
  const std::uint64_t count = std::min(length, now.size - offset);
  if (count == 0) co_return std::uint64_t{0};
  NFSRDMA_CO_TRY(
      const CopyResult copied,
      co_await mount.mount->copy(mount.op, handle, offset, to.state->handle(), to_offset, count));
  co_return copied.count;
}

}  // namespace

Result<void> File::lock(const LockRange& range, std::chrono::milliseconds wait) {
  const bool shared = range.type == LockType::kShared;
  if (!impl_ || !(shared ? impl_->readable : impl_->writable)) return bad_descriptor();
  // Longer than this program lives, and so that nothing overflows.
  const bool for_ever = wait > std::chrono::hours(24 * 365);
  const Duration longest = for_ever ? Duration::max() : Duration(wait);
  return impl_->mount->run(lock_range(*impl_, range, longest));
}

Result<void> File::unlock(std::uint64_t offset, std::uint64_t length) {
  if (!impl_) return bad_descriptor();
  return impl_->mount->run(unlock_range(*impl_, offset, length));
}

Result<std::optional<LockRange>> File::test_lock(const LockRange& range) {
  if (!impl_) return bad_descriptor();
  return impl_->mount->run(find_lock(*impl_, range));
}

Result<std::uint64_t> File::seek(std::uint64_t offset, SeekWhat what) {
  if (!impl_) return bad_descriptor();
  const SeekFor wanted = what == SeekWhat::kData ? SeekFor::kData : SeekFor::kHole;
  return impl_->mount->run(find_place(*impl_, offset, wanted));
}

Result<void> File::allocate(std::uint64_t offset, std::uint64_t length) {
  if (!impl_ || !impl_->writable) return bad_descriptor();
  return impl_->mount->run(change_space(*impl_, true, offset, length));
}

Result<void> File::deallocate(std::uint64_t offset, std::uint64_t length) {
  if (!impl_ || !impl_->writable) return bad_descriptor();
  return impl_->mount->run(change_space(*impl_, false, offset, length));
}

Result<std::uint64_t> File::copy_range(std::uint64_t offset, File& to, std::uint64_t to_offset,
                                       std::uint64_t length) {
  if (!impl_ || !impl_->readable || !to.impl_ || !to.impl_->writable) return bad_descriptor();
  if (impl_->mount != to.impl_->mount) return std::make_error_code(std::errc::cross_device_link);
  return impl_->mount->run(copy_bytes(*impl_, offset, *to.impl_, to_offset, length));
}

}  // namespace nfsrdma::client
