// SPDX-License-Identifier: Apache-2.0
// DelegationTable: which client has been promised that a file stays as it is, by stateid (RFC 8881
// 10.4, 8.2, 18.6, 18.38, 18.48). The promise of a read delegation: nobody opens the file for
// writing, and nobody changes its attributes or names, before the client has given it back, or was
// given long enough for that. That of a write delegation: nobody else opens it at all.
//
// How clients are asked (CB_RECALL) and how local processes are kept out (leases of the kernel) is
// for the caller; so are grace periods. Stateids share their form with those of OpenStates and
// have numbers of their own.
//
// Pure: no I/O; time comes with the calls. The caller serialises. A Delegation* holds until the
// next call that may end it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rpcrdma/base/clock.h"
#include "server/nfs4/state/back_channel.h"
#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {

using DelegationNumber = std::uint64_t;

struct Delegation {
  DelegationNumber number = 0;
  ClientId client = 0;
  FileKey file;
  enum class Kind : std::uint8_t { kRead, kWrite };
  Kind kind = Kind::kRead;
  /// As the client knows the file: what CB_RECALL names.
  std::vector<std::byte> handle;
  std::optional<ReferringCall> given_in;
  enum class Phase : std::uint8_t {
    kHeld,
    kRecalled,  // to be given back before `deadline`
    kRevoked,   // known until FREE_STATEID, and good for nothing
  };
  Phase phase = Phase::kHeld;
  /// kRevoked: by an administrator, and not because it was not given back in time.
  bool by_administrator = false;
  TimePoint deadline{};
  /// Until then the holder may be changing the file's names or attributes itself.
  TimePoint own_change_until{};
};

class DelegationTable {
 public:
  struct Limits {
    std::size_t all = SIZE_MAX;  // each costs a descriptor; those that are revoked do not count
    std::size_t per_client = SIZE_MAX;
    std::size_t revoked_per_client = 256;  // who has left so many is given none
  };
  DelegationTable(std::uint32_t boot, const Limits& limits) : boot_(boot), limits_(limits) {}

  using Status = OpenStates::Status;

  /// Does the number of such a stateid belong here?
  static bool is_one(const Stateid& stateid);

  /// Would grant() give one? Not to a client that has one of the file, and not before the deadline
  /// that the last recall of one of the file had, since others want it.
  bool may_grant(ClientId client, const FileKey& file, Delegation::Kind kind, TimePoint now) const;
  /// After may_grant().
  const Delegation& grant(ClientId client, const FileKey& file, Delegation::Kind kind,
                          std::vector<std::byte> handle);
  /// Of a delegation that there is.
  void note_given_in(DelegationNumber number, const ReferringCall& request) {
    all_.at(number).given_in = request;
  }
  /// The client is about to change the file's names or attributes. Nothing where it has none.
  void note_own_change(ClientId client, const FileKey& file, TimePoint until);
  Stateid stateid_of(const Delegation& delegation) const;

  /// What is in the way of whom: readers are stopped by write delegations alone.
  enum class Wanted : std::uint8_t { kToRead, kToChange };
  /// Somebody is about to use the file: `by` is its client, 0 for anybody else. True: others were
  /// promised that nobody does. They are recalled, with `deadline`, and named in *fresh unless they
  /// were before.
  bool recall(const FileKey& file, ClientId by, Wanted wanted, TimePoint deadline,
              std::vector<DelegationNumber>* fresh);
  /// That one alone is. False: there is nothing to be recalled any more; what was recalled before
  /// has no later deadline than this one.
  bool recall_one(DelegationNumber number, TimePoint deadline);
  /// Those whose time is over are revoked, and named.
  std::vector<DelegationNumber> revoke_due(TimePoint now);

  /// Those of that file are revoked, by an administrator, and named.
  std::vector<DelegationNumber> revoke_file(const FileKey& file, TimePoint now);

  /// Null when it is no more.
  const Delegation* find(DelegationNumber number) const;
  /// In minor version 0 a stateid says whose it is. 0: nobody's.
  ClientId client_of(const Stateid& stateid) const;
  /// DELEGRETURN: ends it. `number` is set when the status is kOk.
  Status give_back(ClientId client, const Stateid& stateid, const FileKey& file,
                   DelegationNumber* number);
  /// TEST_STATEID.
  Status test(ClientId client, const Stateid& stateid) const;
  /// FREE_STATEID: of revoked ones alone.
  Status free(ClientId client, const Stateid& stateid);
  /// Of clients that have no FREE_STATEID: a revoked one is no more.
  void forget(DelegationNumber number);
  /// The same of all but the `most` that were given last.
  void forget_revoked_but(ClientId client, std::size_t most);
  /// READ and the like.
  Status may_access(ClientId client, const Stateid& stateid, const FileKey& file,
                    std::uint8_t access) const;
  /// The client is gone: those that it still held, which are no more.
  std::vector<DelegationNumber> end_client(ClientId client);

  /// SEQ4_STATUS_RECALLABLE_STATE_REVOKED. Not for ever (kToldOfRevoked).
  bool has_revoked(ClientId client, TimePoint now) const;
  /// SEQ4_STATUS_ADMIN_STATE_REVOKED.
  bool has_revoked_by_administrator(ClientId client, TimePoint now) const;
  /// Clients other than `by` whose promises are in the way.
  std::set<ClientId> holders(const FileKey& file, ClientId by, Wanted wanted) const;
  /// The write delegation of the file, held or recalled; null when there is none.
  const Delegation* writer(const FileKey& file) const;
  /// That the client was promised something of.
  std::vector<FileKey> files_of(ClientId client) const;
  bool has_file(const FileKey& file) const { return by_file_.contains(file); }
  /// Held or recalled. Valid until the table changes.
  std::vector<const Delegation*> of_file(const FileKey& file) const;
  bool has_one(ClientId client, const FileKey& file) const;
  std::size_t holds(ClientId client) const;
  /// Held or recalled.
  std::size_t size() const { return live_; }
  std::size_t recalled() const { return recalled_.size(); }
  /// Of a client, for status.
  struct Held {
    std::size_t live = 0;  // held or recalled
    std::size_t recalled = 0;
    std::size_t revoked = 0;
  };
  Held held(ClientId client) const;

 private:
  struct PerClient {
    std::set<DelegationNumber> live, revoked;
    std::size_t by_administrator = 0;  // of `revoked`
    TimePoint last_revoked{};
  };
  static bool stops(const Delegation& delegation, ClientId by, Wanted wanted) {
    return delegation.client != by &&
           (wanted == Wanted::kToChange || delegation.kind == Delegation::Kind::kWrite);
  }
  Delegation* find(ClientId client, const Stateid& stateid, Status* status);
  void begin_recall(Delegation& delegation, TimePoint deadline);
  void leave_file(Delegation& delegation);
  void revoke(Delegation& delegation, TimePoint now, bool by_administrator = false);
  void erase(Delegation& delegation);

  const std::uint32_t boot_;
  const Limits limits_;
  std::uint64_t last_count_ = 0;
  std::size_t live_ = 0;
  std::set<DelegationNumber> recalled_;
  std::map<DelegationNumber, Delegation> all_;
  std::map<FileKey, std::set<DelegationNumber>> by_file_;  // held or recalled
  std::map<ClientId, PerClient> by_client_;
  /// No more of the file are given before that; cut down as it grows.
  std::map<FileKey, TimePoint> wanted_by_others_;
};

}  // namespace nfsrdma::nfs4
