// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/offloads.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "rpcrdma/base/log.h"
#include "server/files/file_call.h"
#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

namespace {

/// Copying is the disk's work, or the memory's: more threads would make no copy faster.
constexpr std::size_t kThreads = 2;
constexpr auto kTick = std::chrono::seconds(1);

/// May the client still use that export? 0 or an errno, as FileCall::admit() has them, or
/// kMovedAway: what is left here may be old by now.
int check_export(const Offloads::Copying& copying, const FileEntry& file, Use use) {
  const ExportTable& exports = copying.server.exports;
  const Export* exported = exports.current().find(file.parts().export_id);
  if (exported == nullptr) return ESTALE;
  ExportAccess access;
  if (exports.access(*exported, copying.peer, true, &access) != ExportTable::Verdict::kKnown ||
      !access.allowed) {
    return EACCES;
  }
  if (access.referral) return kMovedAway;
  if (file.parts().mount_key != 0 && !access.crossmnt) return ESTALE;
  return use == Use::kChange && access.read_only ? EROFS : 0;
}

int copy_piece(Offloads::Copying& copying, std::uint64_t done, std::uint64_t* copied) {
  if (const int error = check_export(copying, *copying.from, Use::kLook)) return error;
  if (const int error = check_export(copying, *copying.to.file, Use::kChange)) return error;
  // The kernel clears set-id bits, and counts quota, by who writes.
  const AsCaller acting(copying.caller);
  if (!acting.ok()) return kNoIdentity;
  return copy_some(copying.server, copying.range, done, kCopyPiece, copying.to, copied);
}

}  // namespace

Offloads::Offloads(ServerState& state, std::uint32_t boot)
    : state_(state), table_(boot, {}), callbacks_(state, table_) {}

void Offloads::stop() {
  {
    std::lock_guard lock(state_.mutex);
    stopping_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
  threads_.clear();
}

Offloads::~Offloads() {
  stop();
}

bool Offloads::start() {
  try {
    while (threads_.size() < kThreads)
      threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    log_warning("no thread for asynchronous copies: {}", error.what());
  }
  return !threads_.empty();
}

bool Offloads::may_begin(ClientId client) {
  return table_.may_begin(client) && state_.caller.reaches(client) && start();
}

Stateid Offloads::begin(ClientId client, const std::string& principal, ByteSpan handle,
                        const Verifier& verifier, std::unique_ptr<Copying> copying) {
  const Offload& made = table_.begin(client, principal, handle, verifier);
  ready_.emplace_back(made.number, std::move(copying));
  more_.notify_one();
  return table_.stateid_of(made);
}

bool Offloads::cancel(ClientId client, const std::string& principal, const Stateid& stateid,
                      ByteSpan handle) {
  std::unique_lock lock(state_.mutex);
  const OffloadNumber number = table_.cancel(client, principal, stateid, handle);
  if (number == 0) return false;
  piece_ended_.wait(lock, [&] { return !running_.contains(number); });
  return true;
}

std::size_t Offloads::release(const FileScope& files) {
  const auto is_among = [&files](const Copying& copying) {
    return files.has(*copying.from) || files.has(*copying.to.file);
  };
  std::vector<std::unique_ptr<Copying>> ended;  // closed without the mutex
  std::unique_lock lock(state_.mutex);
  for (auto entry = ready_.begin(); entry != ready_.end();) {
    if (!is_among(*entry->second)) {
      ++entry;
      continue;
    }
    table_.end(entry->first, EIO);
    ended.push_back(std::move(entry->second));
    entry = ready_.erase(entry);
  }
  std::vector<OffloadNumber> running;
  for (const auto& [number, copying] : running_) {
    if (is_among(*copying)) running.push_back(number);
  }
  released_.insert(running.begin(), running.end());
  if (!ended.empty()) more_.notify_one();  // their clients are to be told
  piece_ended_.wait(lock, [&] {
    return std::ranges::none_of(running, [&](OffloadNumber n) { return running_.contains(n); });
  });
  return ended.size() + running.size();
}

void Offloads::serve() {
  ::pthread_setname_np(::pthread_self(), "offload");
  prepare_serving_thread();
  std::unique_lock lock(state_.mutex);
  while (!stopping_) {
    callbacks_.tick();
    if (!ready_.empty()) {
      run_piece(lock);
    } else if (callbacks_.idle()) {
      more_.wait(lock);
    } else {
      more_.wait_for(lock, kTick);
    }
  }
}

/// Of the copy that has waited the longest.
void Offloads::run_piece(std::unique_lock<std::mutex>& lock) {
  Entry entry = std::move(ready_.front());
  ready_.pop_front();
  const OffloadNumber number = entry.first;
  if (const Offload* offload = table_.find(number)) {
    const std::uint64_t done = offload->copied;
    running_[number] = entry.second.get();
    lock.unlock();
    if (before_piece) before_piece();
    std::uint64_t copied = 0;
    int error = copy_piece(*entry.second, done, &copied);
    // Until it is asked for them again: what is not exported any more can be unmounted.
    ExportTable::let_go();
    lock.lock();
    if (table_.advance(number, copied)) {
      const bool is_done = done + copied == entry.second->range.count;
      if (released_.contains(number) && !is_done) error = EIO;
      if (error == 0 && copied != 0 && !is_done) {
        running_.erase(number);
        piece_ended_.notify_all();
        ready_.push_back(std::move(entry));
        return;
      }
      table_.end(number, error);
    }
  }
  // Closing files can take long.
  lock.unlock();
  entry.second.reset();
  lock.lock();
  released_.erase(number);
  running_.erase(number);
  piece_ended_.notify_all();
}

}  // namespace nfsrdma::nfs4
