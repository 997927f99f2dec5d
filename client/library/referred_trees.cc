// SPDX-License-Identifier: Apache-2.0
#include "client/library/referred_trees.h"

#include <algorithm>

#include "client/library/url_opener.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::client {

Task<nfsrdma::Result<Mount::Impl*>> ReferredTrees::reach(Mount::Impl& from, ReferralMet met) {
  const std::string path = met.path;
  if (by_path_.count(path) == 0 && by_path_.size() + former_.size() >= kMost) {
    co_return Error{Errc::kSystem, EMFILE, "trees of referrals"};
  }
  std::unique_ptr<ReferredTree>& place = by_path_[path];
  if (place == nullptr) place = std::make_unique<ReferredTree>();
  ReferredTree& tree = *place;
  while (tree.opening) {
    [[maybe_unused]] const bool told = co_await tree.changed.wait(nullptr);
  }
  // Some servers name them in another order each time.
  const auto& wanted = met.referral.targets;
  const bool same =
      std::is_permutation(wanted.begin(), wanted.end(), tree.targets.begin(), tree.targets.end());
  const bool open = tree.impl != nullptr && tree.impl->tree != nullptr;
  if (same && open) co_return tree.impl.get();
  EventLoop& loop = from.driver->loop();
  if (same && tree.failed && loop.refresh_now() < tree.again_at) co_return *tree.failed;
  if (open) {
    if (by_path_.size() + former_.size() >= kMost) {
      co_return Error{Errc::kSystem, EMFILE, "trees of referrals"};
    }
    former_.push_back(std::move(tree.impl));
  }
  tree.targets = wanted;
  tree.opening = true;
  const nfsrdma::Result<void> done = co_await this->open(from, std::move(met), tree);
  tree.opening = false;
  tree.failed.reset();
  if (!done.ok()) tree.failed = done.error();
  tree.again_at = loop.refresh_now() + ReferredTree::kBelieveFailure;
  tree.changed.wake_all();
  if (!done.ok()) co_return done.error();
  co_return tree.impl.get();
}

Task<nfsrdma::Result<void>> ReferredTrees::open(Mount::Impl& from, ReferralMet met,
                                                ReferredTree& tree) {
  // The tree begins where the referral is, whatever lies behind it for the first one.
  met.rest.clear();
  if (tree.impl == nullptr) {
    tree.impl = std::make_shared<Mount::Impl>(from.driver);
    tree.impl->op.identity = from.op.identity;
  }
  tree.impl->budget.limit = from.budget.limit;
  UrlOpener opener(*tree.impl, LastReferral::kFollow, UrlOpener::Leaving::kNever);
  ReferralTrail trail = *from.trail;
  std::string detail;
  nfsrdma::Result<void> done = co_await follow_referral(from.driver->loop(), from.mount->settings(),
                                                        met, opener, &trail, &detail);
  tree.impl->trail = std::move(trail);
  if (!done.ok()) {
    log_warning("{}: {} is a referral that cannot be followed: {}",
                terminal_text(from.mount->settings().host), terminal_text(met.path), detail);
  }
  co_return done;
}

}  // namespace nfsrdma::client
