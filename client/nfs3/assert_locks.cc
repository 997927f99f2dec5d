// SPDX-License-Identifier: Apache-2.0
// FileLocks when the lock manager may have forgotten: locks are asserted again behind each lost
// connection. And what mounts that are no more have left there.
#include <algorithm>

#include "client/nfs3/file_locks.h"
#include "client/nfs3/lock_request.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs3 {
namespace {

using xdr::nlm4_stats;

constexpr Duration kAgainFirst = std::chrono::seconds(1);
constexpr Duration kAgainLongest = std::chrono::seconds(15);
constexpr Duration kGracePause = std::chrono::seconds(5);

const Error kUnknown{Errc::kSystem, EAGAIN, "assert a lock"};

}  // namespace

void FileLocks::connection_lost() {
  if (stopped_ || asserting_ || !anything_held()) return;
  asserting_ = true;
  tasks_.spawn(assert_all());
}

Task<void> FileLocks::assert_all() {
  bool complete = false;
  for (Duration wait = kAgainFirst; !complete && !stopped_;
       wait = std::min(2 * wait, kAgainLongest)) {
    const std::uint64_t losses = losses_;
    const OpContext op = context(AuthSys{});
    Result<void> there = co_await manager_.null(op);
    complete = there.ok();
    const std::vector<FileRef> all = all_files();
    for (const FileRef& file : all) {
      if (!complete || file->held.empty()) continue;
      auto request = std::make_shared<Request>(Request::What::kAssert, file, AuthSys{});
      Result<void> asserted = co_await perform(request, &stopping_);
      complete = asserted.ok();
    }
    complete = complete && losses == losses_;
    if (!complete) co_await pauses_.pause(wait, &stopping_);
  }
  asserting_ = false;
}

Task<Result<void>> FileLocks::assert_now(File& file) {
  const std::vector<Locker> lockers = file.lockers;
  for (const Locker& locker : lockers) {
    const std::vector<ByteRangeLocks::Held> held = file.held.held();
    for (const ByteRangeLocks::Held& piece : held) {
      if (piece.owner != locker.owner || !file.held.holds_any(locker.owner)) continue;
      const FileLock what{piece.owner, piece.kind, piece.range};
      NFSRDMA_CO_CHECK_OK(co_await assert_one(file, locker, what));
    }
  }
  co_return Result<void>();
}

Task<Result<void>> FileLocks::assert_one(File& file, const Locker& locker, FileLock what) {
  const OpContext op = context(locker.identity);
  const NlmRange range = on_wire(file, what);
  Result<nlm4_stats> answer =
      co_await manager_.lock(op, caller_, range, LockManager::How::kReclaim);
  if (answer.ok() && *answer != nlm4_stats::NLM4_GRANTED) {
    // It waits for nobody. Perhaps it has not restarted at all.
    answer = co_await manager_.lock(op, caller_, range, LockManager::How::kNew);
  }
  if (!answer.ok()) co_return answer.error();
  switch (*answer) {
    case nlm4_stats::NLM4_GRANTED:
      break;
    // Says nothing of this lock: it may be held there, and is to be unlocked when its owner does.
    case nlm4_stats::NLM4_DENIED_GRACE_PERIOD:
    case nlm4_stats::NLM4_DENIED_NOLOCKS:
    case nlm4_stats::NLM4_FAILED:
      co_return kUnknown;
    default:
      lose(file, what.owner);
  }
  co_return Result<void>();
}

void FileLocks::keep_connected() {
  if (stopped_ || !anything_held()) return;
  keep_alarm_->set(nfs_.environment().now() + kKeepConnected);
  if (!asking_ && !asserting_) tasks_.spawn(ask_if_there());
}

Task<void> FileLocks::ask_if_there() {
  asking_ = true;
  const OpContext op = context(AuthSys{});
  [[maybe_unused]] Result<void> answered = co_await manager_.null(op);
  asking_ = false;
}

// --- of mounts that are no more ---

void FileLocks::free_of_the_dead(std::vector<DeadRecord> records) {
  for (DeadRecord& record : records)
    tasks_.spawn(free_of_one(std::move(record)));
}

Task<void> FileLocks::free_of_one(DeadRecord record) {
  const OpContext op = context(AuthSys{});
  while (!stopped_) {
    Result<void> there = co_await manager_.null(op);
    if (!there.ok() && there.error().code == Errc::kUnsupported) co_return;  // the next mount
    // A server says the same where it does not believe it (from a port that any user may have,
    // say): what is known to have been locked is unlocked as well.
    if (there.ok() && manager_.on_nfs_connection()) {
      [[maybe_unused]] Result<void> freed = co_await manager_.free_all(op, record.caller);
    }
    bool answered = there.ok();
    while (answered && !record.owners.empty()) {
      const DeadRecord::Owner owner = record.owners.back();
      const OpContext as_owner = context(owner.identity);
      const NlmRange all{owner.file, owner.svid, LockKind::kWrite, kAllBytes};
      Result<nlm4_stats> done = co_await manager_.unlock(as_owner, record.caller, all);
      answered = done.ok() && *done != nlm4_stats::NLM4_DENIED_GRACE_PERIOD;
      if (answered) record.owners.pop_back();
    }
    if (answered && record.owners.empty()) {
      record.remove();
      log_notice("NFSv3: let go of the locks of a mount that is no more ({})", record.caller.name);
      co_return;
    }
    co_await pauses_.pause(kGracePause, &stopping_);
  }
}

}  // namespace nfsrdma::nfs3
