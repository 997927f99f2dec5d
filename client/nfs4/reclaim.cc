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
  const std::vector<FileRef> all = all_files();
  for (const FileRef& file : all) {
    // Copies, here and below: a request in the file's turn may come to its end meanwhile.
    const std::vector<OpenRef> opens = file->opens;
    for (const OpenRef& open : opens) {
      if (!open->stateid) continue;
      OpContext as_opener = op;
      as_opener.identity = open->identity;
      NFSRDMA_CO_CHECK_OK(co_await reclaim_open(as_opener, *file, open));
    }
  }
  co_return Result<void>();
}

Task<Result<void>> FileLocks::reclaim_open(const OpContext& op, File& file, OpenRef open) {
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
  Result<nfsstat4> asked = nfsstat4::NFS4_OK;
  Attempts attempts;
  for (bool again = true; again;) {
    asked = co_await session_.ask_in_recovery(op, build, parse);
    open->sequence.over(asked.ok());
    if (!asked.ok()) co_return asked.error();
    again = attempts.another(*asked, reached, open->sequence.stepped_back());
  }
  if (!opened) {
    const bool may_stand = session_.client_id_kept() || !says_it_is_gone(*asked);
    if (session_.minor() == 0 && open->stateid && may_stand) {
      // Perhaps only the client id was in doubt.
      xdr::OPEN4resok standing;
      standing.stateid = *open->stateid;
      tasks_.spawn(close_stray(open->identity, file.handle,
                               open->unsettled.value_or(Opened(standing)), open->sequence));
    }
    lose(file, *open);
    co_return Result<void>();
  }
  const bool same = open->stateid && open->stateid->other == opened->stateid.other;
  // With an open that stood all the time its locks stand, too.
  const bool stood = same && !open->locks_due && session_.minor() == 0 && session_.client_id_kept();
  const bool goes_on = same && open->locks_due;
  open->locks_due = !stood;
  open->stateid = opened->stateid;
  open->unsettled.reset();  // what is reclaimed is confirmed
  open->asked = 1u << open->access;
  if (opened->delegation) {
    const Session::Builder give = [&](CompoundWriter& out) {
      out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
      out.op(nfs_opnum4::OP_DELEGRETURN, xdr::DELEGRETURN4args{*opened->delegation});
    };
    const Session::Parser ignore = [](CompoundReader& in) { static_cast<void>(in); };
    asked = co_await session_.ask_in_recovery(op, give, ignore);
    if (!asked.ok()) co_return asked.error();
  }
  if (stood) co_return Result<void>();
  const std::vector<LockerRef> lockers = file.lockers;
  for (const LockerRef& locker : lockers) {
    if (locker->open != open) continue;
    if (!goes_on) {
      locker->stateid.reset();
      locker->doubt.reset();
    }
    NFSRDMA_CO_CHECK_OK(co_await reclaim_locks(op, file, locker));
  }
  open->locks_due = false;
  co_return Result<void>();
}

Task<Result<void>> FileLocks::reclaim_locks(const OpContext& op, File& file, LockerRef locker) {
  OwnerBytes owner(locker->owner);
  std::vector<ByteRangeLocks::Held> pieces = file.held.held();
  std::erase_if(pieces, [&](const auto& held) { return held.owner != locker->owner; });
  for (const ByteRangeLocks::Held& piece : pieces) {
    std::optional<stateid4> stateid;
    bool first = false;
    bool reached = false;
    const FileLock what{piece.owner, piece.kind, piece.range};
    const Session::Builder build = [&](CompoundWriter& out) {
      first = !locker->stateid;
      xdr::LOCK4args args = lock_args(*locker, what, &owner);
      args.reclaim = true;
      out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
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
      bool stepped_back = locker->open->sequence.stepped_back();
      stepped_back |= locker->sequence.stepped_back();
      again = attempts.another(*asked, reached, stepped_back);
      if (again && !reached) locker->doubt = what;  // it keeps its name
    }
    if (!stateid) {
      // What came before this piece has come back: the owner's unlocking lets go of it.
      lose(file, *locker);
      co_return Result<void>();
    }
    locker->stateid = stateid;
    locker->doubt.reset();
  }
  co_return Result<void>();
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
