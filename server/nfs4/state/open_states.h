// SPDX-License-Identifier: Apache-2.0
// OpenStates: what clients have open and locked, by the stateids that they hold (RFC 8881 8.2, 9,
// 18.2, 18.10 to 18.12, 18.16, 18.18, 18.38, 18.48; RFC 7530 9, 16). Its functions are the state's
// part of the operations of the same names: who may do what. That the file is there and the caller
// may open it has been seen before, grace periods (GracePeriod) and sequence ids too.
//
// Pure: no I/O, no clock; time comes with the calls. The caller serialises.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/nfs4/state/fair_share.h"
#include "server/nfs4/state/file_state.h"
#include "server/nfs4/state/limit.h"
#include "server/nfs4/state/revoked_states.h"
#include "server/nfs4/state/state_number.h"

namespace nfsrdma::nfs4 {

class OpenStates {
 public:
  struct Limits {
    FairShare opens{};  // and the lock states that came by them
    std::size_t locks_per_file = SIZE_MAX;
    FairShare locks{};
    FairShare files{};  // that have an open: each costs descriptors
  };
  /// `boot` differs each time the server starts: stateids from before are stale.
  OpenStates(std::uint32_t boot, const Limits& limits) : boot_(boot), limits_(limits) {}

  enum class Status : std::uint8_t {
    kOk,
    kBadStateid,    // NFS4ERR_BAD_STATEID
    kOldStateid,    // NFS4ERR_OLD_STATEID
    kStaleStateid,  // NFS4ERR_STALE_STATEID; to minor version 1 NFS4ERR_BAD_STATEID
    kShareDenied,   // NFS4ERR_SHARE_DENIED
    kDenied,        // NFS4ERR_DENIED
    kLocked,        // NFS4ERR_LOCKED
    kOpenMode,      // NFS4ERR_OPENMODE
    kInvalid,       // NFS4ERR_INVAL
    kLocksHeld,     // NFS4ERR_LOCKS_HELD
    kResource,      // a limit: NFS4ERR_RESOURCE; to minor version 1 NFS4ERR_DELAY
    kRevoked,       // NFS4ERR_DELEG_REVOKED; to minor version 0 NFS4ERR_BAD_STATEID
    kAdminRevoked,  // NFS4ERR_ADMIN_REVOKED
  };
  struct Answer {
    Status status = Status::kOk;
    Stateid stateid{};           // when kOk
    Limit limit = Limit::kNone;  // when kResource
  };
  /// Who asks: the client whose session or lease it is, and in which minor version.
  struct Asker {
    ClientId client = 0;
    std::uint32_t minor_version = 1;
  };

  // --- opens ---

  /// A further OPEN of the same owner adds to its share and keeps the stateid's number.
  Answer open(const Asker& asker, const std::string& owner, const FileKey& file, const Share& share,
              Claim claim = Claim::kNew);
  Answer open_downgrade(const Asker& asker, const Stateid& open, const Share& share);
  /// Ends the open and all locks that came by it. The stateid in the answer is none to be used: the
  /// next one of the open in minor version 0, the invalid one later (RFC 8881 18.2.4).
  Answer close(const Asker& asker, const Stateid& open);
  /// Takes back what an open() with that share added, which nobody has been told of: a further OPEN
  /// leaves what the owner had open before, under the stateid that the client has.
  void undo(const Answer& opened, const Share& share);
  /// Clients, other than the one that asks, whose opens stand against `share` on `file`: if their
  /// leases are over the caller ends them and asks again.
  std::set<ClientId> in_the_way(const Asker& asker, const FileKey& file, const Share& share) const;

  // --- locks ---

  /// Whose lock is in the way, for LOCK4denied.
  struct Holder {
    ByteRangeLocks::Held held;
    ClientId client = 0;
    std::string owner;
  };
  /// The first lock of an owner on an open.
  Answer lock(const Asker& asker, const Stateid& open, const std::string& owner, LockKind kind,
              const ByteRange& range, std::optional<Holder>* denied, Claim claim = Claim::kNew);
  /// A further one.
  Answer lock(const Asker& asker, const Stateid& lock, LockKind kind, const ByteRange& range,
              std::optional<Holder>* denied, Claim claim = Claim::kNew);
  /// What lock() would say but for limits, and nothing is changed. `owner`: of a first lock on an
  /// open; null for a further one.
  Status may_lock(const Asker& asker, const Stateid& stateid, const std::string* owner,
                  LockKind kind, const ByteRange& range, std::optional<Holder>* denied) const;
  std::optional<Holder> test_lock(const Asker& asker, const std::string& owner, const FileKey& file,
                                  LockKind kind, const ByteRange& range) const;
  /// One lock may become two: the second one comes from the reserve of the limits (FairShare).
  Answer unlock(const Asker& asker, const Stateid& lock, const ByteRange& range);
  /// What all clients have locked of a file in that range, whole ranges and in no order.
  std::vector<ByteRangeLocks::Held> locks_in(const FileKey& file, const ByteRange& range) const;
  bool is_locked(const FileKey& file) const;
  /// Have locks of that file ended together with an open since this was last asked? (Most opens end
  /// without one, and whoever waits for a lock need not be looked at.)
  bool take_unlocked(const FileKey& file) { return unlocked_.erase(file) != 0; }
  /// RELEASE_LOCKOWNER: kLocksHeld while it holds any.
  Status release_lock_owner(const Asker& asker, const std::string& owner);

  // --- NLM, which knows neither opens nor stateids ---

  /// The open by way of which a host locks a file is made with its first lock there and ends with
  /// the last; it gives no access and denies none.
  Answer lock_file(ClientId client, const FileKey& file, const std::string& owner, LockKind kind,
                   const ByteRange& range, std::optional<Holder>* denied,
                   Claim claim = Claim::kNew);
  /// kOk also where nothing is held.
  Answer unlock_file(ClientId client, const FileKey& file, const std::string& owner,
                     const ByteRange& range);
  /// Has that owner locked any of the file?
  bool has_locked(ClientId client, const FileKey& file, const std::string& owner) const;
  /// A DOS share, in place of what the owner had of that file; `share.access` may be 0.
  Answer share_file(ClientId client, const FileKey& file, const std::string& owner,
                    const Share& share, Claim claim = Claim::kNew);
  void unshare_file(ClientId client, const FileKey& file, const std::string& owner);

  // --- stateids ---

  /// READ, WRITE, SETATTR of the size: may `stateid`, special ones included, do `access`
  /// (kShareRead, kShareWrite) to `file`? A write-only open may read, since clients fill pages.
  Status may_access(const Asker& asker, const Stateid& stateid, const FileKey& file,
                    std::uint8_t access) const;
  /// In minor version 0 a stateid says whose it is. 0: nobody's.
  ClientId client_of(const Stateid& stateid) const;
  /// An open-owner's, or a lock-owner's.
  struct OwnerOf {
    ClientId client = 0;
    std::string name;
    bool locks = false;
  };
  std::optional<OwnerOf> owner_of(const Stateid& stateid) const;
  /// The same without a copy, until the state changes; `owner` is null when it is nobody's.
  struct OwnerRef {
    const StateOwner* owner = nullptr;
    bool locks = false;
  };
  OwnerRef find_owner(const Stateid& stateid) const;
  /// OPEN_CONFIRM, of minor version 0.
  Answer open_confirm(const Asker& asker, const Stateid& open);
  /// All that an open-owner has open, and the locks that came by it. The files that it had open.
  std::vector<FileKey> end_open_owner(ClientId client, const std::string& name);
  /// Has that lock-owner (or open-owner) any state?
  bool has_owner(ClientId client, const std::string& name, bool locks) const;
  /// Is it a stateid of another file than that? False as well for those that are nobody's.
  bool is_of_another(const Stateid& stateid, const FileKey& file) const;
  /// TEST_STATEID.
  Status test(const Asker& asker, const Stateid& stateid) const;
  /// FREE_STATEID: only lock stateids without locks are free to go, and what was revoked.
  Status free(const Asker& asker, const Stateid& stateid);

  // --- what an administrator takes away ---

  /// What a client lost. NLM's locks stand on opens that are nobody's and are not counted.
  struct Lost {
    std::size_t opens = 0;
    std::size_t locks = 0;  // ranges of bytes
    bool operator==(const Lost&) const = default;
  };
  /// All that anybody has open and locked of the file ends. The stateids of those that
  /// `has_stateids` (NFSv4's clients, and not NLM's hosts) are known until they have said that they
  /// know of it.
  std::map<ClientId, Lost> revoke_file(const FileKey& file,
                                       const std::function<bool(ClientId)>& has_stateids,
                                       TimePoint now);
  const RevokedStates& revoked() const { return revoked_; }
  /// Minor version 0, where no operation says so: the client has been told.
  void note_told(const Stateid& stateid);

  /// Whom the client shares its part of the limits with; alone until then.
  void set_host(ClientId client, const std::string& host);
  /// The client is gone, and all that it held. The files that it had open, each once.
  std::set<FileKey> end_client(ClientId client);
  /// Opens and lock states of a client: Client::holds, with what others count.
  std::size_t holds(ClientId client) const { return held(client).states(); }
  /// What a client has, or all together.
  struct Held {
    std::size_t opens = 0;
    std::size_t lock_states = 0;
    std::size_t locks = 0;  // ranges of bytes
    std::size_t files = 0;  // that have an open of the client, or of anybody

    std::size_t states() const { return opens + lock_states; }
    bool operator==(const Held&) const = default;
  };
  Held held(ClientId client) const;
  const Held& held_by_all() const { return all_; }
  /// What there is of a file, for people.
  struct OfFile {
    struct Open {
      ClientId client = 0;
      std::string owner;
      Share share;
    };
    std::vector<Open> opens;
    std::vector<Holder> locks;
  };
  OfFile of_file(const FileKey& file) const;
  /// kNone: the client may have one more open, of a file that nobody has open yet.
  Limit check_room(ClientId client) const;
  const Limits& limits() const { return limits_; }
  /// Has anybody the file open for writing, or denied reading it?
  bool is_written(const FileKey& file) const;
  /// Does an open of anybody but that open-owner deny writing the file?
  bool is_writing_denied(const Asker& asker, const std::string& owner, const FileKey& file) const;
  /// Has another client than that the file open?
  bool is_open_by_others(ClientId client, const FileKey& file) const;
  /// Has anybody the file open?
  bool is_open(const FileKey& file) const { return files_.contains(file); }
  bool empty() const { return opens_.empty() && locks_.empty() && files_.empty(); }

 private:
  Answer open_any(const Asker& asker, const std::string& owner, const FileKey& file,
                  const Share& share, Claim claim);

  using OwnerName = std::pair<ClientId, std::string>;
  using Owners = std::map<OwnerName, std::unique_ptr<StateOwner>>;

  /// Exactly one is not null when kOk.
  struct Found {
    Status status = Status::kOk;
    OpenState* open = nullptr;
    LockState* lock = nullptr;
  };
  Found find(const Asker& asker, const Stateid& stateid) const;
  const RevokedStates::One* find_revoked(const Stateid& stateid) const;
  Answer answer(std::uint64_t number, std::uint32_t seqid) const;
  StateNumber next_number(ClientId client);
  StateOwner& owner(Owners& owners, ClientId client, const std::string& name);
  LockState& lock_state(OpenState& open, StateOwner& owner);
  void forget_if_unused(Owners& owners, StateOwner& owner);
  Answer lock(LockState& state, LockKind kind, const ByteRange& range,
              std::optional<Holder>* denied, Claim claim);
  Holder holder(const ByteRangeLocks::Held& held) const;
  void end(OpenState& open);
  void end(LockState& lock);
  OpenState* find_open(ClientId client, const std::string& name, const FileKey& file) const;
  /// kNone, or what stands against one more.
  Limit check_states(ClientId client, Claim claim) const;
  Limit check_files(ClientId client, Claim claim) const;
  /// How many more locks the owner may have on a file where there are `of_file`.
  std::size_t room_for_locks(const StateOwner& owner, std::size_t of_file, Claim claim) const;
  /// What was met when that was too little.
  Limit limit_of_locks(const StateOwner& owner, std::size_t of_file, Claim claim) const;
  /// Of the client's host, or of itself.
  Held of_host(ClientId client) const;
  /// `more` is counted modulo 2^64: less, if it is to be.
  void count(ClientId client, std::size_t Held::*what, std::size_t more);
  /// What the owner has of `file` may have been `before` and has changed.
  void count_locks(const StateOwner& owner, const FileState& file, std::size_t before);

  const std::uint32_t boot_;
  const Limits limits_;
  std::uint64_t last_count_ = 0;
  std::uint64_t last_owner_ = 0;
  std::map<FileKey, std::unique_ptr<FileState>> files_;
  Owners open_owners_, lock_owners_;
  std::unordered_map<LockOwnerId, StateOwner*> lock_owner_of_id_;
  std::unordered_map<std::uint64_t, std::unique_ptr<OpenState>> opens_;  // by number
  std::unordered_map<std::uint64_t, std::unique_ptr<LockState>> locks_;  // by number
  RevokedStates revoked_;
  std::set<FileKey> unlocked_;  // take_unlocked()
  std::unordered_map<ClientId, Held> held_;
  std::unordered_map<ClientId, std::string> hosts_;
  std::unordered_map<std::string, Held> held_by_host_;
  Held all_;
};

}  // namespace nfsrdma::nfs4
