// SPDX-License-Identifier: Apache-2.0
// FileLocks: locks on the server that nobody here wants. Who asked was killed, or was told that the
// request timed out (soft mounts), and the server may have done it all the same.
#include <algorithm>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/file_request.h"
#include "client/nfs4/owner_bytes.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::stateid4;

/// Between attempts to let go of what the server did not answer.
constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::seconds(15);

}  // namespace

Task<Result<void>> FileLocks::undo(File& file, const OpContext& op, FileLock granted,
                                   ByteRangeLocks kept) {
  // What its owner had in the range it keeps, if by the newer kind.
  const std::vector<ByteRange> gaps = kept.gaps(granted.owner, granted.range);
  for (const ByteRange& gap : gaps) {
    const FileLock what{granted.owner, granted.kind, gap};
    NFSRDMA_CO_CHECK_OK(co_await unlock_now(file, op, what));
  }
  co_return Result<void>();
}

Task<Result<void>> FileLocks::settle_doubt(File& file, const OpContext& op, Locker& locker) {
  const FileLock asked = *locker.doubt;
  OpContext as_opener = op;
  as_opener.identity = locker.open->identity;
  OwnerBytes owner(asked.owner);
  std::optional<stateid4> granted;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
    out.op(nfs_opnum4::OP_LOCK, lock_args(locker, asked, &owner));
  };
  auto parse = [&](CompoundReader& in) {
    xdr::LOCK4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    if (next_lock(in, locker, true, got)) granted = got.resok4.lock_stateid;
  };
  if (locker.open->stateid) {
    NFSRDMA_CO_TRY(
        [[maybe_unused]] const Ending end,
        co_await call_in_sequence(session_, as_opener, {.once = true}, locker.open->sequence, build,
                                  parse, &locker.sequence));
  }
  locker.stateid = granted;
  locker.doubt.reset();
  co_return Result<void>();
}

bool FileLocks::in_doubt(const File& file, LockOwnerId owner) {
  const Locker* locker = find_locker(file, owner);
  return locker != nullptr && locker->doubt;
}

void FileLocks::let_go_later(const FileRef& file, Loose loose) {
  const bool known = std::find(file->loose.begin(), file->loose.end(), loose) != file->loose.end();
  if (!known) file->loose.push_back(loose);
  if (file->letting_go || stopped_) return;
  file->letting_go = true;
  tasks_.spawn(keep_letting_go(file));
}

Task<void> FileLocks::keep_letting_go(FileRef file) {
  for (Duration wait = kRetryFirst; !stopped_ && !file->moved && !file->loose.empty();
       wait = std::min(2 * wait, kRetryLongest)) {
    co_await pauses_.pause(wait, &stopping_);
    auto request = std::make_shared<Request>(Request::What::kLetGo, file, AuthSys{});
    [[maybe_unused]] Result<void> done = co_await perform(request, &stopping_);
  }
  file->letting_go = false;
}

Task<Result<void>> FileLocks::let_go(File& file, const OpContext& op) {
  while (!file.loose.empty()) {
    const Loose loose = file.loose.front();
    const ByteRangeLocks kept = loose.gone ? ByteRangeLocks() : file.held;
    Result<void> done = co_await undo(file, op, loose.what, kept);
    if (!done.ok() && in_doubt(file, loose.what.owner)) co_return done;
    std::erase(file.loose, loose);
  }
  co_return Result<void>();
}

}  // namespace nfsrdma::nfs4
