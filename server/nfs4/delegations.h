// SPDX-License-Identifier: Apache-2.0
// Delegations: the promises of DelegationTable with what makes them true: a lease of the kernel on
// each file, so that processes of this machine wait as well, and the recalls to the clients.
//
// Only read delegations are given, and only to clients that can be called.
//
// Locking: everything with ServerState::mutex held, but what says otherwise. The kernel's word
// comes on the thread of KernelLeases, which takes the mutex.
#pragma once

#include <atomic>
#include <memory>

#include "server/nfs4/recaller.h"
#include "server/nfs4/state/delegation_table.h"
#include "server/vfs/delegation_guard.h"
#include "server/vfs/kernel_leases.h"
#include "server/vfs/name_watches.h"

namespace nfsrdma::nfs4 {

class ServerState;

class Delegations final : public DelegationGuard {
 public:
  Delegations(ServerState& state, std::uint32_t boot, const DelegationTable::Limits& limits);
  /// Without leases (no descriptors) none are given: `ok` is false, and all else works.
  Result<void> start();
  /// Without the mutex. Ends the thread; none are given any more.
  void stop();
  ~Delegations() override;

  const DelegationTable& table() const { return table_; }
  DelegationTable& table() { return table_; }

  /// Would one be given? To be asked before a lease is taken.
  bool may_give(ClientId client, const FileKey& file) const;
  /// Without the mutex: the lease that a delegation of that file needs; empty when there is none.
  UniqueFd take_lease(int path_fd) const;
  /// After may_give(), asked again.
  const Delegation& give(ClientId client, const FileKey& file, ByteSpan handle, UniqueFd lease);
  /// Without the mutex, after give(): hears of what local processes do to the file's names and
  /// attributes. `path_fd`: the file, during the call.
  void watch(DelegationNumber number, int path_fd);

  /// Others than `by` who were promised something of the file are asked to give it back; those
  /// whose leases are over lose all that they have. True: somebody is in the way still.
  bool recall(const FileKey& file, ClientId by);
  DelegationTable::Status give_back(ClientId client, const Stateid& stateid, const FileKey& file);
  /// What a client that is gone still had.
  void end_client(ClientId client);

  /// Once a second while anything is recalled: asks again, and revokes what is overdue.
  void tick();

  // --- DelegationGuard: any thread, without the mutex ---
  bool in_the_way(dev_t device, ino_t inode, std::uint64_t by) override;

 private:
  void drop(const std::vector<DelegationNumber>& numbers);
  void on_break(DelegationNumber number);
  void on_change(DelegationNumber number);
  void recall_one(DelegationNumber number, TimePoint deadline);
  void watch_time();
  TimePoint deadline() const;
  TimePoint deadline_of_lease() const;

  ServerState& state_;
  DelegationTable table_;
  Recaller recaller_;
  bool ticking_ = false;
  std::unique_ptr<KernelLeases> leases_;
  std::unique_ptr<NameWatches> watches_;  // on leases_' loop; null: local processes may rename
  std::unique_ptr<Timer> timer_;          // of leases_' thread
};

}  // namespace nfsrdma::nfs4
