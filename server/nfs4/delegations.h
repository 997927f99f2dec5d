// SPDX-License-Identifier: Apache-2.0
// Delegations: the promises of DelegationTable with what makes them true: a lease of the kernel on
// each file, so that processes of this machine wait as well, and the recalls to the clients.
//
// They are given only to clients that can be called. The lease of a write delegation stops
// everybody who opens the file, the server too: so all access goes by the descriptor that has the
// lease, which is that of the file's one FileEntry, and whoever uses that asks FileCall::may_use()
// first.
//
// Locking: everything with ServerState::mutex held, but what says otherwise. The kernel's word
// comes on the thread of KernelLeases, which takes the mutex.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "server/nfs4/holder_attributes.h"
#include "server/nfs4/recaller.h"
#include "server/nfs4/state/delegation_table.h"
#include "server/vfs/delegation_guard.h"
#include "server/vfs/file_entry.h"
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
  /// Somebody lost all that he held: closes the files and writes it down, on the thread of leases,
  /// which may block. Where there is none, here. Without the mutex.
  void finish_soon();
  ~Delegations() override;

  const DelegationTable& table() const { return table_; }
  DelegationTable& table() { return table_; }

  /// Would one be given? To be asked before a lease is taken.
  bool may_give(ClientId client, const FileKey& file, Delegation::Kind kind) const;
  /// May a write delegation be given? Then nobody else is given one of the file until end_giving().
  bool begin_giving(ClientId client, const FileKey& file);
  /// Asked again.
  bool may_go_on(ClientId client, const FileKey& file) const;
  void end_giving(const FileKey& file) { being_given_.erase(file); }
  /// Without the mutex: the lease that a delegation of that file needs; empty when there is none.
  UniqueFd take_lease(int path_fd) const;
  /// The same for a write delegation: false when there is none. Of a file by that descriptor, which
  /// is open for reading and writing.
  bool take_write_lease(int fd) const;
  void drop_write_lease(int fd) const;
  /// After may_give(), asked again.
  const Delegation& give_read(ClientId client, const FileKey& file, ByteSpan handle,
                              UniqueFd lease);
  /// `file`'s own descriptor has the lease.
  const Delegation& give_write(ClientId client, FilePin file, std::uint64_t change);
  /// Without the mutex, after give(): hears of what local processes do to the file's names and
  /// attributes. `path_fd`: the file, during the call.
  void watch(DelegationNumber number, int path_fd);

  using Wanted = DelegationTable::Wanted;
  /// Others than `by` whose promises are in the way are asked to give them back; those whose leases
  /// are over lose all that they have. True: somebody is in the way still.
  bool recall(const FileKey& file, ClientId by, Wanted wanted = Wanted::kToChange);
  /// *closed: what held the file, when nothing else does.
  DelegationTable::Status give_back(ClientId client, const Stateid& stateid, const FileKey& file,
                                    std::vector<FilePin>* closed);
  /// What a client that is gone still had.
  void end_client(ClientId client);
  /// An administrator takes those of the file away; how many, of which clients. To be followed by
  /// ServerState::let_go_of().
  std::map<ClientId, std::size_t> revoke_file(const FileKey& file);

  /// Once a second while anything is recalled: asks again, and revokes what is overdue.
  void tick();
  void finish();

  // --- DelegationGuard: any thread, without the mutex ---
  bool in_the_way(dev_t device, ino_t inode, std::uint64_t by) override;
  bool in_the_way_of_readers(dev_t device, ino_t inode, std::uint64_t by) override;
  bool is_written(dev_t device, ino_t inode) override;

  /// What holders of write delegations say of their files.
  HolderAttributes holder_attributes;

 private:
  void drop(const std::vector<DelegationNumber>& numbers, std::vector<FilePin>* closed = nullptr);
  void note_revoked(DelegationNumber number);
  void on_break(DelegationNumber number);
  void on_change(DelegationNumber number);
  void recall_one(DelegationNumber number, TimePoint deadline);
  bool must_wait(const FileKey& file, std::uint64_t by, Wanted wanted);
  void watch_time();
  TimePoint deadline() const;
  TimePoint deadline_of_lease() const;

  ServerState& state_;
  DelegationTable table_;
  Recaller recaller_;
  bool ticking_ = false;
  /// The files of write delegations: their descriptors have the leases.
  std::map<DelegationNumber, FilePin> written_;
  std::set<FileKey> being_given_;
  std::unique_ptr<KernelLeases> leases_;
  std::unique_ptr<NameWatches> watches_;  // on leases_' loop; null: local processes may rename
  std::unique_ptr<Timer> timer_;          // of leases_' thread
};

}  // namespace nfsrdma::nfs4
