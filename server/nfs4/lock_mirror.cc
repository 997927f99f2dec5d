// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/lock_mirror.h"

#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "server/nfs4/lock_mirror_file.h"
#include "server/nfs4/server_state.h"
#include "server/nfs4/state/lock_cover.h"
#include "server/vfs/fd_cache.h"
#include "server/vfs/record_locks.h"

namespace nfsrdma::nfs4 {

namespace {

/// To the kernel, all clients together.
constexpr LockOwnerId kClients = 1;
constexpr ByteRange kAll{0, kLastByte};
/// Of a file: beyond that the whole file is looked at.
constexpr std::size_t kMostRanges = 16;
/// A lock that was in the way may be gone when its holder is asked for.
constexpr int kAttempts = 3;
constexpr auto kTryAgain = std::chrono::seconds(1);
constexpr auto kLookForWaiters = std::chrono::seconds(2);

RecordLock to_record_lock(const CoverPiece& piece) {
  using Kind = RecordLock::Kind;
  const Kind kind = !piece.kind                       ? Kind::kNone
                    : *piece.kind == LockKind::kWrite ? Kind::kWrite
                                                      : Kind::kRead;
  return {kind, piece.range.first, piece.range.last};
}

/// As much of it as the kernel knows; empty when that is nothing.
std::optional<ByteRange> within_files(const ByteRange& range) {
  if (range.first > kLastByte) return std::nullopt;
  return ByteRange{range.first, std::min(range.last, kLastByte)};
}

bool find_holder(int fd, LockKind kind, const ByteRange& range, LockMirror::Holder* holder) {
  RecordLock found;
  pid_t pid = 0;
  if (!find_record_lock(fd, to_record_lock({range, kind}), &found, &pid)) return false;
  holder->kind = found.kind == RecordLock::Kind::kWrite ? LockKind::kWrite : LockKind::kRead;
  holder->range = {found.first, found.last == kLastByte ? UINT64_MAX : found.last};
  holder->who = "local process";
  if (pid != 0) holder->who += " " + std::to_string(pid);
  return true;
}

/// 0, EAGAIN with *holder, or another errno.
int raise(int fd, const CoverPiece& piece, LockMirror::Holder* holder) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int error = set_record_lock(fd, to_record_lock(piece));
    if (error != EAGAIN || find_holder(fd, *piece.kind, piece.range, holder)) return error;
  }
  *holder = {*piece.kind, piece.range, "local process"};
  return EAGAIN;
}

/// With the server's own rights: what the client may do was seen when it opened the file. Never
/// waits for leases (EWOULDBLOCK).
///
/// A file that the server has open to read and write anyway is locked by way of that: a write
/// delegation's lease lets nobody open it anew, and its holder sends LOCKs before it gives it back.
UniqueFd open_to_lock(const FileEntry& file, LockKind kind) {
  if (file.path_is_data()) return UniqueFd(::fcntl(file.path_fd(), F_DUPFD_CLOEXEC, 0));
  AsServer privileged;
  return UniqueFd(reopen(file.path_fd(), kind == LockKind::kWrite ? O_RDWR : O_RDONLY));
}

}  // namespace

// --- turns
// ----------------------------------------------------------------------------------------

LockMirror::Turn::Turn(LockMirror& mirror, const FileEntry& file, bool may_block)
    : mirror_(mirror), entry_(&file), may_block_(may_block) {
  if (!mirror.enabled_) return;
  do {
    if (lock_) lock_.unlock();
    file_ = mirror.file_of(file, may_block);
    take();
  } while (file_ != nullptr && file_->gone);
}

LockMirror::Turn::Turn(LockMirror& mirror, std::shared_ptr<File> file, bool may_block)
    : mirror_(mirror), may_block_(may_block), file_(std::move(file)) {
  take();
}

void LockMirror::Turn::take() {
  if (file_ != nullptr && may_block_) {
    lock_ = std::unique_lock(file_->turn);
  } else if (file_ != nullptr && !file_->is_remote) {
    lock_ = std::unique_lock(file_->turn, std::try_to_lock);
  }
  if (lock_) return;
  would_block_ = true;
  file_.reset();
}

LockMirror::Turn::~Turn() {
  if (file_ != nullptr) mirror_.end_turn(*this);
}

LockMirror::Outcome LockMirror::Turn::acquire(LockKind kind, const ByteRange& wanted,
                                              Holder* holder) {
  const std::optional<ByteRange> range = within_files(wanted);
  if (file_ == nullptr || !range) return Outcome::kDone;
  File& file = *file_;
  int error = mirror_.prepare(file, *entry_, kind);
  if (error == EAGAIN) return Outcome::kLater;
  const std::vector<CoverPiece> have = cover(file.held.held(), *range);
  const std::vector<CoverPiece> want{{*range, kind}};
  for (const CoverPiece& piece : raised(have, want)) {
    if (error == 0) error = raise(file.fd.get(), piece, holder);
    if (error != 0) break;
    file.held.lock(kClients, kind, piece.range);
  }
  if (error == 0) return Outcome::kDone;
  {
    std::lock_guard guard(mirror_.state_.mutex);
    mirror_.note_ended(file.key, *range);
  }
  return error == EAGAIN ? Outcome::kDenied : mirror_.judge(error);
}

LockMirror::Outcome LockMirror::Turn::test(LockKind kind, const ByteRange& wanted, Holder* holder) {
  const std::optional<ByteRange> range = within_files(wanted);
  if (file_ == nullptr || !range) return Outcome::kDone;
  UniqueFd opened;
  if (!file_->fd) {
    opened = open_to_lock(*entry_, LockKind::kRead);
    if (!opened) return mirror_.judge(errno);
  }
  const int fd = file_->fd ? file_->fd.get() : opened.get();
  return find_holder(fd, kind, *range, holder) ? Outcome::kDenied : Outcome::kDone;
}

/// The last thing in a turn.
void LockMirror::end_turn(Turn& turn) {
  File& file = *turn.file_;
  const bool settled = settle_in_turn(file);
  std::lock_guard guard(state_.mutex);
  if (!settled && state_.any_ended()) {
    queue(file);
  } else if (!settled) {
    Settler& settler = settler_of(file);
    settler.failed.push_back(file.key);
    settler.more.notify_one();
  } else if (!file.stale.empty()) {
    queue(file);
  } else if (file.held.empty() && !file.gone) {
    file.gone = true;
    files_.erase(file.key);
  } else if (!std::exchange(file.watched, true)) {
    queue(file);
  }
}

/// Opens what a lock of that kind needs: 0; EAGAIN: not now; or another errno.
int LockMirror::prepare(File& file, const FileEntry& entry, LockKind kind) {
  if (file.fd && (file.writable || kind == LockKind::kRead)) return 0;
  UniqueFd fd = open_to_lock(entry, kind);
  if (const int error = fd ? 0 : errno; error != 0) {
    return judge(error) == Outcome::kLater ? EAGAIN : error;
  }
  // Another description is another owner (one that can write is never given up for another). What
  // one for reading alone holds, both can hold at once.
  for (const ByteRangeLocks::Held& held : file.held.held()) {
    const int error = set_record_lock(fd.get(), to_record_lock({held.range, held.kind}));
    if (error != 0) return EAGAIN;
  }
  ByteRangeLocks held = std::exchange(file.held, ByteRangeLocks());
  file.let_go_of_all();
  file.held = std::move(held);
  file.fd = std::move(fd);
  file.writable = (::fcntl(file.fd.get(), F_GETFL) & O_ACCMODE) == O_RDWR;
  return 0;
}

/// What an error of opening or locking means for the client: kLater, or that its lock is served
/// without the kernel's.
LockMirror::Outcome LockMirror::judge(int error) {
  switch (error) {
    case EAGAIN:  // a lease
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Outcome::kLater;
    default:
      break;
  }
  std::lock_guard guard(state_.mutex);
  if (!std::exchange(logged_, true)) {
    log_warning(
        "local processes do not see all locks of NFSv4 clients, nor these theirs: {}. "
        "This is logged once",
        std::strerror(error));
  }
  return Outcome::kDone;
}

/// Null: that is not to be found out here.
std::shared_ptr<LockMirror::File> LockMirror::file_of(const FileEntry& file, bool may_block) {
  FileKey key = file_key(file);
  {
    std::lock_guard guard(state_.mutex);
    const auto found = files_.find(key);
    if (found != files_.end()) return found->second;
  }
  const bool remote = on_remote_file_system(file.path_fd());
  if (remote && !may_block) return nullptr;
  std::lock_guard guard(state_.mutex);
  std::shared_ptr<File>& slot = files_[key];
  if (slot == nullptr) slot = std::make_shared<File>(std::move(key), remote);
  return slot;
}

bool LockMirror::has_at_hand(const FileKey& file) {
  std::lock_guard guard(state_.mutex);
  const auto found = files_.find(file);
  return found != files_.end() && !found->second->is_remote;
}

// --- letting go
// -----------------------------------------------------------------------------------

void LockMirror::note_ended(const FileKey& key, const ByteRange& range) {
  const auto found = files_.find(key);
  const std::optional<ByteRange> part = within_files(range);
  if (found == files_.end() || !part) return;
  std::vector<ByteRange>& stale = found->second->stale;
  if (stale.size() < kMostRanges) {
    stale.push_back(*part);
  } else {
    stale = {kAll};
  }
}

void LockMirror::settle_later(const FileKey& key) {
  const auto found = files_.find(key);
  if (found != files_.end() && !found->second->stale.empty()) queue(*found->second);
}

/// False: something could not be let go of, and is to be tried again. Or somebody has lost what he
/// had, and that is to be written down first: local processes could have what he reclaims.
bool LockMirror::settle_in_turn(File& file) {
  std::vector<ByteRange> failed;
  while (true) {
    std::vector<std::pair<ByteRange, std::vector<ByteRangeLocks::Held>>> ranges;
    bool any = false;
    {
      std::lock_guard guard(state_.mutex);
      if (file.stale.empty()) {
        file.stale = failed;
        return failed.empty();
      }
      if (state_.any_ended()) {
        file.stale.insert(file.stale.end(), failed.begin(), failed.end());
        return false;
      }
      any = state_.opens.is_locked(file.key);
      for (const ByteRange& range : std::exchange(file.stale, {}))
        ranges.emplace_back(range, state_.opens.locks_in(file.key, range));
    }
    if (!any) file.let_go_of_all();
    for (const auto& [range, held] : ranges) {
      if (!lower(file, range, held)) failed.push_back(range);
    }
  }
}

/// Makes the kernel's lock what the clients' are, but no stronger.
bool LockMirror::lower(File& file, const ByteRange& range,
                       const std::vector<ByteRangeLocks::Held>& held) {
  const std::vector<CoverPiece> have = cover(file.held.held(), range);
  bool done = true;
  for (const CoverPiece& piece : lowered(have, cover(held, range))) {
    if (set_record_lock(file.fd.get(), to_record_lock(piece)) != 0) {
      done = false;
    } else if (piece.kind) {
      file.held.lock(kClients, *piece.kind, piece.range);
    } else {
      file.held.unlock(kClients, piece.range);
    }
  }
  return done;
}

// --- the thread
// -----------------------------------------------------------------------------------

LockMirror::Settler& LockMirror::settler_of(const File& file) {
  return file.is_remote ? remote_ : local_;
}

void LockMirror::queue(File& file) {
  if (std::exchange(file.queued, true)) return;
  Settler& settler = settler_of(file);
  settler.queue.push_back(file.key);
  start(settler);
}

void LockMirror::start(Settler& settler) {
  settler.more.notify_one();
  if (settler.thread.joinable() || stopping_) return;
  try {
    settler.thread = std::thread([this, &settler] { serve(settler); });
  } catch (const std::system_error& error) {
    log_warning("no thread to let go of files' locks: {}", error.what());
  }
}

void LockMirror::waits_began() {
  if (enabled_) start(local_);
}

void LockMirror::settle_next(Settler& settler, std::unique_lock<std::mutex>& lock) {
  const FileKey key = std::move(settler.queue.front());
  settler.queue.pop_front();
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  std::shared_ptr<File> file = found->second;
  file->queued = false;
  lock.unlock();
  const Result<void> written = state_.any_ended() ? state_.settle() : Result<void>();
  // A file of this machine is not waited for: its turn's end settles as much, if not all.
  bool busy = !written.ok();
  if (!busy) {
    const bool remote = file->is_remote;
    const Turn turn(*this, std::move(file), remote);
    busy = turn.would_block();
  }
  file.reset();
  lock.lock();
  if (!written.ok() && complaints_.allow()) {
    log_error("files stay locked for local processes: the records of clients: {}",
              written.error().message());
  }
  if (busy) settler.failed.push_back(key);
}

void LockMirror::serve(Settler& settler) {
  ::pthread_setname_np(::pthread_self(), "locks");
  std::unique_lock lock(state_.mutex);
  auto look = std::chrono::steady_clock::now() + kLookForWaiters;
  while (!stopping_) {
    if (!settler.queue.empty()) {
      settle_next(settler, lock);
    } else if (files_.empty() && state_.lock_notifier.waits().empty()) {
      settler.more.wait(lock);
    } else {
      settler.more.wait_for(lock, settler.failed.empty() ? kLookForWaiters : kTryAgain);
      for (const FileKey& key : std::exchange(settler.failed, {}))
        settler.queue.push_back(key);
    }
    if (std::chrono::steady_clock::now() < look) continue;
    File::end_courtesy(*this, &settler == &remote_, lock);
    if (&settler == &local_) state_.lock_notifier.ask_again();
    look = std::chrono::steady_clock::now() + kLookForWaiters;
  }
}

void LockMirror::stop() {
  {
    std::lock_guard guard(state_.mutex);
    stopping_ = true;
  }
  for (Settler* settler : {&local_, &remote_}) {
    settler->more.notify_all();
    if (settler->thread.joinable()) settler->thread.join();
  }
}

LockMirror::~LockMirror() {
  stop();
}

}  // namespace nfsrdma::nfs4
