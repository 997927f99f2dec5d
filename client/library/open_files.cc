// SPDX-License-Identifier: Apache-2.0
#include "client/library/open_files.h"

#include <cerrno>

namespace nfsrdma {
namespace {

OpenFor open_for(OpenFiles::Share share, LockOwnerId owner) {
  OpenFor how{.access = share.access};
  if (share.deny != 0) how.deny = {share.deny, owner};
  return how;
}

const Error kDenied{Errc::kSystem, EACCES, "open: does not go with what the file is open for"};

}  // namespace

bool OpenFiles::goes_together(const FileHandle& file, Share share) const {
  const auto found = files_.find(file);
  if (found == files_.end()) return true;
  const Known& known = found->second;
  return (known.deny.access() & share.access) == 0 && (known.access.access() & share.deny) == 0;
}

Task<Result<std::unique_ptr<OpenFile>>> OpenFiles::open(FileHandle file, Share share,
                                                        const std::optional<FilePlace>& place) {
  if (!goes_together(file, share)) co_return kDenied;
  // Counted first, so that nobody closes it meanwhile, or opens it in spite of it.
  auto opened = std::make_unique<OpenFile>(*this, file, share, place, next_owner());
  const OpContext op = opened->context();
  const OpenFor how = open_for(share, opened->owner_);
  NFSRDMA_CO_TRY(const AccessResult found, co_await mount_.open(op, file, share.access, how));
  if ((found.allowed & share.access) != share.access)
    co_return Error{Errc::kSystem, EACCES, "open"};
  co_return std::move(opened);
}

Task<Result<std::unique_ptr<OpenFile>>> OpenFiles::create(FilePlace where, CreateMode mode,
                                                          SetAttributes attributes, Share share) {
  // It is open behind create_open() only where that is not by name.
  if (share.deny != 0 && mount_.opens_by_name()) {
    NFSRDMA_CO_TRY(const CreateResult there,
                   co_await mount_.create(op_, where.directory, where.name, mode, attributes));
    const std::optional<FilePlace> place = std::move(where);
    co_return co_await open(there.handle, share, place);
  }
  const LockOwnerId owner = next_owner();
  const OpenFor how = open_for(share, owner);
  NFSRDMA_CO_TRY(
      const CreateResult made,
      co_await mount_.create_open(op_, where.directory, where.name, mode, attributes, how));
  // It may have been there, and open here: what its opens say counts as for any other.
  const bool fits = goes_together(made.handle, share);
  auto opened = std::make_unique<OpenFile>(*this, made.handle, share, std::move(where), owner);
  if (!fits) co_return kDenied;
  co_return std::move(opened);
}

void OpenFiles::closed(const OpenFile& file) {
  const auto found = files_.find(file.file_);
  if (found == files_.end()) return;
  Known& known = found->second;
  known.access.remove(file.share_.access);
  if (file.share_.deny != 0) known.deny.remove(file.share_.deny);
  const std::uint32_t left = known.access.access();
  if (left == 0) files_.erase(found);
  if (!mount_.holds(file.file_)) return;
  if (left == 0) return mount_.close(file.file_);
  if (file.share_.deny != 0) return mount_.drop_denial(op_, file.file_, file.owner_);
  if ((file.share_.access & ~left) != 0) mount_.narrow_open(op_, file.file_, left);
}

Task<void> OpenFile::end_denial() {
  if (share_.deny == 0) co_return;
  co_await files_.mount_.end_denial(files_.op_, file_, owner_);
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
  Result<void> done = co_await files_.mount_.lock(op, file_, wanted, how, share_.access);
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
