// SPDX-License-Identifier: Apache-2.0
// ClientRecords: on stable storage, the owner strings of the clients that hold state, so that after
// a restart these and no others may reclaim it (RFC 8881 8.4.2.1 and 8.4.3, RFC 7530 9.6.3), and
// the number of the server's life.
//
// Who may reclaim after a restart: the clients that had state in the life that ended, and, when
// that life ended before its own grace period was over, also those of the life before that could
// still have reclaimed. During a grace period nobody is given new state, so nobody can be in their
// way. end_grace() drops those that did not come; it must have succeeded before anybody gets new
// state. A client that loses its lease, or its state by a new verifier, is dropped by remove(),
// which must have succeeded before what it held is given to anybody else. One of which only a
// delegation was revoked, and that cannot say that it knows (minor version 0), keeps its record,
// but lose_delegation() notes that it reclaims no delegation in the next life.
//
// add(), remove(), lose_delegation() and end_grace() block until the storage has the change
// (milliseconds): they are for worker threads. Any thread; one change at a time. After an error the
// change did not happen as far as this life is concerned; the next life may or may not see it,
// which does no harm when the caller keeps to the rules above (a client that was refused state has
// nothing to reclaim).
//
// In <state_dir>/nfs4-clients/log; client_records.cc has the format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/result.h"
#include "server/nfs4/record_storage.h"

namespace nfsrdma::nfs4 {

class ClientRecords {
 public:
  static constexpr std::size_t kMaxOwner = 1024;  // NFS4_OPAQUE_LIMIT

  /// Begins a new life of the server: reads what the last one left, and notes that this one has
  /// begun. `clock`: seconds since 1970. Null with *why set, one line for the administrator that
  /// names the file and what to do, when the records cannot be used; damaged ones are never guessed
  /// at, since a client that reclaims what it has lost damages the files of others.
  static std::unique_ptr<ClientRecords> open(const std::string& state_dir, std::uint64_t clock,
                                             std::string* why);
  static std::unique_ptr<ClientRecords> open(std::unique_ptr<RecordStorage> storage,
                                             std::uint64_t clock, std::string* why);

  /// The number of this life: larger than those of all lives before (it starts again at 1 after
  /// 2^32 - 1), never 0. Not less than `clock`, so that it differs also when the records were
  /// lost.
  std::uint32_t boot() const { return boot_; }
  /// For GracePeriod: who may reclaim in this life.
  const std::set<std::string>& before() const { return before_; }
  /// Of these, who may not reclaim delegations.
  const std::set<std::string>& lost_before() const { return lost_before_; }

  /// `owner` has state, or is about to get it: before the reply that says so. Costs nothing when it
  /// is recorded already in this life.
  Result<void> add(std::string_view owner);
  /// `owner` has no state any more, or must not reclaim it. Costs nothing when there is no record.
  Result<void> remove(std::string_view owner);
  /// A delegation of `owner` was revoked. Costs nothing when that is recorded already in this life.
  Result<void> lose_delegation(std::string_view owner);
  /// The grace period is over: those of before() that were not add()ed are dropped. Again: nothing.
  Result<void> end_grace();

  /// Records of this life, for status.
  std::size_t size() const;

 private:
  /// Has an owner lost delegations?
  struct Lost {
    bool before = false;  // and may not reclaim any while the grace period lasts
    bool now = false;     // in this life
  };
  using Owners = std::map<std::string, Lost, std::less<>>;
  struct Contents {
    std::uint32_t boot = 0;
    Owners previous;  // may reclaim, and have not been add()ed
    Owners current;

    /// In one of the two at most; null: in none.
    Lost* find(std::string_view owner);
    void end_grace();
  };
  class Reader;

  ClientRecords(std::unique_ptr<RecordStorage> storage, Contents contents);
  /// Makes a change that is in contents_ already durable.
  Result<void> commit(char type, std::string_view owner);
  Result<void> rewrite();

  mutable std::mutex mutex_;
  const std::unique_ptr<RecordStorage> storage_;
  const std::uint32_t boot_;
  const std::set<std::string> before_;
  const std::set<std::string> lost_before_;
  Contents contents_;
  std::string key_;           // of the checksums in the file as it is
  std::size_t size_ = 0;      // of the file
  std::size_t compact_ = 0;   // from this size on it is rewritten
  bool must_rewrite_ = true;  // what is in the file is not known
  RateLimit complaints_{4, std::chrono::seconds(10)};
};

}  // namespace nfsrdma::nfs4
