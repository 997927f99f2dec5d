// SPDX-License-Identifier: Apache-2.0
// Clients whose leases are over keep their locks for as long as nobody wants them. Local processes
// that wait for one are found by looking. Part of LockMirror.
#include <algorithm>
#include <set>
#include <string>

#include "server/nfs4/lock_mirror_file.h"
#include "server/nfs4/server_state.h"
#include "server/vfs/lock_waiters.h"

namespace nfsrdma::nfs4 {

namespace {

bool any_expired_with_locks(ServerState& state) {
  for (const ClientId id : state.clients.ids()) {
    const Client* client = state.clients.find(id);
    if (client != nullptr && state.opens.held(id).locks > 0 &&
        state.clients.expired(*client, state.now())) {
      return true;
    }
  }
  return false;
}

/// Of a file, so many locks are looked at in one go.
constexpr std::size_t kMostLooked = 256;

/// Clients that have locks of it: of each part, one.
std::set<ClientId> lockers(ServerState& state, const FileKey& key) {
  const OpenStates::Asker nobody;
  std::set<ClientId> out;
  std::vector<ByteRangeLocks::Held> locks = state.opens.locks_in(key, {0, UINT64_MAX});
  locks.resize(std::min(locks.size(), kMostLooked));
  for (const ByteRangeLocks::Held& held : locks) {
    const auto holder = state.opens.test_lock(nobody, {}, key, LockKind::kWrite, held.range);
    if (holder) out.insert(holder->client);
  }
  return out;
}

}  // namespace

void LockMirror::File::end_courtesy(LockMirror& mirror, bool remote,
                                    std::unique_lock<std::mutex>& lock) {
  ServerState& state = mirror.state_;
  if (mirror.files_.empty() || !any_expired_with_locks(state)) return;
  std::vector<std::shared_ptr<File>> files;
  for (const auto& [key, file] : mirror.files_) {
    if (file->is_remote == remote) files.push_back(file);
  }
  lock.unlock();
  const std::set<std::string> awaited = awaited_files();
  if (awaited.empty()) files.clear();
  std::vector<FileKey> wanted;
  for (const std::shared_ptr<File>& file : files) {
    // Whoever has the turn may be waiting for another host; this is looked at again soon.
    const std::unique_lock turn(file->turn, std::try_to_lock);
    if (turn && file->fd && awaited.contains(locked_file_name(file->fd.get())))
      wanted.push_back(file->key);
  }
  files.clear();  // closes some
  lock.lock();
  // Others may stand behind them: those are seen when it is looked again.
  for (const FileKey& key : wanted)
    state.end_expired(lockers(state, key));
}

}  // namespace nfsrdma::nfs4
