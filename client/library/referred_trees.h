// SPDX-License-Identifier: Apache-2.0
// Paths of a Mount that lead over referrals (client/referral.h) go on on the servers that those
// name: each tree there is a Mount::Impl of its own, with connections, open files and limits of its
// own, opened by the first path that needs it and kept as long as the mount. What has moved to
// another server since (NFS4ERR_MOVED) is met as a referral by whoever looks it up by name again.
//
// All of it on the driven loop. A tree does not end there but with its mount: its end runs the
// loop.
#pragma once

#include <map>
#include <optional>

#include "client/gate.h"
#include "client/library/mount_impl.h"

namespace nfsrdma::client {

/// What one referral leads to.
struct ReferredTree {
  /// One attempt to go there is believed for so long when it fails.
  static constexpr std::chrono::seconds kBelieveFailure{3};

  std::vector<nfsrdma::ReferralTarget> targets;  // that it was opened by
  std::shared_ptr<Mount::Impl> impl;             // null before the first attempt
  bool opening = false;
  std::optional<Error> failed{};
  TimePoint again_at{};
  Gate changed;
};

class ReferredTrees {
 public:
  /// Of one mount.
  static constexpr std::size_t kMost = 256;

  /// The tree behind `met`, which `from` came to: what is left of the path there is met.rest.
  /// EMFILE: there are too many; else the errors of follow_referral(), or of the last attempt.
  /// `from` outlives the Task and the tree.
  Task<nfsrdma::Result<Mount::Impl*>> reach(Mount::Impl& from, ReferralMet met);
  /// Of those that are open.
  template <typename Do>
  void each(Do act) const {
    for (const auto& [path, tree] : by_path_) {
      if (tree->impl && tree->impl->tree) act(*tree->impl);
    }
  }

 private:
  Task<nfsrdma::Result<void>> open(Mount::Impl& from, ReferralMet met, ReferredTree& tree);

  std::map<std::string, std::unique_ptr<ReferredTree>> by_path_;  // of the referral
  // That referrals led to before they led elsewhere; Files may be open in them.
  std::vector<std::shared_ptr<Mount::Impl>> former_;
};

/// Runs operation(tree, path), a Task<Result<T>>, in the tree that `path` leads to and with what is
/// left of the path there. *at is where it begins, and then that tree; it and `operation` outlive
/// the Task.
template <typename T, typename Operation>
Task<nfsrdma::Result<T>> along(Mount::Impl** at, std::string path, const Operation& operation) {
  for (std::size_t referrals = 0;; ++referrals) {
    nfsrdma::Result<T> done = co_await operation(**at, path);
    if (done.ok()) co_return std::move(done);
    const ReferralMet* here = (*at)->tree->met(done.error());
    if (here == nullptr) co_return done.error();
    if (referrals == kMostReferrals) co_return Error{Errc::kInvalid, ELOOP, "referral"};
    ReferralMet met = *here;
    path = met.rest;
    Task<nfsrdma::Result<Mount::Impl*>> reached = (*at)->referred->reach(**at, std::move(met));
    nfsrdma::Result<Mount::Impl*> next = co_await std::move(reached);
    if (!next.ok()) co_return next.error();
    *at = *next;
  }
}

}  // namespace nfsrdma::client
