// SPDX-License-Identifier: Apache-2.0
// GracePeriod: after a start of the server, who may claim state from before, and when everybody may
// make new state (RFC 8881 8.4.2, 18.51; RFC 7530 9.6.2). The list of those who had state comes
// from stable storage; whoever is not on it lost a lease or an argument before the restart (RFC
// 8881 8.4.3), and reclaims nothing.
//
// Pure: no I/O; time comes with the calls. The caller serialises.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "rpcrdma/base/clock.h"

namespace nfsrdma::nfs4 {

class GracePeriod {
 public:
  /// `before`: owner strings of the clients that had state when the server ended. With none there
  /// is no grace period. `length`: not less than the longest lease that the server has ever given.
  /// `lost_before`: of these, who may believe in a delegation that was revoked.
  GracePeriod(std::set<std::string> before, TimePoint start, Duration length,
              std::set<std::string> lost_before = {})
      : waited_for_(before),
        before_(std::move(before)),
        lost_before_(std::move(lost_before)),
        end_(start + length) {}

  enum class Verdict : std::uint8_t {
    kGo,
    kGrace,       // NFS4ERR_GRACE: later
    kNoGrace,     // NFS4ERR_NO_GRACE: it is too late to reclaim
    kReclaimBad,  // NFS4ERR_RECLAIM_BAD: nothing from before is known of this client
  };
  /// A claim of state from before: OPEN with CLAIM_PREVIOUS, LOCK with reclaim.
  Verdict reclaim(const std::string& owner, TimePoint now) const;
  /// Of who may reclaim: a delegation as well? What was revoked may have been changed by others
  /// since (RFC 7530 10.2.1, RFC 8881 8.4.3).
  bool reclaims_delegations(const std::string& owner) const {
    return !lost_before_.contains(owner);
  }
  /// New state: any other OPEN or LOCK. `completes`: the client's minor version has
  /// RECLAIM_COMPLETE, which it has to send first. (REMOVE, RENAME, and I/O without an open wait
  /// while over() is false: they might get in the way of what is reclaimed.)
  Verdict make_new(const std::string& owner, bool completes, TimePoint now) const;

  /// RECLAIM_COMPLETE for all file systems, also of a client that had nothing to reclaim. False:
  /// NFS4ERR_COMPLETE_ALREADY.
  bool complete(const std::string& owner);
  bool has_completed(const std::string& owner) const { return completed_.contains(owner); }
  /// An administrator has taken what it held: it reclaims nothing any more.
  void exclude(const std::string& owner) { before_.erase(owner); }
  /// The client, or its record, is gone: nobody waits for it any more. A later life of it may
  /// complete again.
  void forget(const std::string& owner);

  /// The time is up, or nobody is waited for.
  bool over(TimePoint now) const { return waited_for_.empty() || now >= end_; }

 private:
  std::set<std::string> waited_for_;  // of `before_`: those that have not completed
  std::set<std::string> before_;
  const std::set<std::string> lost_before_;
  std::set<std::string> completed_;
  const TimePoint end_;
};

}  // namespace nfsrdma::nfs4
