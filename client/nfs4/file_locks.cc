// SPDX-License-Identifier: Apache-2.0
// FileLocks while the server keeps its word: OPEN, LOCK, LOCKU, CLOSE. test_lock.cc has LOCKT,
// let_go.cc what was granted to nobody, held_opens.cc what applications have open,
// open_downgrade.cc what they have open for less than before, open_by_name.cc OPEN by version 4.0,
// reclaim.cc what happens when the server does not.
#include "client/nfs4/file_locks.h"

#include <algorithm>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/file_request.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/stateid_check.h"
#include "client/referral.h"
#include "client/request_ends.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using xdr::stateid4;

/// When the server says when to ask: a message may be lost, and whoever asks first gets the lock.
constexpr Duration kPollLongestNotified = std::chrono::seconds(10);
/// Until what was not closed is tried again.
constexpr Duration kCloseAgain = std::chrono::seconds(15);
/// Times that a file is closed whose server answers, but does not let go of it.
constexpr unsigned kClosings = 4;
/// Times that an OPEN which the server has forgotten is made anew for one LOCK.
constexpr int kReopens = 3;

/// With which stateid a request went out.
struct Asked {
  std::optional<stateid4> stateid;
  std::uint64_t epoch = 0;
};

/// Reclaimed, say, or being so, while a request with the former one was on its way: what became of
/// that one says nothing of it. With sessions no such request is answered.
bool is_another(const Session& session, const std::optional<stateid4>& now, const Asked& asked) {
  const bool recovered = session.minor() == 0 && session.epoch() != asked.epoch;
  return recovered || (now && asked.stateid && now->other != asked.stateid->other);
}

std::uint32_t access_for(LockKind kind) {
  return kind == LockKind::kRead ? xdr::OPEN4_SHARE_ACCESS_READ : xdr::OPEN4_SHARE_ACCESS_WRITE;
}

xdr::nfs_lock_type4 lock_type(LockKind kind, LockWait wait) {
  using enum xdr::nfs_lock_type4;
  if (wait == LockWait::kYes) return kind == LockKind::kRead ? READW_LT : WRITEW_LT;
  return kind == LockKind::kRead ? READ_LT : WRITE_LT;
}

}  // namespace

FileLocks::FileLocks(Session& session) : session_(session), pauses_(session.rpc().environment()) {
  session_.set_state(this);
}

FileLocks::~FileLocks() {
  stop();
}

void FileLocks::stop() {
  if (stopped_) return;
  stopped_ = true;
  stopping_.cancel();
  stop_waiting();
  pauses_.nudge();
  emptied_.wake_all();
}

void FileLocks::stop_waiting() {
  waits_no_more_ = true;
  // A copy: who is woken may let go of its file.
  for (const FileRef& file : all_files())
    note_released(*file);
}

FileLocks::FileRef FileLocks::file_of(const FileHandle& handle) {
  FileRef& file = files_[handle];
  if (file == nullptr) file = std::make_shared<File>(handle);
  return file;
}

FileLocks::FileRef FileLocks::find(const FileHandle& handle) const {
  const auto found = files_.find(handle);
  return found == files_.end() ? nullptr : found->second;
}

FileLocks::Locker* FileLocks::find_locker(const File& file, LockOwnerId owner) {
  for (const auto& locker : file.lockers) {
    if (locker->owner == owner) return locker.get();
  }
  return nullptr;
}

FileLocks::Locker& FileLocks::locker_of(File& file, LockOwnerId owner) {
  if (Locker* known = find_locker(file, owner)) return *known;
  file.lockers.push_back(std::make_shared<Locker>());
  file.lockers.back()->owner = owner;
  return *file.lockers.back();
}

void FileLocks::drop_idle_locker(File& file, LockOwnerId owner) {
  if (file.held.holds_any(owner) || file.lost.holds_any(owner)) return;
  std::erase_if(file.lockers, [&](const LockerRef& locker) {
    return locker->owner == owner && !locker->stateid && !locker->doubt;
  });
}

FileLocks::OpenRef FileLocks::open_of(File& file, const AuthSys& identity, ShareDenial deny) {
  for (const auto& open : file.opens) {
    if (open->identity == identity && open->deny.owner == deny.owner) return open;
  }
  file.opens.push_back(std::make_shared<Open>());
  file.opens.back()->identity = identity;
  file.opens.back()->deny = deny;
  file.opens.back()->owner = ++next_owner_;
  return file.opens.back();
}

void FileLocks::drop_unless_used(const FileRef& file) {
  const bool in_use = file->busy || !file->turn.empty() || !file->waiting.empty();
  if (in_use || !file->opens.empty() || !file->lost.empty()) return;
  if (!file->undone_denials.empty()) return;
  const auto found = files_.find(file->handle);
  if (found != files_.end() && found->second == file) files_.erase(found);
  if (files_.empty()) emptied_.wake_all();
}

std::size_t FileLocks::locks_held() const {
  std::size_t count = 0;
  for (const auto& [handle, file] : files_)
    count += file->held.held().size();
  return count;
}

// --- asking ---

Task<Result<void>> FileLocks::perform(RequestRef request, CancelToken* cancel) {
  if (stopped_) co_return kStopped;
  tasks_.spawn(carry_out(request));
  const bool waited = co_await request->done.wait(cancel);
  if (waited) co_return request->result;
  request->abandoned = true;
  co_return kInterrupted;
}

Task<void> FileLocks::carry_out(RequestRef request) {
  const FileRef file = request->file;
  bool mine = !file->busy;
  while (!mine) {
    const bool woken = co_await file->turn.wait(&stopping_);
    if (!woken) break;
    mine = !file->busy;
  }
  if (mine && file->moved) {
    request->result = kMovedAway;
    file->turn.pass(file->busy);
  } else if (mine) {
    file->busy = true;
    OpContext op;
    op.identity = request->identity;
    op.cancel = &stopping_;
    if (request->what == Request::What::kOpen) {
      request->result = co_await open_now(*file, op, *request);
    } else if (request->what == Request::What::kEndDenial) {
      co_await end_denial_now(*file, op, request->deny.owner);
      request->result = Result<void>();
    } else if (request->what == Request::What::kClaim) {
      if (!request->by) file->claiming = false;
      co_await claim_now(*file, op, request->by ? &*request->by : nullptr);
    } else if (request->what == Request::What::kClose &&
               (request->as_of ? *request->as_of != file->opens_asked : file->in_use)) {
      // It was opened again since. Who did that closes it.
      narrow_soon(file);
    } else if (request->what == Request::What::kClose) {
      file->in_use = false;
      file->closing = true;
      const bool closed = co_await close_now(*file, op);
      file->closing = false;
      file->closings = closed ? 0 : file->closings + 1;
      if (!closed && !stopped_) tasks_.spawn(close_later(file));
    } else if (request->what == Request::What::kUnlock) {
      request->result = co_await unlock_now(*file, op, request->lock);
      const bool for_good = request->lock.range == kAllBytes;
      if (for_good && in_doubt(*file, request->lock.owner)) {
        let_go_later(file, {request->lock, true});
      }
      if (for_good) narrow_soon(file);
    } else if (request->what == Request::What::kLetGo) {
      request->result = co_await let_go(*file, op);
    } else if (request->what == Request::What::kNarrow) {
      co_await narrow_now(*file, op);
    } else if (!request->abandoned) {
      const ByteRangeLocks before = file->held;
      request->result = co_await lock_now(*file, op, request->lock, request->wait, request->access);
      if (request->result.ok() && request->abandoned) {
        [[maybe_unused]] Result<void> done = co_await undo(*file, op, request->lock, before);
      }
      // Who asked is gone or told that it has failed, and will not unlock it.
      if (in_doubt(*file, request->lock.owner)) let_go_later(file, {request->lock, false});
      drop_idle_locker(*file, request->lock.owner);
    }
    file->busy = false;
    file->turn.pass(file->busy);
    // What came of it, the other server does not know.
    if (file->moved) request->result = kMovedAway;
  }
  request->done.come();
  drop_unless_used(file);
}

Task<Result<void>> FileLocks::lock(const OpContext& op, const FileHandle& handle, FileLock wanted,
                                   LockWait wait, std::uint32_t open_for) {
  const FileRef file = file_of(handle);
  // A close that is about to go would take the lock along: whoever has the file open now closes it.
  // In minor version 0 opening it has told us nothing.
  ++file->opens_asked;
  if (op.place != nullptr) file->place = *op.place;
  bool look_again = false;
  if (wait == LockWait::kYes) file->waiting.push_back(&look_again);
  Result<void> result;
  for (Duration pause = kPollFirst;; pause *= 2) {
    look_again = false;
    auto request = std::make_shared<Request>(Request::What::kLock, file, op.identity);
    request->lock = wanted;
    request->wait = wait;
    request->access = share_access(open_for) | access_for(wanted.kind);
    result = co_await perform(request, op.cancel);
    const bool in_the_way = !result.ok() && result.error().sys == EAGAIN;
    if (!in_the_way || wait == LockWait::kNo) break;
    const bool notified = file->notifies && session_.has_back_channel();
    pause = std::min(pause, notified ? kPollLongestNotified : kPollLongest);
    if (!look_again && !waits_no_more_) co_await pauses_.pause(pause, op.cancel, &look_again);
    if (op.cancel != nullptr && op.cancel->cancelled()) {
      result = kInterrupted;
      break;
    }
    if (stopped_ || waits_no_more_) {
      result = stopped_ ? kStopped : kInterrupted;
      break;
    }
  }
  if (wait == LockWait::kYes) std::erase(file->waiting, &look_again);
  drop_unless_used(file);
  co_return result;
}

Task<Result<void>> FileLocks::unlock(const OpContext& op, const FileHandle& handle, FileLock what) {
  const FileRef file = find(handle);
  if (file == nullptr) co_return Result<void>();
  auto request = std::make_shared<Request>(Request::What::kUnlock, file, op.identity);
  request->lock = what;
  co_return co_await perform(request, op.cancel);
}

Task<void> FileLocks::close_all(const OpContext& op) {
  const std::vector<FileRef> all = all_files();
  for (const FileRef& file : all)
    close(file->handle);
  close_what_leaves();
  bool patient = true;
  while (patient && !files_.empty() && !stopped_)
    patient = co_await emptied_.wait(op.cancel);
}

// --- in the file's turn ---

Task<Result<void>> FileLocks::ensure_open(File& file, const OpContext& op, Open& open,
                                          std::uint32_t access, OpenCompanion* with,
                                          const stateid4* by) {
  if (open.unsettled) {
    NFSRDMA_CO_TRY(const nfsstat4 said, co_await settle(file, op, open));
    if (open.unsettled) co_return status_error(said, "OPEN_CONFIRM");
  }
  const bool stands = open.stateid && (open.access & access) == access;
  if (stands && with == nullptr) co_return Result<void>();
  NFSRDMA_CO_CHECK_OK(co_await session_.allow_opens(op));
  const OwnerBytes owner(open.owner);
  if (session_.minor() == 0) {
    const std::uint32_t wanted = (open.stateid ? open.access : 0) | access;
    co_return co_await open_by_name(file, op, open, wanted);
  }
  std::optional<stateid4> stateid;
  auto build = [&](CompoundWriter& out) {
    xdr::OPEN4args args;
    // Without what the owner has already, and may not be allowed any more: the server adds it up.
    args.share_access =
        access | (with == nullptr ? xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG : with->wants());
    args.share_deny = share_deny(open.deny);
    args.owner = owner.of(session_);
    args.claim.claim = xdr::open_claim_type4::CLAIM_FH;
    if (by != nullptr) {
      args.claim.claim = xdr::open_claim_type4::CLAIM_DELEG_CUR_FH;
      args.claim.oc_delegate_stateid = *by;
    }
    out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
    out.op(nfs_opnum4::OP_OPEN, args);
    if (with != nullptr) with->build(out);
  };
  auto parse = [&](CompoundReader& in) {
    xdr::OPEN4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_OPEN, got)) return;
    stateid = got.resok4.stateid;
    file.notifies = (got.resok4.rflags & xdr::OPEN4_RESULT_MAY_NOTIFY_LOCK) != 0;
    if (with == nullptr) return;
    with->opened(got.resok4.delegation);
    with->parse(in);
  };
  // A delegation that is claimed by is being recalled: its return does not wait for "later".
  const CallShape shape{.max_results = 2048, .once = true, .patient = by == nullptr};
  Result<Ending> end = co_await call(session_, op, shape, build, parse);
  open.doubtful = 0;
  if (!stateid && !end.ok()) {
    open.doubtful = access;
    co_return end.error();
  }
  if (!stateid) co_return status_error(end->status, "OPEN");
  const bool added = open.stateid && open.stateid->other == stateid->other;
  open.access = (added ? open.access : 0) | access;
  open.asked = (added ? open.asked : 0) | 1u << access;
  open.stateid = stateid;
  co_return Result<void>();
}

xdr::LOCK4args FileLocks::lock_args(Locker& locker, const FileLock& what, OwnerBytes* owner) {
  // What the server has counted of an owner that was refused its first lock is anybody's guess. One
  // that was not answered may have it.
  if (!locker.stateid && !locker.doubt) {
    locker.name_there = ++next_owner_;
    locker.sequence = {};
  }
  *owner = OwnerBytes(name_of(locker));
  xdr::LOCK4args args;
  args.locktype = lock_type(what.kind, LockWait::kNo);
  args.offset = what.range.first;
  args.length = length_of(what.range);
  args.locker.new_lock_owner = !locker.stateid;
  if (args.locker.new_lock_owner) {
    args.locker.open_owner = {locker.open->sequence.send(session_),
                              newest(session_, locker.open->stateid),
                              locker.sequence.send(session_), owner->of(session_)};
  } else {
    args.locker.lock_owner = {newest(session_, locker.stateid), locker.sequence.send(session_)};
  }
  return args;
}

bool FileLocks::next_lock(CompoundReader& in, Locker& locker, bool first, xdr::LOCK4res& got) {
  OwnerSequence& sequence = first ? locker.open->sequence : locker.sequence;
  const bool good = next_in_sequence(in, nfs_opnum4::OP_LOCK, got, sequence);
  if (first) {
    // An error uses up the number of the open-owner. Servers differ about that of the lock-owner.
    const bool unclear = !good && counts_in_sequence(got.status);
    if (unclear) {
      locker.sequence.over(false);
    } else {
      locker.sequence.answered(got.status);
    }
  }
  grow_up(got.status, first ? locker.open->stateid : locker.stateid);
  return good;
}

Task<Result<void>> FileLocks::lock_now(File& file, const OpContext& op, FileLock wanted,
                                       LockWait wait, std::uint32_t access) {
  if (file.lost.holds_any(wanted.owner)) co_return kLost;
  if (file.held.conflict(wanted.owner, wanted.kind, wanted.range) != nullptr) co_return kInTheWay;
  // Whoever had this name before is to be gone first.
  const bool gone = std::any_of(file.loose.begin(), file.loose.end(), [&](const Loose& one) {
    return one.gone && one.what.owner == wanted.owner;
  });
  if (gone) NFSRDMA_CO_CHECK_OK(co_await let_go(file, op));
  OwnerBytes owner(wanted.owner);
  Locker& locker = locker_of(file, wanted.owner);
  if (locker.open == nullptr) locker.open = denying_open(file, wanted.owner);
  if (locker.open == nullptr) locker.open = open_of(file, op.identity);
  ++file.locks_asked;
  Open& open = *locker.open;
  OpContext as_opener = op;
  as_opener.identity = open.identity;
  nfsstat4 status = nfsstat4::NFS4_OK;
  for (int attempt = 0; attempt < kReopens; ++attempt) {
    if (denial_is_undone(file, wanted.owner)) co_return kLost;
    NFSRDMA_CO_CHECK_OK(co_await ensure_open(file, as_opener, open, access));
    std::optional<stateid4> granted;
    bool first = false;
    Asked asked;
    bool sent = false;
    auto build = [&](CompoundWriter& out) {
      sent = true;
      first = !locker.stateid;
      asked = {first ? open.stateid : locker.stateid, session_.epoch()};
      xdr::LOCK4args args = lock_args(locker, wanted, &owner);
      args.locktype = lock_type(wanted.kind, wait);
      out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
      out.op(nfs_opnum4::OP_LOCK, args);
    };
    auto parse = [&](CompoundReader& in) {
      xdr::LOCK4res got;
      if (!in.next(nfs_opnum4::OP_PUTFH)) return;
      if (next_lock(in, locker, first, got)) granted = got.resok4.lock_stateid;
    };
    Result<Ending> end = co_await call_in_sequence(session_, as_opener, {.once = true},
                                                   open.sequence, build, parse, &locker.sequence);
    if (!end.ok()) {
      // Without a session nothing went out, and there may be no name yet to ask again by.
      if (sent) locker.doubt = wanted;
      co_return end.error();
    }
    status = end->status;
    if (is_another(session_, first ? open.stateid : locker.stateid, asked)) {
      status = nfsstat4::NFS4ERR_BAD_STATEID;
      continue;
    }
    if (granted) {
      locker.stateid = granted;
      locker.doubt.reset();
      file.held.lock(wanted.owner, wanted.kind, wanted.range);
      // Others of this owner's went meanwhile: this one goes with them, by the owner's unlocking.
      if (file.lost.holds_any(wanted.owner)) co_return kLost;
      co_return Result<void>();
    }
    if (!stateid_is_gone(status)) break;
    free_if_revoked(status, open, asked.stateid);
    if (first) {
      lose(file, open);
      continue;
    }
    // A READ may have heard of it meanwhile: what was asked with is what is gone.
    locker.stateid.reset();
    locker.doubt.reset();
    lose(file, locker);
    if (file.lost.holds_any(wanted.owner)) co_return kLost;
  }
  if (status == nfsstat4::NFS4ERR_DENIED) co_return kInTheWay;
  co_return status_error(status, "LOCK");
}

Task<Result<void>> FileLocks::unlock_now(File& file, const OpContext& op, FileLock what) {
  const bool all = what.range == kAllBytes;
  file.lost.unlock(what.owner, what.range);
  Locker* locker = find_locker(file, what.owner);
  if (locker == nullptr) co_return Result<void>();
  if (!locker->stateid && locker->doubt) {
    NFSRDMA_CO_CHECK_OK(co_await settle_doubt(file, op, *locker));
  }
  bool asking = locker->stateid.has_value();
  while (asking) {
    locker->leaving = all;
    OpContext as_opener = op;
    as_opener.identity = locker->open->identity;
    bool done = false;
    Asked asked;
    const OwnerBytes owner_there(locker->name_there);
    auto build = [&](CompoundWriter& out) {
      asked = {locker->stateid, session_.epoch()};
      out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
      out.op(nfs_opnum4::OP_LOCKU,
             xdr::LOCKU4args{lock_type(what.kind, LockWait::kNo), locker->sequence.send(session_),
                             newest(session_, locker->stateid), what.range.first,
                             length_of(what.range)});
      if (!all) return;
      if (session_.minor() == 0) {
        out.op(nfs_opnum4::OP_RELEASE_LOCKOWNER,
               xdr::RELEASE_LOCKOWNER4args{owner_there.of(session_)});
      } else {
        out.op(nfs_opnum4::OP_FREE_STATEID,
               xdr::FREE_STATEID4args{newest(session_, locker->stateid)});
      }
    };
    auto parse = [&](CompoundReader& in) {
      xdr::LOCKU4res got;
      if (!in.next(nfs_opnum4::OP_PUTFH)) return;
      done = next_in_sequence(in, nfs_opnum4::OP_LOCKU, got, locker->sequence);
      const bool ours = locker->stateid && locker->stateid->other == got.resok4.other;
      if (done && ours) locker->stateid = got.resok4;
      grow_up(got.status, locker->stateid);
      // A stateid that cannot be freed goes with the CLOSE.
      if (done && all)
        in.next(session_.minor() == 0 ? nfs_opnum4::OP_RELEASE_LOCKOWNER
                                      : nfs_opnum4::OP_FREE_STATEID);
    };
    Result<Ending> end = co_await call_in_sequence(session_, as_opener, {.once = true},
                                                   locker->sequence, build, parse);
    if (end.ok()) {
      locker->doubt.reset();
    } else {
      locker->doubt = what;
    }
    // What the server does not know of is not locked, nor is a file that is no more.
    const bool unknown =
        end.ok() && (state_is_gone(end->status) || errno_of(end->status) == ESTALE);
    const bool gone = done || unknown;
    asking = gone && is_another(session_, locker->stateid, asked);
    if (unknown) free_if_revoked(end->status, *locker->open, asked.stateid);
    if (!gone) {
      locker->leaving = false;
      if (!end.ok()) co_return end.error();
      co_return status_error(end->status, "LOCKU");
    }
  }
  file.held.unlock(what.owner, what.range);
  file.lost.unlock(what.owner, what.range);  // perhaps meanwhile
  if (all) {
    std::erase_if(file.lockers, [&](const auto& one) { return one.get() == locker; });
  }
  note_released(file);
  co_return Result<void>();
}

Task<bool> FileLocks::close_now(File& file, const OpContext& op) {
  bool closed = true;
  // What is opened meanwhile, under a delegation, wants it again.
  for (const OpenRef& open : file.opens) {
    if (!open->unfinished) open->wanted = 0;
    file.in_use |= open->unfinished;
  }
  // A server may refuse to close what has locks (RFC 8881, 18.2.3).
  const std::vector<LockerRef> lockers = file.lockers;
  for (const LockerRef& locker : lockers) {
    const FileLock all{locker->owner, LockKind::kWrite, kAllBytes};
    [[maybe_unused]] Result<void> done = co_await unlock_now(file, op, all);
    closed &= !in_doubt(file, locker->owner);
  }
  const std::vector<OpenRef> opens = file.opens;
  for (const OpenRef& open : opens) {
    if (open->unfinished) continue;
    const bool gone = co_await close_what_may_stand(file, op, *open);
    closed &= gone;
  }
  if (!closed) co_return false;
  file.lockers.clear();
  drop_empty_opens(file);
  file.held = {};
  file.lost = {};
  file.undone_denials.clear();
  file.loose.clear();
  note_released(file);
  co_return true;
}

Task<bool> FileLocks::close_what_may_stand(File& file, const OpContext& op, Open& open) {
  const bool again = !open.stateid && open.doubtful != 0;
  if (!open.stateid && !again) co_return true;
  OpContext as_opener = op;
  as_opener.identity = open.identity;
  if (again) {
    // Of the same owner it is the same open, whether it stands or not.
    Result<void> opened = co_await ensure_open(file, as_opener, open, open.doubtful);
    const bool nameless = !opened.ok() && opened.error().sys == ENOLCK;
    if (nameless) lose(file, open);  // by another name, or none: minor version 0 cannot close it
    // What stands and could not be confirmed is closed the next time.
    if (!opened.ok()) co_return open.doubtful == 0 && !open.stateid;
  }
  const bool gone = co_await close_one(file, as_opener, open);
  // An OPEN for more than that may have been run behind it.
  co_return gone&& open.doubtful == 0;
}

Task<bool> FileLocks::close_one(File& file, const OpContext& op, Open& open) {
  Result<nfsstat4> said = nfsstat4::NFS4_OK;
  if (open.unsettled) {
    said = co_await settle(file, op, open);
    if (!open.stateid) co_return true;
  }
  Asked asked{open.stateid, session_.epoch()};
  auto build = [&](CompoundWriter& out) {
    asked = {open.stateid, session_.epoch()};
    out.op(nfs_opnum4::OP_PUTFH, put(file.handle));
    out.op(nfs_opnum4::OP_CLOSE,
           xdr::CLOSE4args{open.sequence.send(session_), newest(session_, open.stateid)});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::CLOSE4res got;
    if (in.next(nfs_opnum4::OP_PUTFH)) {
      next_in_sequence(in, nfs_opnum4::OP_CLOSE, got, open.sequence);
      grow_up(got.status, open.stateid);
    }
  };
  const bool settled = !open.unsettled;
  if (settled) {
    Result<Ending> end =
        co_await call_in_sequence(session_, op, {.once = true}, open.sequence, build, parse);
    said = end.ok() ? Result<nfsstat4>(end->status) : end.error();
  }
  // NFS4ERR_LOCKS_HELD, a number that the server does not want: it stands.
  const bool gone = said.ok() && !is_another(session_, open.stateid, asked) &&
                    ((settled && *said == nfsstat4::NFS4_OK) || state_is_gone(*said) ||
                     errno_of(*said) == ESTALE);
  if (gone) free_if_revoked(*said, open, asked.stateid);
  const bool hopeless = said.ok() && file.closings >= kClosings;
  if (!gone && hopeless) {
    log_warning(
        "NFSv4.{}: CLOSE: {}: the server may keep the file open, and locks on it, until "
        "this is unmounted",
        session_.minor(), xdr::enum_name(*said));
  }
  if (gone || hopeless) {
    open.stateid.reset();
    open.unsettled.reset();
    open.access = 0;
  }
  co_return gone || hopeless;
}

Task<void> FileLocks::close_later(FileRef file) {
  const std::uint64_t asked = file->locks_asked;
  co_await pauses_.pause(kCloseAgain, &stopping_);
  // Whoever has locked since then closes it.
  if (file->locks_asked == asked) close_unused(file);
}

void FileLocks::free_if_revoked(nfsstat4 status, const Open& open,
                                const std::optional<stateid4>& stateid) {
  if (!is_revoked(status) || !stateid || session_.minor() == 0) return;
  tasks_.spawn(free_revoked(open.identity, *stateid));
}

Task<void> FileLocks::free_revoked(AuthSys identity, stateid4 stateid) {
  OpContext op;
  op.identity = identity;
  op.cancel = &stopping_;
  co_await free_stateid(session_, op, stateid);
}

void FileLocks::lock_may_be_free(const FileHandle& handle) {
  const FileRef file = find(handle);
  if (file != nullptr) note_released(*file);
}

void FileLocks::note_released(File& file) {
  for (bool* look_again : file.waiting)
    *look_again = true;
  if (!file.waiting.empty()) pauses_.nudge();
}

// --- READ and WRITE ---

std::optional<stateid4> FileLocks::refused_by(const File& file) {
  if (!file.undone_denials.empty()) return file.undone_denials.front().stateid;
  if (!file.lost.empty()) return kRefusedStateid;
  return std::nullopt;
}

stateid4 FileLocks::stateid_of_lock(const FileHandle& handle, std::uint32_t access) const {
  if (files_.empty()) return {};
  const FileRef file = find(handle);
  if (file == nullptr) return {};
  if (const auto refused = refused_by(*file)) return *refused;
  const Locker* only = nullptr;
  for (const auto& locker : file->lockers) {
    if (locker->leaving || !file->held.holds_any(locker->owner)) continue;
    if (only != nullptr) return {};
    only = locker.get();
  }
  if (only == nullptr || !only->stateid || only->doubt || (only->open->access & access) != access)
    return {};
  return newest(session_, only->stateid);
}

Result<void> FileLocks::usable(const FileHandle& handle) const {
  if (files_.empty()) return {};
  const FileRef file = find(handle);
  if (file != nullptr && refused_by(*file)) return kLost;
  return {};
}

bool FileLocks::again(const FileHandle& handle, const stateid4& used, nfsstat4 status) {
  if (!stateid_is_gone(status) || used.other == stateid4{}.other) return false;
  const FileRef file = find(handle);
  if (file == nullptr) return true;
  for (const auto& locker : file->lockers) {
    if (!locker->stateid || locker->stateid->other != used.other || locker->leaving) continue;
    // Its number is another one since then, in minor version 0.
    if (status == nfsstat4::NFS4ERR_OLD_STATEID && file->busy) return true;
    free_if_revoked(status, *locker->open, used);
    locker->stateid.reset();
    locker->doubt.reset();
    lose(*file, *locker);
    return false;
  }
  const std::vector<OpenRef> opens = file->opens;
  for (const OpenRef& open : opens) {
    if (!open->stateid || open->stateid->other != used.other) continue;
    ++open->refused;
    free_if_revoked(status, *open, used);
    // The locks by it are revoked with it.
    for (const auto& locker : file->lockers)
      if (locker->open == open) free_if_revoked(status, *open, locker->stateid);
    lose(*file, *open);
  }
  // Unlocked or reclaimed while it was on its way.
  return true;
}

}  // namespace nfsrdma::nfs4
