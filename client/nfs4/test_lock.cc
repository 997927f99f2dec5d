// SPDX-License-Identifier: Apache-2.0
// FileLocks: LOCKT, which changes nothing and waits for no file's turn.
#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/file_locks.h"
#include "client/nfs4/owner_bytes.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

}  // namespace

Task<Result<std::optional<LockHolder>>> FileLocks::test(const OpContext& op,
                                                        const FileHandle& handle, FileLock wanted) {
  std::uint64_t name = wanted.owner;
  if (const FileRef file = find(handle)) {
    if (const Locker* locker = find_locker(*file, wanted.owner)) name = name_of(*locker);
    const auto* mine = file->held.conflict(wanted.owner, wanted.kind, wanted.range);
    if (mine != nullptr) {
      co_return std::optional(LockHolder{{mine->owner, mine->kind, mine->range}, true});
    }
  }
  NFSRDMA_CO_CHECK_OK(co_await session_.allow_opens(op));
  const OwnerBytes owner(name);
  using enum xdr::nfs_lock_type4;
  const xdr::nfs_lock_type4 type = wanted.kind == LockKind::kRead ? READ_LT : WRITE_LT;
  std::optional<LockHolder> holder;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(handle));
    out.op(nfs_opnum4::OP_LOCKT,
           xdr::LOCKT4args{type, wanted.range.first, length_of(wanted.range), owner.of(session_)});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::LOCKT4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    in.next(nfs_opnum4::OP_LOCKT, got);
    if (got.status != nfsstat4::NFS4ERR_DENIED) return;
    const xdr::LOCK4denied& denied = got.denied;
    const bool write = denied.locktype == xdr::nfs_lock_type4::WRITE_LT ||
                       denied.locktype == xdr::nfs_lock_type4::WRITEW_LT;
    holder.emplace();
    holder->lock.kind = write ? LockKind::kWrite : LockKind::kRead;
    holder->lock.range = byte_range(denied.offset, denied.length).value_or(kAllBytes);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK && !holder) co_return status_error(end.status, "LOCKT");
  co_return holder;
}

std::vector<LockOwnerId> FileLocks::owners_in_the_way(const FileHandle& handle,
                                                      const FileLock& wanted) const {
  const FileRef file = find(handle);
  if (file == nullptr) return {};
  return nfsrdma::owners_in_the_way(file->held, wanted);
}

}  // namespace nfsrdma::nfs4
