// SPDX-License-Identifier: Apache-2.0
// FileLocks: a file that stays open, but for less than before, or for fewer identities. Whoever had
// it open for writing is gone: others may be refused that until the server hears of it (share
// reservations, delegations, programs that are not to be executed while they are written).
#include <algorithm>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/file_request.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/stateid_check.h"

namespace nfsrdma::nfs4 {
using xdr::nfs_opnum4;

bool FileLocks::Open::asked_for(std::uint32_t its_access) const {
  std::uint32_t sum = 0;
  for (std::uint32_t one = xdr::OPEN4_SHARE_ACCESS_READ; one <= xdr::OPEN4_SHARE_ACCESS_BOTH; ++one)
    if ((asked >> one & 1) != 0 && (one & ~its_access) == 0) sum |= one;
  return sum == its_access;
}

void FileLocks::narrow(const AuthSys& identity, const FileHandle& handle, std::uint32_t access) {
  const FileRef file = files_.empty() ? nullptr : find(handle);
  if (file == nullptr || stopped_ || session_.minor() == 0) return;
  for (const OpenRef& open : file->opens) {
    const bool its = open->identity == identity && open->deny.access == 0 && !open->unfinished;
    if (its) open->wanted &= access;
  }
  // One that is being made has nothing yet, either.
  if (!file->busy) drop_empty_opens(*file);
  narrow_soon(file);
}

void FileLocks::narrow_soon(const FileRef& file) {
  const bool any = std::any_of(file->opens.begin(), file->opens.end(), [&](const OpenRef& open) {
    return is_wider_than_wanted(*file, *open);
  });
  if (!any || !file->in_use || file->narrowing || stopped_ || session_.minor() == 0) return;
  file->narrowing = true;
  tasks_.spawn(narrow_later(file));
}

bool FileLocks::is_wider_than_wanted(const File& file, const Open& open) {
  // What locks rely on stays.
  const bool carries =
      std::any_of(file.lockers.begin(), file.lockers.end(),
                  [&](const LockerRef& locker) { return locker->open.get() == &open; });
  const bool certain = open.stateid && open.doubtful == 0 && !open.unfinished;
  return certain && !carries && (open.access & ~open.wanted) != 0;
}

Task<void> FileLocks::narrow_later(FileRef file) {
  // A program that opens and closes the file again and again has it open meanwhile.
  co_await pauses_.pause(kGather, &stopping_);
  file->narrowing = false;
  if (stopped_) co_return;
  co_await carry_out(std::make_shared<Request>(Request::What::kNarrow, file, AuthSys{}));
}

Task<void> FileLocks::narrow_now(File& file, const OpContext& op) {
  const std::vector<OpenRef> opens = file.opens;
  for (const OpenRef& open : opens) {
    // Nobody has it open at all: a CLOSE is on its way.
    if (!file.in_use || !is_wider_than_wanted(file, *open)) continue;
    OpContext as_opener = op;
    as_opener.identity = open->identity;
    if (open->wanted != 0) {
      co_await downgrade(file, as_opener, *open);
      continue;
    }
    open->closing = true;  // whoever opens it meanwhile asks for it
    [[maybe_unused]] const bool closed = co_await close_one(file, as_opener, *open);
    open->closing = false;
  }
  drop_empty_opens(file);
}

Task<void> FileLocks::downgrade(File& file, const OpContext& op, Open& open) {
  const std::uint32_t access = open.wanted;
  // Whoever wants more meanwhile asks for it, behind this.
  open.access = access;
  const OwnerBytes owner(open.owner);
  // Only what an OPEN has asked for just so can be gone back to (RFC 8881, 18.18.3).
  const bool asked = open.asked_for(access);
  bool done = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
    if (!asked) {
      xdr::OPEN4args args;
      args.share_access = access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
      args.share_deny = share_deny(open.deny);
      args.owner = owner.of(session_);
      args.claim.claim = xdr::open_claim_type4::CLAIM_FH;
      out.op(nfs_opnum4::OP_OPEN, args);
    }
    const xdr::stateid4 stateid = asked ? newest(session_, open.stateid) : kCurrentStateid;
    out.op(nfs_opnum4::OP_OPEN_DOWNGRADE,
           xdr::OPEN_DOWNGRADE4args{stateid, 0, access, share_deny(open.deny)});
  };
  auto parse = [&](CompoundReader& in) {
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    xdr::OPEN4res opened;
    if (!asked && !in.next(nfs_opnum4::OP_OPEN, opened)) return;
    if (!asked) open.stateid = opened.resok4.stateid;
    xdr::OPEN_DOWNGRADE4res got;
    if (!in.next(nfs_opnum4::OP_OPEN_DOWNGRADE, got)) return;
    open.stateid = got.resok4.open_stateid;
    done = true;
  };
  Result<Ending> end = co_await call(session_, op, {.once = true}, build, parse);
  if (done) {
    open.asked = 1u << access;
    co_return;
  }
  // It is as wide there as it was, which does no harm but to others, or the server has lost it.
  if (!end.ok() && !asked) open.doubtful = access;
  if (!end.ok() || !state_is_gone(end->status)) co_return;
  free_if_revoked(end->status, open, open.stateid);
  lose(file, open);
}

}  // namespace nfsrdma::nfs4
