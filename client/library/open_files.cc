// SPDX-License-Identifier: Apache-2.0
#include "client/library/open_files.h"

#include <cerrno>

namespace nfsrdma {
namespace {}  // namespace

Task<Result<std::unique_ptr<OpenFile>>> OpenFiles::open(FileHandle file, std::uint32_t access,
                                                        const std::optional<FilePlace>& place) {
  // Counted first, so that nobody closes it meanwhile.
  auto opened = std::make_unique<OpenFile>(*this, file, access, place);
  const OpenFor how{access, false};
  NFSRDMA_CO_TRY(const AccessResult found, co_await mount_.open(op_, file, access, how));
  if ((found.allowed & access) != access) co_return Error{Errc::kSystem, EACCES, "open"};
  co_return std::move(opened);
}

std::unique_ptr<OpenFile> OpenFiles::adopt(const FileHandle& file, std::uint32_t access,
                                           std::optional<FilePlace> place) {
  return std::make_unique<OpenFile>(*this, file, access, std::move(place));
}

void OpenFiles::closed(const FileHandle& file, std::uint32_t access) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  found->second.remove(access);
  const std::uint32_t left = found->second.access();
  if (left == 0) files_.erase(found);
  if (!mount_.holds(file)) return;
  if (left == 0) return mount_.close(file);
  if ((access & ~left) != 0) mount_.narrow_open(op_, file, left);
}

Task<Result<void>> OpenFile::lock(LockKind kind, ByteRange range, Duration wait) {
  locked_ |= files_.mount_.has_locks();
  const auto over = std::make_shared<CancelToken>();
  bool out_of_time = false;
  OpContext op = context();
  op.cancel = over.get();
  // Posted, since cancelling ends this and with it the timer.
  EventLoop& loop = files_.mount_.loop();
  Timer timer([&loop, &out_of_time, over] {
    out_of_time = true;
    loop.post([over] { over->cancel(); });
  });
  const bool patient = wait > Duration::zero();
  if (patient && wait < Duration::max()) timer.arm_after(loop, wait);
  const FileLock wanted{owner_, kind, range};
  const LockWait how = patient ? LockWait::kYes : LockWait::kNo;
  Result<void> done = co_await files_.mount_.lock(op, file_, wanted, how, access_);
  if (!done.ok() && out_of_time) co_return Error{Errc::kSystem, EAGAIN, "lock"};
  co_return done;
}

Task<Result<void>> OpenFile::unlock(ByteRange range) {
  const OpContext op = context();
  const FileLock what{owner_, LockKind::kWrite, range};
  co_return co_await files_.mount_.unlock(op, file_, what);
}

Task<Result<void>> OpenFile::unlock_all() {
  if (!locked_) co_return Result<void>();
  co_return co_await unlock(kAllBytes);
}

Task<Result<std::optional<LockHolder>>> OpenFile::test_lock(LockKind kind, ByteRange range) {
  const OpContext op = context();
  const FileLock wanted{owner_, kind, range};
  co_return co_await files_.mount_.test_lock(op, file_, wanted);
}

}  // namespace nfsrdma
