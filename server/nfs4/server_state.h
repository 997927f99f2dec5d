// SPDX-License-Identifier: Apache-2.0
// ServerState: all that clients of NFSv4 hold, shared by all shards: the pure tables of state/, one
// lock around them, and what the tables leave to others: time, the records on stable storage, the
// files behind the opens.
//
// Locking: `mutex` guards every table. It is held for a table's few steps and never across a system
// call; who needs storage (records) has to be on a worker and does it without the lock.
//
// Lifetimes: made by main (or a test) after the exports' directory of state exists; lives as long
// as ServerContext, which owns it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/base/clock.h"
#include "server/export_table.h"
#include "server/nfs4/caller.h"
#include "server/nfs4/client_records.h"
#include "server/nfs4/delegations.h"
#include "server/nfs4/limits.h"
#include "server/nfs4/lock_mirror.h"
#include "server/nfs4/lock_notifier.h"
#include "server/nfs4/moved_exports.h"
#include "server/nfs4/offloads.h"
#include "server/nfs4/owner_names.h"
#include "server/nfs4/owner_sequences.h"
#include "server/nfs4/pseudo_fs.h"
#include "server/nfs4/refusals.h"
#include "server/nfs4/state/grace_period.h"
#include "server/nfs4/state/open_states.h"
#include "server/nfs4/state/session_table.h"
#include "server/nfs4/state/speakers.h"
#include "server/vfs/file_entry.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::nfs4 {

/// What two names of an object that is held open have in common. While it is open nothing else can
/// get its inode number.
FileKey file_key(dev_t device, ino_t inode);
FileKey file_key(const FileEntry& file);

class ServerState {
 public:
  struct Options {
    std::string state_dir;
    Duration lease = std::chrono::seconds(90);
    Duration grace = std::chrono::seconds(90);
    /// The largest READ and WRITE, for what a session's channel takes.
    std::uint32_t rtmax = 1u << 20;
    std::uint32_t wtmax = 1u << 20;
    Limits limits = Limits::of(Config(), descriptor_limit());
    std::string domain;             // of owner names, without "@"
    bool send_owner_names = false;  // else numbers
    bool mirror_locks = true;
    /// null: the steady clock. Has to outlive the state.
    const Clock* clock = nullptr;
  };
  /// Null with *why for the administrator.
  static std::unique_ptr<ServerState> create(const Options& options, std::string* why);
  ~ServerState();

  TimePoint now() const { return clock_.now(); }
  Duration lease() const { return lease_; }
  std::uint32_t lease_seconds() const;
  const Limits& limits() const { return limits_; }
  const ChannelAttributes& most_fore() const { return most_fore_; }
  const ChannelAttributes& most_back() const { return most_back_; }
  /// so_major_id and the scope of EXCHANGE_ID (so_minor_id is 0): the same over restarts, of this
  /// state directory alone, in which it is kept.
  const std::string& server_owner() const { return server_owner_; }

  std::mutex mutex;
  ClientTable clients;
  SessionTable sessions;
  OpenStates opens;
  GracePeriod grace;
  OwnerSequences owner_sequences;  // of minor version 0
  Speakers speakers;               // of minor version 0
  Caller caller;
  LockNotifier lock_notifier;
  LockMirror lock_mirror;
  Delegations delegations;
  Offloads offloads;
  Refusals refusals;
  MovedExports moved_exports;

  // --- with `mutex` held ---

  /// What is left of clients that a table ended: their sessions, opens and files.
  void end_clients(std::vector<std::unique_ptr<Client>> ended);
  /// The same of what a table answered to a caller at `address`, and notes what limit was met.
  void take_in(ClientTable::Answer& answer, const std::string& address);
  /// The client made itself known from there.
  void came_from(Client& client, const std::string& address);
  /// Of what all clients share, one more is wanted by `asker` than there is: a client whose lease
  /// is over ends, if one holds any of it, the one first that was heard of the longest ago. False:
  /// there is none, or the limit is none that clients share.
  bool make_room(Limit limit, ClientId asker);
  /// How many may give way for one request: whoever asks again finds more.
  static constexpr int kMostGiveWay = 16;
  /// Runs `attempt`, which gives an OpenStates::Answer, and again when others have made room. Notes
  /// a refusal. `asker`: null for nobody's, which is not helped.
  template <typename Attempt>
  OpenStates::Answer with_room(const Client* asker, const Attempt& attempt) {
    OpenStates::Answer answer = attempt();
    if (asker == nullptr) return answer;
    for (int i = 0; i < kMostGiveWay && answer.status == OpenStates::Status::kResource; ++i) {
      if (!make_room(answer.limit, asker->id)) break;
      answer = attempt();
    }
    if (answer.status == OpenStates::Status::kResource)
      refusals.refused(answer.limit, asker, asker->address, now());
    return answer;
  }
  /// kNone: the client may have one more open, of a file that nobody has open yet, be it that
  /// others had to make room.
  Limit find_room_to_open(const Client& asker);
  /// Ends those of `owners` whose leases are over; true: at least one.
  bool end_expired(const std::set<ClientId>& owners);
  /// Something of the client was revoked, and until it says that it knows it might reclaim what is
  /// somebody else's by now: its record goes (RFC 8881 8.4.3).
  void must_not_reclaim(Client& client);
  /// A delegation was revoked of a client that cannot say that it knows: after a restart it may
  /// reclaim what it has open, and no delegation.
  void must_not_reclaim_delegations(const Client& client);
  /// Has the client lost something that it does not know of, as far as it can say so?
  bool lost_unknown(ClientId client);
  /// Minor version 0: the client is told that what an administrator revoked is lost.
  void note_told(ClientId client, const Stateid& stateid);
  /// A file that has an open stays open, whatever becomes of its name.
  void hold_file(FilePin file);
  /// By that entry from now on, if it is held at all: returns the one before, to be closed without
  /// the mutex.
  [[nodiscard]] FilePin hold_instead(FilePin file);
  /// Of an open, a lock, a delegation or a copy: is it good?
  OpenStates::Status test(const OpenStates::Asker& asker, const Stateid& stateid) const;
  /// Was it given by this server since it started, to a client that is no more?
  bool is_of_ended(const Stateid& stateid) const;
  /// The file may have lost its last open or delegation: then it is not held any more, and what
  /// held it goes to *closed, or to where release_file() puts it.
  void let_go_of(const FileKey& key, std::vector<FilePin>* closed = nullptr);
  /// Of a file that is not held any more: closing may take long, and waits for take_released().
  void release_file(FilePin file);
  /// Those that are held, in the order of their keys, from the first behind `after` on and `most`
  /// of them at most, until `visit` returns false. False: there are no more behind them.
  bool visit_held(const FileKey& after, std::size_t most,
                  const std::function<bool(const FileKey&, FileEntry&)>& visit) const;
  /// An administrator wants that client gone: everything that it holds goes, and it may not reclaim
  /// anything, neither after a restart nor in the grace period behind the last one. False: there is
  /// none with that id.
  bool evict(ClientId id);
  /// What an administrator took away from a client.
  struct Lost {
    std::size_t opens = 0;
    std::size_t locks = 0;
    std::size_t delegations = 0;
  };
  /// An administrator wants nobody to hold anything of that file. What NFSv4's clients lose is
  /// known until they know of it (NFS4ERR_ADMIN_REVOKED), and they may not reclaim anything before
  /// that. Adds what is lost to *lost; false: that was nothing.
  bool revoke_file(const FileKey& file, std::map<ClientId, Lost>* lost);
  /// The held object of that handle: another pin, or none.
  FilePin held_file(ByteSpan handle) const;
  /// Ends clients whose leases are over and that hold nothing; to be called now and then.
  void sweep_locked() { end_clients(clients.sweep(now())); }
  /// Brings Client::holds up to date.
  void count_holds(Client& client) const;

  // --- without it ---

  /// Writes what is to be said of refusals.
  void write_refusals();
  /// Something has to be on stable storage before anybody is given new state: settle().
  bool must_settle() const;
  /// Somebody lost what he had, and that is not written down yet.
  bool any_ended() const { return ended_count_.load(std::memory_order_acquire) != 0; }
  /// Writes down who must not reclaim any more, and that the grace period is over. Blocks.
  Result<void> settle();
  /// The client is about to hold state: Client::recorded when this returns. Unless it has ended, or
  /// has lost something that it does not know of: whoever asked sees that for himself. Blocks.
  Result<void> record(ClientId client);
  /// For tests: what happens while a record is being written, without the mutex.
  std::function<void()> while_recording;

  /// The hosts that held locks by NLM when the server ended (ClientTable::add_host() has the form).
  std::vector<std::string> hosts_before() const;
  /// The number of this life of the server: larger than those before.
  std::uint32_t boot() const { return records_->boot(); }

  /// That of the exports in force, made when they have changed.
  std::shared_ptr<const PseudoFs> pseudo_fs(const ExportSnapshot& exports);
  OwnerNames& owner_names() { return owner_names_; }

  /// What was released since, to be closed by letting it out of scope.
  std::vector<FilePin> take_released();

  void connection_opened(ServerConnection& connection);
  void connection_lost(ConnectionId connection);

 private:
  ServerState(const Options& options, std::unique_ptr<ClientRecords> records,
              std::string server_owner);

  Result<void> settle_locked();
  std::optional<std::string> begin_recording(ClientId client);
  Result<void> write_down(std::vector<std::string>* owners,
                          Result<void> (ClientRecords::*note)(std::string_view));
  /// Has the client any of what that limit is about?
  bool holds_any(Limit limit, ClientId client) const;

  const Clock& clock_;
  const Duration lease_;
  const Limits limits_;
  ChannelAttributes most_fore_, most_back_;
  std::string server_owner_;
  OwnerNames owner_names_;

  // Guarded by `mutex`:
  std::map<FileKey, FilePin> held_;
  std::map<std::string, FileEntry*> held_by_handle_;
  std::vector<FilePin> released_;
  // Yet to be written down; ended_count_ has the sum.
  std::vector<std::string> ended_owners_;
  std::vector<std::string> lost_owners_;  // a delegation
  std::shared_ptr<const PseudoFs> pseudo_fs_;
  std::uint64_t pseudo_generation_ = 0;
  std::atomic<bool> any_released_{false};  // is written under `mutex`
  std::atomic<std::size_t> ended_count_{0};
  std::atomic<bool> grace_written_{false};

  /// One change of the records at a time, in the order in which they were decided. Taken before
  /// `mutex`, never behind it.
  std::mutex storage_mutex_;
  std::unique_ptr<ClientRecords> records_;
};

}  // namespace nfsrdma::nfs4
