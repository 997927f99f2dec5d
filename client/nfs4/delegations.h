// SPDX-License-Identifier: Apache-2.0
// Delegations: what the server has promised this client of files (RFC 8881, sections 10.2 to 10.5
// and 20.2). While there is one, nobody needs to ask whether the file has changed.
//
// A delegation is asked for by an OPEN (op_open.cc; in minor version 0 delegation_opens.h), which
// it outlives. The life of one:
//
//   held       READ and WRITE carry its stateid, if no lock has a better one
//   leaving    recalled, not used for long, one too many, or revoked: the holder was told
//              (DelegationHolder::give_up), writes what it has kept back, and calls give_back()
//   returning  DELEGRETURN is on its way, again and again until it is answered
//
// One whose answer was lost (soft mounts give calls up) is heard of when it is recalled, and given
// back then.
//
// Restarts: nothing is reclaimed. The server has forgotten the promise then, the holder is told,
// and the next open asks anew.
//
// On the session's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/moved_state.h"
#include "client/nfs4/session.h"
#include "client/nfs_types.h"
#include "client/pauses.h"

namespace nfsrdma::nfs4 {

class Delegations final : public DelegationState {
 public:
  /// Held at once; who gets one more gives back what was not used for the longest time.
  static constexpr std::size_t kMost = 5000;
  static constexpr std::size_t kMostAsking = 64;

  explicit Delegations(Session& session);
  ~Delegations() override;
  void stop();

  /// Who is told; null: nobody keeps anything back, and what is recalled is given back at once. It
  /// outlives this, or is taken out first.
  void set_holder(DelegationHolder* holder) { holder_ = holder; }

  /// For as long as an OPEN is out whose answer may bring one: that may be recalled before it is
  /// here.
  class Asking {
   public:
    Asking(Delegations& delegations, const FileHandle& file)
        : delegations_(delegations), file_(file) {
      delegations_.asking_.insert(file_);
    }
    ~Asking() { delegations_.asking_.erase(file_); }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    Delegations& delegations_;
    const FileHandle file_;
  };
  /// One OPEN for a file is enough, and a silent server is asked for some at most.
  bool may_ask(const FileHandle& file) const {
    return asking_.size() < kMostAsking && !asking_.contains(file);
  }
  /// What an OPEN of `identity` for `access` (OPEN4_SHARE_ACCESS_ bits) was answered with.
  void granted(const FileHandle& file, const AuthSys& identity, std::uint32_t access,
               const xdr::open_delegation4& delegation);

  /// kNone also where it is to end. Who asks uses it.
  DelegationKind held(const FileHandle& file);
  /// The anonymous one when there is none for `access`.
  xdr::stateid4 stateid_for(const FileHandle& file, std::uint32_t access) const;
  /// For OPENs that it covers, before it is given back.
  std::optional<xdr::stateid4> stateid_to_claim_by(const FileHandle& file) const;
  std::uint64_t kept_back_limit(const FileHandle& file) const;
  /// The server has refused `used` with `status`. True: it was a delegation's, which is over.
  bool gone(const FileHandle& file, const xdr::stateid4& used, xdr::nfsstat4 status);
  /// Over when the server has said something to it, or a soft mount has given that up once: then it
  /// goes on by itself.
  Task<void> give_back(const FileHandle& file);
  /// A read delegation, recalled or not. What is about to be changed goes without its stateid,
  /// which a server of minor version 0 takes for somebody else's; and what keeps the promise on the
  /// server (a lease of its kernel) may stand in the way of this client, too.
  Task<void> give_way(const FileHandle& file);
  /// There is one that give_way() gives back.
  bool may_be_in_the_way(const FileHandle& file) const;
  /// All of them, until `op` is cancelled. The holder has nothing to do with it any more.
  Task<void> give_back_all(const OpContext& op);
  std::size_t size() const { return rows_.size(); }

  /// The server forgets those of these files, whose file system has moved to another one.
  void lose(const WhichFiles& which);

  // DelegationState:
  void all_lost() override;
  void some_is_revoked() override;
  void none_is_revoked() override;
  xdr::nfsstat4 recall(const xdr::stateid4& stateid, const FileHandle& file) override;
  std::optional<HeldAttributes> held_attributes(const FileHandle& file) override;
  void keep_most(std::uint32_t most) override;
  void has_moved(const FileHandle& file) override;
  std::optional<std::uint64_t> file_system_of(const FileHandle& file) const override;
  std::vector<FileHandle> files() const override { return {oldest_.begin(), oldest_.end()}; }
  bool holds(const FileHandle& file) const override { return rows_.contains(file); }

 private:
  enum class Phase : std::uint8_t { kHeld, kLeaving, kReturning };
  struct Row {
    DelegationKind kind = DelegationKind::kNone;
    Phase phase = Phase::kHeld;
    std::uint32_t access = 0;  // of the OPEN
    xdr::stateid4 stateid{};
    AuthSys identity;
    std::uint64_t kept_back_limit = 0;
    mutable TimePoint used{};
    std::list<FileHandle>::iterator place;  // in oldest_
  };
  using Rows = std::unordered_map<FileHandle, Row, FileHandleHash>;

  void erase(Rows::iterator row);
  /// False: it is none's.
  bool forget(const FileHandle& file, const xdr::stateid4& stateid);
  Task<void> free_revoked(AuthSys identity, xdr::stateid4 stateid);
  void touch(const Row& row) const;
  Task<void> give_back_some(const OpContext& op);
  /// The holder is told, once.
  void leave(Rows::iterator row);
  /// What is held, oldest first, while `enough` says so.
  template <typename Enough>
  void leave_oldest(Enough enough);
  Task<void> give_back_later(FileHandle file);
  Task<void> give_back_again(FileHandle file, xdr::stateid4 stateid, AuthSys identity);
  void was_given_back(const FileHandle& file, const xdr::stateid4& stateid);
  /// One that is not in the table: its answer was lost with a call that was given up.
  Task<void> give_back_stray(FileHandle file, xdr::stateid4 stateid);
  /// True: answered.
  Task<bool> send_back(const OpContext& op, FileHandle file, xdr::stateid4 stateid);
  Task<void> check_all();
  Task<void> watch_unused();

  Session& session_;
  DelegationHolder* holder_ = nullptr;
  Pauses pauses_;
  CancelToken stopping_;
  bool stopped_ = false;
  Rows rows_;
  mutable std::list<FileHandle> oldest_;  // of rows_, by their use
  std::unordered_set<FileHandle, FileHandleHash> asking_;
  unsigned strays_ = 0;
  bool checking_ = false;
  bool watching_ = false;
  TimePoint checked_at_{};
  Duration check_every_{};
  TaskGroup tasks_;
};

}  // namespace nfsrdma::nfs4
