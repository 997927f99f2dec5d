// SPDX-License-Identifier: Apache-2.0
// FileLocks when the server has lost what it granted (RFC 8881, 8.4): reclaim after its restart,
// and what it has revoked.
#include <algorithm>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/file_locks.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/stateid_check.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using xdr::stateid4;

/// The server says so with each SEQUENCE until it is content, some of them for good.
constexpr Duration kCheckEvery = std::chrono::seconds(5);
constexpr Duration kCheckLongest = std::chrono::minutes(10);

/// Reclaims of one open, or lock, that come to nothing.
constexpr int kTries = 3;

/// That a reclaim was refused, and not just failed.
bool says_it_is_gone(nfsstat4 status) {
  return status == nfsstat4::NFS4ERR_NO_GRACE || status == nfsstat4::NFS4ERR_RECLAIM_BAD ||
         status == nfsstat4::NFS4ERR_RECLAIM_CONFLICT || status == nfsstat4::NFS4ERR_STALE ||
         state_is_gone(status);
}

/// Between rounds of those that the server has put off.
constexpr Duration kPutOffFirst = std::chrono::milliseconds(500);
constexpr Duration kPutOffLongest = std::chrono::seconds(15);

bool is_later(const Session& session, nfsstat4 status) {
  const bool sequenced = session.minor() > 0;
  return (sequenced ? remedy_of(status, false) : remedy_of_minor_0(status)) == Remedy::kLater;
}

/// Of one reclaim.
class Attempts {
 public:
  /// `reached`: the OPEN or LOCK. What failed in front of it says nothing of it, nor of a run
  /// before that. `stepped_back`: as OwnerSequence has it.
  bool another(nfsstat4 status, bool reached, bool stepped_back) {
    const bool unclear = !reached && !says_it_is_gone(status) && ++unclear_ < kTries;
    return unclear || (stepped_back && status == nfsstat4::NFS4ERR_BAD_SEQID);
  }

 private:
  int unclear_ = 0;
};

}  // namespace

std::vector<FileHandle> FileLocks::files() const {
  std::vector<FileHandle> all;
  all.reserve(files_.size());
  for (const auto& [file, row] : files_)
    all.push_back(file);
  return all;
}

std::vector<FileLocks::FileRef> FileLocks::all_files() const {
  std::vector<FileRef> all;
  for (const auto& [handle, file] : files_)
    all.push_back(file);
  return all;
}

void FileLocks::lose(File& file, Locker& locker, const char* why) {
  for (const ByteRangeLocks::Held& held : file.held.held()) {
    if (held.owner != locker.owner) continue;
    file.lost.put(held.owner, held.kind, held.range);
    ++lost_;
  }
  file.held.release(locker.owner);
  if (lost_ == 0) return;
  log_warning(
      "NFSv4.{}: {} lock{} lost: {}; reading and writing the file fails until its owner unlocks or "
      "closes it",
      session_.minor(), lost_, lost_ == 1 ? " is" : "s are", why);
  lost_ = 0;
}

void FileLocks::lose(File& file, Open& open, const char* why) {
  if (open.stateid && open.deny.access != 0 && open.wanted != 0) {
    // Others may have had it open since.
    file.undone_denials.push_back({open.deny.owner, *open.stateid});
    open.wanted = 0;
    log_warning(
        "NFSv4.{}: a share reservation is lost: {}; reading and writing the file fails until its "
        "owner closes it",
        session_.minor(), why);
  }
  open.stateid.reset();
  open.access = 0;
  open.asked = 0;
  open.doubtful = 0;
  open.locks_due = false;
  open.unsettled.reset();
  if (session_.minor() == 0) rename(open);
  for (const auto& locker : file.lockers) {
    if (locker->open.get() != &open) continue;
    locker->stateid.reset();
    locker->doubt.reset();
    lose(file, *locker, why);
  }
  if (open.wanted != 0) claim_later(file.handle);
}

// --- after a restart of the server ---

Task<Result<void>> FileLocks::reclaim(const OpContext& op) {
  std::vector<Due> due;
  for (const FileRef& file : all_files())
    for (const OpenRef& open : file->opens)
      if (open->stateid) due.push_back({file, open, false, std::nullopt, {}, nfsstat4::NFS4_OK});
  const TimePoint until = session_.rpc().environment().now() + session_.lease();
  // Asking is what keeps the others' lease.
  const Duration longest = std::min(kPutOffLongest, session_.lease() / 4);
  bool any_done = false;
  Duration wait = kPutOffFirst;
  for (;;) {
    // The server's time of grace goes by: who is put off lets all others go first.
    std::vector<Due> put_off;
    for (Due& one : due) {
      OpContext as_opener = op;
      as_opener.identity = one.open->identity;
      NFSRDMA_CO_TRY(const bool done, co_await reclaim_all_of(as_opener, one));
      any_done |= done || one.opened;
      if (!done) put_off.push_back(std::move(one));
    }
    if (put_off.empty()) co_return Result<void>();
    due = std::move(put_off);
    if (session_.rpc().environment().now() >= until) break;
    co_await session_.pause(wait, op.cancel);
    wait = std::min(2 * wait, longest);
  }
  // A server that says so to all of them is not ready: that is nothing about a file.
  if (!any_done) {
    co_return Error{Errc::kSystem, EIO, "reclaim: the server keeps saying: later"};
  }
  for (Due& one : due)
    give_up(one, kLostByDelay);
  co_return Result<void>();
}

Task<Result<bool>> FileLocks::reclaim_all_of(const OpContext& op, Due& due) {
  // Somebody may have found that it is lost.
  if (!due.open->stateid) co_return true;
  if (!due.opened) {
    NFSRDMA_CO_TRY(const bool answered, co_await reclaim_open(op, due));
    if (!answered || !due.opened) co_return answered;
  }
  while (!due.locks.empty()) {
    NFSRDMA_CO_TRY(const bool answered, co_await reclaim_lock(op, due));
    if (!answered) co_return false;
  }
  due.open->locks_due = false;
  if (!due.delegation) co_return true;
  co_return co_await return_delegation(op, due);
}

void FileLocks::give_up(Due& due, const char* why) {
  Open& open = *due.open;
  File& file = *due.file;
  if (due.opened) {
    // What of a locker's has come back already goes by its owner's unlocking.
    while (!due.locks.empty()) {
      const LockerRef locker = due.locks.back().locker;
      lose(file, *locker, why);
      std::erase_if(due.locks, [&](const Due::Lock& one) { return one.locker == locker; });
    }
    open.locks_due = false;
    return;
  }
  const bool may_stand = session_.client_id_kept() || !says_it_is_gone(due.status);
  if (session_.minor() == 0 && open.stateid && may_stand) {
    // Perhaps only the client id was in doubt.
    xdr::OPEN4resok standing;
    standing.stateid = *open.stateid;
    tasks_.spawn(close_stray(open.identity, file.handle, open.unsettled.value_or(Opened(standing)),
                             open.sequence));
  }
  lose(file, open, why);
}

Task<Result<bool>> FileLocks::reclaim_open(const OpContext& op, Due& due) {
  const OpenRef open = due.open;
  File& file = *due.file;
  const OwnerBytes owner(open->owner);
  std::optional<Opened> opened;
  bool reached = false;
  const Session::Builder build = [&](CompoundWriter& out) {
    xdr::OPEN4args args;
    args.seqid = open->sequence.send(session_);
    args.share_access = open->access;
    if (session_.minor() > 0) args.share_access |= xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.share_deny = share_deny(open->deny);
    args.owner = owner.of(session_);
    args.claim.claim = xdr::open_claim_type4::CLAIM_PREVIOUS;
    args.claim.delegate_type = xdr::open_delegation_type4::OPEN_DELEGATE_NONE;
    out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
    out.op(nfs_opnum4::OP_OPEN, args);
  };
  const Session::Parser parse = [&](CompoundReader& in) {
    xdr::OPEN4res got;
    reached = in.next(nfs_opnum4::OP_PUTFH);
    if (!reached) return;
    if (next_in_sequence(in, nfs_opnum4::OP_OPEN, got, open->sequence)) opened.emplace(got.resok4);
  };
  Attempts attempts;
  for (bool again = true; again;) {
    Result<nfsstat4> asked = co_await session_.ask_in_recovery(op, build, parse);
    open->sequence.over(asked.ok());
    if (!asked.ok()) co_return asked.error();
    due.status = *asked;
    if (is_later(session_, due.status)) co_return false;
    again = attempts.another(due.status, reached, open->sequence.stepped_back());
  }
  if (!opened) {
    give_up(due, kLostByServer);
    co_return true;
  }
  due.opened = true;
  due.delegation = opened->delegation;
  const bool same = open->stateid && open->stateid->other == opened->stateid.other;
  // With an open that stood all the time its locks stand, too.
  const bool stood = same && !open->locks_due && session_.minor() == 0 && session_.client_id_kept();
  const bool goes_on = same && open->locks_due;
  open->locks_due = !stood;
  open->stateid = opened->stateid;
  open->unsettled.reset();  // what is reclaimed is confirmed
  open->asked = 1u << open->access;
  if (stood) co_return true;
  const std::vector<ByteRangeLocks::Held> pieces = file.held.held();
  for (const LockerRef& locker : file.lockers) {
    if (locker->open != open) continue;
    if (!goes_on) {
      locker->stateid.reset();
      locker->doubt.reset();
    }
    for (const ByteRangeLocks::Held& piece : pieces) {
      if (piece.owner != locker->owner) continue;
      due.locks.push_back({locker, {piece.owner, piece.kind, piece.range}});
    }
  }
  std::reverse(due.locks.begin(), due.locks.end());
  co_return true;
}

Task<Result<bool>> FileLocks::return_delegation(const OpContext& op, Due& due) {
  const Session::Builder give = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(due.file->handle));
    out.op(nfs_opnum4::OP_DELEGRETURN, xdr::DELEGRETURN4args{*due.delegation});
  };
  const Session::Parser ignore = [](CompoundReader& in) { static_cast<void>(in); };
  NFSRDMA_CO_TRY(due.status, co_await session_.ask_in_recovery(op, give, ignore));
  if (is_later(session_, due.status)) co_return false;
  due.delegation.reset();
  co_return true;
}

Task<Result<bool>> FileLocks::reclaim_lock(const OpContext& op, Due& due) {
  const LockerRef locker = due.locks.back().locker;
  const FileLock what = due.locks.back().what;
  OwnerBytes owner(locker->owner);
  std::optional<stateid4> stateid;
  bool first = false;
  bool reached = false;
  const Session::Builder build = [&](CompoundWriter& out) {
    first = !locker->stateid;
    xdr::LOCK4args args = lock_args(*locker, what, &owner);
    args.reclaim = true;
    out.op(nfs_opnum4::OP_PUTFH, put(due.file->handle));
    out.op(nfs_opnum4::OP_LOCK, args);
  };
  const Session::Parser parse = [&](CompoundReader& in) {
    xdr::LOCK4res got;
    reached = in.next(nfs_opnum4::OP_PUTFH);
    if (!reached) return;
    if (next_lock(in, *locker, first, got)) stateid = got.resok4.lock_stateid;
  };
  Attempts attempts;
  for (bool again = true; again;) {
    Result<nfsstat4> asked = co_await session_.ask_in_recovery(op, build, parse);
    locker->open->sequence.over(asked.ok());
    locker->sequence.over(asked.ok());
    if (!asked.ok()) {
      if (first) locker->doubt = what;  // the next attempt keeps its name
      co_return asked.error();
    }
    due.status = *asked;
    bool stepped_back = locker->open->sequence.stepped_back();
    stepped_back |= locker->sequence.stepped_back();
    const bool later = is_later(session_, due.status);
    again = !later && attempts.another(due.status, reached, stepped_back);
    if ((again || later) && !reached) locker->doubt = what;  // it keeps its name
    if (later) co_return false;
  }
  if (stateid) {
    locker->stateid = stateid;
    locker->doubt.reset();
    due.locks.pop_back();
    co_return true;
  }
  // What came before this piece has come back: the owner's unlocking lets go of it.
  lose(*due.file, *locker);
  std::erase_if(due.locks, [&](const Due::Lock& one) { return one.locker == locker; });
  co_return true;
}

// --- revoked ---

void FileLocks::some_is_revoked() {
  const TimePoint now = session_.rpc().environment().now();
  const bool just_now = checked_at_ != TimePoint{} && now - checked_at_ < check_every_;
  if (checking_ || stopped_ || files_.empty() || just_now) return;
  checking_ = true;
  checked_at_ = now;
  tasks_.spawn(check_all());
}

void FileLocks::none_is_revoked() {
  // What it says next is news.
  check_every_ = std::min(check_every_, kCheckEvery);
}

Task<void> FileLocks::check_all() {
  OpContext op;
  op.cancel = &stopping_;
  bool found = false;
  const std::vector<FileRef> all = all_files();
  for (const FileRef& file : all) {
    const std::vector<LockerRef> lockers = file->lockers;
    for (const LockerRef& locker : lockers) {
      const std::optional<stateid4> stateid = locker->stateid;
      if (!stateid || locker->leaving) continue;
      op.identity = locker->open->identity;
      const bool valid = co_await still_valid(session_, op, *stateid);
      found |= !valid;
      if (valid || locker->leaving || !locker->stateid) continue;
      if (locker->stateid->other != stateid->other) continue;
      locker->stateid.reset();
      locker->doubt.reset();
      lose(*file, *locker);
    }
    const std::vector<OpenRef> opens = file->opens;
    for (const OpenRef& open : opens) {
      const std::optional<stateid4> stateid = open->stateid;
      if (!stateid) continue;
      op.identity = open->identity;
      const bool valid = co_await still_valid(session_, op, *stateid);
      found |= !valid;
      if (valid || !open->stateid || open->stateid->other != stateid->other) continue;
      lose(*file, *open);
    }
  }
  // A server that goes on saying so is believed less and less.
  check_every_ = found ? kCheckEvery : std::clamp(2 * check_every_, kCheckEvery, kCheckLongest);
  checking_ = false;
}

}  // namespace nfsrdma::nfs4
