// SPDX-License-Identifier: Apache-2.0
// FileLocks while the lock manager keeps its word: LOCK, UNLOCK, TEST. assert_locks.cc is about
// lock managers that may have restarted, and about mounts that are no more.
#include "client/nfs3/file_locks.h"

#include <algorithm>

#include "client/nfs3/lock_request.h"
#include "client/request_ends.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs3 {
namespace {

using xdr::nlm4_stats;

/// While the server waits for its old clients, for 90 s as a rule; or for somebody to give back a
/// delegation, which is said in the same words.
constexpr Duration kGraceLongest = std::chrono::seconds(5);
/// Between attempts to let go of what the server did not let go of.
constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::seconds(15);
/// Times that a server may refuse to unlock something.
constexpr unsigned kRefusals = 4;

/// As Linux's client has them.
int errno_of_status(nlm4_stats status) {
  switch (status) {
    case nlm4_stats::NLM4_GRANTED:
      return 0;
    case nlm4_stats::NLM4_DENIED:
    case nlm4_stats::NLM4_BLOCKED:
    case nlm4_stats::NLM4_DENIED_GRACE_PERIOD:
      return EAGAIN;
    case nlm4_stats::NLM4_DEADLCK:
      return EDEADLK;
    case nlm4_stats::NLM4_ROFS:
      return EROFS;
    case nlm4_stats::NLM4_STALE_FH:
      return ESTALE;
    case nlm4_stats::NLM4_FBIG:
      return EOVERFLOW;
    default:
      return ENOLCK;
  }
}

Result<void> result_of(nlm4_stats status, const char* where) {
  const int number = errno_of_status(status);
  if (number == 0) return {};
  return Error{Errc::kSystem, number, where};
}

/// Of a call that failed.
bool may_have_been_done(const Error& error) {
  switch (error.code) {
    case Errc::kUnsupported:
    case Errc::kRefused:
    case Errc::kInvalid:
      return false;
    default:
      return true;
  }
}

}  // namespace

FileLocks::FileLocks(RpcClient& nfs, std::unique_ptr<LockManagerWays> ways, LockCaller caller,
                     std::unique_ptr<LockRecords> records)
    : nfs_(nfs),
      caller_(std::move(caller)),
      records_(std::move(records)),
      manager_(nfs, std::move(ways)),
      pauses_(nfs.environment()) {
  lost_alarm_ = nfs_.environment().make_alarm([this] { connection_lost(); });
  keep_alarm_ = nfs_.environment().make_alarm([this] { keep_connected(); });
  manager_.set_on_lost([this] {
    ++losses_;
    lost_alarm_->set(nfs_.environment().now());
  });
}

FileLocks::~FileLocks() {
  stop();
}

void FileLocks::stop() {
  if (stopped_) return;
  stopped_ = true;
  stopping_.cancel();
  manager_.abort();
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

FileLocks::Locker* FileLocks::find_locker(File& file, LockOwnerId owner) {
  for (Locker& locker : file.lockers) {
    if (locker.owner == owner) return &locker;
  }
  return nullptr;
}

void FileLocks::drop_locker(File& file, LockOwnerId owner) {
  if (file.held.holds_any(owner) || file.lost.holds_any(owner)) return;
  std::erase_if(file.lockers, [owner](const Locker& one) { return one.owner == owner; });
  const bool loose = std::any_of(file.loose.begin(), file.loose.end(),
                                 [owner](const Loose& one) { return one.what.owner == owner; });
  if (!loose && records_ != nullptr) records_->forget(caller_.svid(owner), file.handle);
}

void FileLocks::drop_unless_used(const FileRef& file) {
  const bool in_use = file->busy || !file->turn.empty() || !file->waiting.empty();
  if (in_use || !file->lockers.empty() || !file->lost.empty() || !file->loose.empty()) return;
  const auto found = files_.find(file->handle);
  if (found != files_.end() && found->second == file) files_.erase(found);
  if (files_.empty()) emptied_.wake_all();
}

std::vector<FileLocks::FileRef> FileLocks::all_files() const {
  std::vector<FileRef> all;
  for (const auto& [handle, file] : files_)
    all.push_back(file);
  return all;
}

bool FileLocks::anything_held() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const auto& one) { return !one.second->held.empty(); });
}

std::size_t FileLocks::locks_held() const {
  std::size_t count = 0;
  for (const auto& [handle, file] : files_)
    count += file->held.held().size();
  return count;
}

Result<void> FileLocks::usable(const FileHandle& handle) const {
  const FileRef file = find(handle);
  if (file != nullptr && !file->lost.empty()) return kLost;
  return {};
}

void FileLocks::lose(File& file, LockOwnerId owner) {
  std::size_t count = 0;
  if (file.lost.empty()) ++files_with_losses_;
  for (const ByteRangeLocks::Held& held : file.held.held()) {
    if (held.owner != owner) continue;
    file.lost.put(held.owner, held.kind, held.range);
    ++count;
  }
  file.held.release(owner);
  log_warning(
      "NFSv3: {} lock{} lost: the server's lock manager has restarted or let go, and gives {} to "
      "us "
      "no more; reading and writing the file fails until its owner unlocks or closes it",
      count, count == 1 ? " is" : "s are", count == 1 ? "it" : "them");
}

void FileLocks::forget_lost(File& file, LockOwnerId owner, ByteRange range) {
  if (file.lost.empty()) return;
  file.lost.unlock(owner, range);
  if (file.lost.empty()) --files_with_losses_;
}

void FileLocks::note_released(File& file) {
  for (bool* look_again : file.waiting)
    *look_again = true;
  if (!file.waiting.empty()) pauses_.nudge();
}

// --- asking ---

Task<Result<void>> FileLocks::perform(RequestRef request, CancelToken* cancel) {
  if (stopped_) co_return kStopped;
  if (request->what == Request::What::kTest) {
    tasks_.spawn(test_now(request));
  } else {
    tasks_.spawn(carry_out(request));
  }
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
  if (mine) {
    file->busy = true;
    switch (request->what) {
      case Request::What::kTest:
        break;
      case Request::What::kLock:
        if (!request->abandoned) co_await lock_now(*file, *request);
        break;
      case Request::What::kUnlock:
        request->result = co_await unlock_now(*file, request->lock);
        break;
      case Request::What::kLetGo:
        co_await let_go(*file);
        break;
      case Request::What::kClose:
        co_await close_now(*file);
        break;
      case Request::What::kAssert:
        request->result = co_await assert_now(*file);
        break;
    }
    file->busy = false;
    file->turn.pass(file->busy);
  }
  if (stopped_ && !request->result.ok()) request->result = kStopped;
  if (!file->loose.empty() && !file->letting_go && !stopped_) {
    file->letting_go = true;
    tasks_.spawn(keep_letting_go(file));
  }
  request->done.come();
  drop_unless_used(file);
}

Task<Result<void>> FileLocks::lock(const OpContext& op, const FileHandle& handle, FileLock wanted,
                                   LockWait wait) {
  const FileRef file = file_of(handle);
  bool look_again = false;
  file->waiting.insert(&look_again);
  Result<void> result;
  for (Duration pause = kPollFirst;;) {
    look_again = false;
    auto request = std::make_shared<Request>(Request::What::kLock, file, op.identity);
    request->lock = wanted;
    result = co_await perform(request, op.cancel);
    const bool in_the_way = !result.ok() && result.error().sys == EAGAIN;
    if (!in_the_way || (wait == LockWait::kNo && !request->grace)) break;
    if (!look_again && !waits_no_more_) co_await pauses_.pause(pause, op.cancel, &look_again);
    pause = std::min(2 * pause, request->grace ? kGraceLongest : kPollLongest);
    if (op.cancel != nullptr && op.cancel->cancelled()) {
      result = kInterrupted;
      break;
    }
    if (stopped_ || waits_no_more_) {
      result = stopped_ ? kStopped : kInterrupted;
      break;
    }
  }
  file->waiting.erase(&look_again);
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

std::vector<LockOwnerId> FileLocks::owners_in_the_way(const FileHandle& handle,
                                                      const FileLock& wanted) const {
  const FileRef file = find(handle);
  if (file == nullptr) return {};
  return nfsrdma::owners_in_the_way(file->held, wanted);
}

Task<Result<std::optional<LockHolder>>> FileLocks::test(const OpContext& op,
                                                        const FileHandle& handle, FileLock wanted) {
  for (Duration pause = kPollFirst;; pause = std::min(2 * pause, kGraceLongest)) {
    if (const FileRef file = find(handle)) {
      const auto* mine = file->held.conflict(wanted.owner, wanted.kind, wanted.range);
      if (mine != nullptr) {
        co_return std::optional(LockHolder{{mine->owner, mine->kind, mine->range}, true});
      }
    }
    // Of no file: it changes nothing.
    auto request = std::make_shared<Request>(Request::What::kTest, std::make_shared<File>(handle),
                                             op.identity);
    request->lock = wanted;
    Result<void> done = co_await perform(request, op.cancel);
    if (done.ok()) co_return request->holder;
    if (!request->grace) co_return done.error();
    co_await pauses_.pause(pause, op.cancel);
    if (op.cancel != nullptr && op.cancel->cancelled()) co_return kInterrupted;
    if (stopped_) co_return kStopped;
  }
}

void FileLocks::close(const FileHandle& handle) {
  const FileRef file = find(handle);
  if (file == nullptr || stopped_) return;
  tasks_.spawn(carry_out(std::make_shared<Request>(Request::What::kClose, file, AuthSys{})));
}

Task<void> FileLocks::close_all(const OpContext& op) {
  const std::vector<FileRef> all = all_files();
  for (const FileRef& file : all)
    close(file->handle);
  bool patient = true;
  while (patient && !files_.empty() && !stopped_)
    patient = co_await emptied_.wait(op.cancel);
}

// --- in the file's turn ---

Task<void> FileLocks::test_now(RequestRef request) {
  const OpContext op = context(request->identity);
  FileLock holder;
  const NlmRange wanted = on_wire(*request->file, request->lock);
  Result<nlm4_stats> answer = co_await manager_.test(op, caller_, wanted, &holder);
  if (!answer.ok()) {
    request->result = answer.error();
  } else if (*answer == nlm4_stats::NLM4_DENIED) {
    request->holder = LockHolder{holder, false};
    request->result = Result<void>();
  } else {
    request->grace = *answer == nlm4_stats::NLM4_DENIED_GRACE_PERIOD;
    request->result = result_of(*answer, "TEST");
  }
  if (stopped_) request->result = kStopped;
  request->done.come();
}

Task<void> FileLocks::lock_now(File& file, Request& request) {
  const FileLock wanted = request.lock;
  request.result = kLost;
  if (file.lost.holds_any(wanted.owner)) co_return;
  request.result = kInTheWay;
  if (file.held.conflict(wanted.owner, wanted.kind, wanted.range) != nullptr) co_return;
  Locker* locker = find_locker(file, wanted.owner);
  if (locker == nullptr) locker = &file.lockers.emplace_back(Locker{wanted.owner, {}});
  locker->identity = request.identity;
  if (records_ != nullptr) {
    co_await records_->begin(&stopping_);
    records_->note(caller_.svid(wanted.owner), request.identity, file.handle);
  }
  const OpContext op = context(request.identity);
  const NlmRange range = on_wire(file, wanted);
  Result<nlm4_stats> answer = co_await manager_.lock(op, caller_, range, LockManager::How::kNew);
  if (!answer.ok()) {
    request.result = answer.error();
    // Who asked is told that it has failed, and will not unlock it.
    if (may_have_been_done(answer.error())) file.loose.push_back({wanted, request.identity});
  } else {
    request.grace = *answer == nlm4_stats::NLM4_DENIED_GRACE_PERIOD;
    request.result = result_of(*answer, "LOCK");
  }
  if (request.result.ok()) {
    const std::vector<ByteRange> gained = file.held.gaps(wanted.owner, wanted.range);
    file.held.lock(wanted.owner, wanted.kind, wanted.range);
    if (!keep_alarm_->armed()) keep_alarm_->set(nfs_.environment().now() + kKeepConnected);
    if (request.abandoned) {
      for (const ByteRange& range_gained : gained) {
        const FileLock unwanted{wanted.owner, wanted.kind, range_gained};
        [[maybe_unused]] Result<void> done = co_await unlock_now(file, unwanted);
      }
    }
  }
  drop_locker(file, wanted.owner);
}

Task<Result<void>> FileLocks::unlock_now(File& file, FileLock what) {
  // Of what is lost some may have come back.
  const bool had_any = file.held.holds_any(what.owner) || file.lost.holds_any(what.owner);
  const Locker* locker = find_locker(file, what.owner);
  forget_lost(file, what.owner, what.range);
  Result<void> result;
  if (locker != nullptr && had_any) {
    const OpContext op = context(locker->identity);
    Loose loose{what, locker->identity};
    Result<nlm4_stats> answer = co_await manager_.unlock(op, caller_, on_wire(file, what));
    file.held.unlock(what.owner, what.range);
    if (!answer.ok()) {
      result = answer.error();
      file.loose.push_back(loose);
    } else if (*answer == nlm4_stats::NLM4_DENIED_GRACE_PERIOD) {
      // There is nobody now who could lock it.
      file.loose.push_back(loose);
    } else if (*answer != nlm4_stats::NLM4_STALE_FH) {
      result = result_of(*answer, "UNLOCK");
      if (!result.ok()) file.loose.push_back(loose);
    }
  }
  if (what.range == kAllBytes) drop_locker(file, what.owner);
  note_released(file);
  co_return result;
}

Task<void> FileLocks::close_now(File& file) {
  const std::vector<Locker> lockers = file.lockers;
  for (const Locker& locker : lockers) {
    const FileLock all{locker.owner, LockKind::kWrite, kAllBytes};
    [[maybe_unused]] Result<void> done = co_await unlock_now(file, all);
  }
}

// --- what nobody here wants ---

Task<bool> FileLocks::unlock_loose(File& file, Loose& loose) {
  const OpContext op = context(loose.identity);
  const std::vector<ByteRange> gaps = file.held.gaps(loose.what.owner, loose.what.range);
  for (const ByteRange& gap : gaps) {
    const FileLock what{loose.what.owner, loose.what.kind, gap};
    Result<nlm4_stats> answer = co_await manager_.unlock(op, caller_, on_wire(file, what));
    const bool waits = !answer.ok() ? may_have_been_done(answer.error())
                                    : *answer == nlm4_stats::NLM4_DENIED_GRACE_PERIOD;
    if (waits) co_return false;
    const bool done = answer.ok() &&
                      (*answer == nlm4_stats::NLM4_GRANTED || *answer == nlm4_stats::NLM4_STALE_FH);
    if (!done && ++loose.refused < kRefusals) co_return false;
    if (!done) {
      log_warning("NFSv3: UNLOCK: {}: the server may keep a lock that nobody has any more",
                  answer.ok() ? xdr::enum_name(*answer) : answer.error().where);
    }
  }
  co_return true;
}

Task<void> FileLocks::let_go(File& file) {
  while (!file.loose.empty() && !stopped_) {
    Loose loose = file.loose.front();
    const bool over = co_await unlock_loose(file, loose);
    if (!over) {
      file.loose.front() = loose;
      co_return;
    }
    file.loose.erase(file.loose.begin());
    if (find_locker(file, loose.what.owner) == nullptr) drop_locker(file, loose.what.owner);
  }
}

Task<void> FileLocks::keep_letting_go(FileRef file) {
  for (Duration wait = kRetryFirst; !stopped_ && !file->loose.empty();
       wait = std::min(2 * wait, kRetryLongest)) {
    co_await pauses_.pause(wait, &stopping_);
    auto request = std::make_shared<Request>(Request::What::kLetGo, file, AuthSys{});
    [[maybe_unused]] Result<void> done = co_await perform(request, &stopping_);
  }
  file->letting_go = false;
}

}  // namespace nfsrdma::nfs3
