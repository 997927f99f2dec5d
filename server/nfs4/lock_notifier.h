// SPDX-License-Identifier: Apache-2.0
// LockNotifier: tells those who wait for a lock that they may ask again (CB_NOTIFY_LOCK, RFC 8881
// 20.11). Once, and whether it was heard does not matter: they ask now and then anyway.
//
// Locking: everything with ServerState::mutex held.
#pragma once

#include "server/nfs4/state/lock_waits.h"

namespace nfsrdma::nfs4 {

class ServerState;

/// Is told of the same, of all else that ends of a file, and of clients that end, with the mutex
/// held. Quick.
class LockWatcher {
 public:
  virtual ~LockWatcher() = default;
  virtual void on_unlocked(const FileKey& file) = 0;
  virtual void on_client_ended(ClientId client) = 0;
};

class LockNotifier {
 public:
  explicit LockNotifier(ServerState& state) : state_(state), waits_(LockWaits::Limits{}) {}

  LockWaits& waits() { return waits_; }
  /// Of that file, locks were let go of, in that range.
  void unlocked(const FileKey& file, const ByteRange& range = {0, UINT64_MAX});
  /// Of that file, an open or a delegation ended, and no lock: nobody who waits may ask again for
  /// that. But a host of NFSv3 may have been refused for a delegation's lease (LockWatcher).
  void other_ended(const FileKey& file);
  /// No client is in the way of some who wait, but a local process was, and nobody tells of those:
  /// they may ask again.
  void ask_again();
  void client_ended(ClientId client);
  /// Null: nobody.
  void watch(LockWatcher* watcher) { watcher_ = watcher; }

 private:
  void tell(const FileKey& file, const ByteRange& range);

  ServerState& state_;
  LockWaits waits_;
  LockWatcher* watcher_ = nullptr;
};

}  // namespace nfsrdma::nfs4
