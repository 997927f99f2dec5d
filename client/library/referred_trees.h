// SPDX-License-Identifier: Apache-2.0
// Paths of a Mount that lead over referrals (client/referral.h) go on on the servers that those
// name: each tree there is a Mount::Impl of its own, with connections, open files and limits of its
// own, opened by the first path that needs it and kept as long as the mount. What has moved to
// another server since (NFS4ERR_MOVED) is met as a referral by whoever looks it up by name again.
//
// All of it on the driven loop. No tree may end there, since its end runs the loop: they end with
// their mount, or with the last File in them.
#pragma once

#include <map>
#include <optional>

#include "client/gate.h"
#include "client/library/mount_impl.h"

namespace nfsrdma::client {

class ReferredTrees {
 public:
  /// Of one mount, those behind others included.
  static constexpr std::size_t kMost = 256;
  /// An attempt to go to one is believed for so long when it fails.
  static constexpr std::chrono::seconds kBelieveFailure{3};

  /// The tree behind `met`, which `from` came to: what is left of the path there is met.rest.
  /// EMFILE: there are too many; else the errors of follow_referral(), or of the last attempt.
  /// `from` outlives the Task.
  Task<nfsrdma::Result<Mount::Impl*>> reach(Mount::Impl& from, ReferralMet met);
  /// Of those that are open, and of those behind them.
  template <typename Do>
  void each(Do act) const {
    for (const auto& [path, place] : places_) {
      for (const Tree& tree : place->trees) {
        if (tree.impl->tree == nullptr) continue;
        act(tree.impl);
        tree.impl->referred->each(act);
      }
    }
  }

 private:
  struct Tree {
    std::vector<nfsrdma::ReferralTarget> targets;  // that it was opened by
    std::shared_ptr<Mount::Impl> impl;
  };
  /// Where a referral was met.
  struct Place {
    /// As often as it leads to others. Those that it has led to stay: Files may be open in them.
    std::vector<Tree> trees;
    bool opening = false;
    std::vector<nfsrdma::ReferralTarget> failed_targets{};
    std::optional<Error> failed{};
    TimePoint again_at{};
    Gate changed;
  };

  /// An open one that some of `targets` led to: a server may name others of them each time.
  static Mount::Impl* known(const Place& place,
                            const std::vector<nfsrdma::ReferralTarget>& targets);
  static Task<nfsrdma::Result<Mount::Impl*>> open(Mount::Impl& from, ReferralMet met, Place& place);

  std::map<std::string, std::unique_ptr<Place>> places_;  // by path
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
