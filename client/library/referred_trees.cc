// SPDX-License-Identifier: Apache-2.0
#include "client/library/referred_trees.h"

#include <algorithm>

#include "client/library/url_opener.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::client {
namespace {

constexpr Error kTooMany{Errc::kSystem, EMFILE, "trees of referrals"};

}  // namespace

Mount::Impl* ReferredTrees::known(const Place& place,
                                  const std::vector<nfsrdma::ReferralTarget>& targets) {
  for (const Tree& tree : place.trees) {
    const auto& led = tree.targets;
    const bool one =
        std::find_first_of(led.begin(), led.end(), targets.begin(), targets.end()) != led.end();
    if (one && tree.impl->tree != nullptr) return tree.impl.get();
  }
  return nullptr;
}

Task<nfsrdma::Result<Mount::Impl*>> ReferredTrees::reach(Mount::Impl& from, ReferralMet met) {
  const bool fresh = places_.find(met.path) == places_.end();
  if (fresh && *from.trees >= kMost) co_return kTooMany;
  std::unique_ptr<Place>& its = places_[met.path];
  if (its == nullptr) its = std::make_unique<Place>();
  Place& place = *its;
  while (place.opening) {
    [[maybe_unused]] const bool told = co_await place.changed.wait(nullptr);
  }
  if (Mount::Impl* tree = known(place, met.referral.targets)) co_return tree;
  EventLoop& loop = from.driver->loop();
  const bool same = place.failed_targets == met.referral.targets;
  if (same && place.failed && loop.refresh_now() < place.again_at) co_return *place.failed;
  place.failed_targets = met.referral.targets;
  place.opening = true;
  nfsrdma::Result<Mount::Impl*> done = co_await open(from, std::move(met), place);
  place.opening = false;
  place.failed.reset();
  if (!done.ok()) place.failed = done.error();
  place.again_at = loop.refresh_now() + kBelieveFailure;
  place.changed.wake_all();
  co_return std::move(done);
}

Task<nfsrdma::Result<Mount::Impl*>> ReferredTrees::open(Mount::Impl& from, ReferralMet met,
                                                        Place& place) {
  // What could not be opened the last time is tried again.
  if (place.trees.empty() || place.trees.back().impl->tree != nullptr) {
    if (*from.trees >= kMost) co_return kTooMany;
    ++*from.trees;
    auto impl = std::make_shared<Mount::Impl>(from.driver, from.asked);
    impl->trees = from.trees;
    place.trees.push_back({{}, std::move(impl)});
  }
  Tree& tree = place.trees.back();  // of one place, one is opened at a time
  tree.targets = met.referral.targets;
  const MountSettings& here = from.mount->settings();
  // A tree that has gone itself may go on where it has been before.
  ReferralTrail trail = from.tree->is_above(met) ? ReferralTrail(here) : *from.trail;
  // It begins where the referral is, whatever lies behind that for the first path.
  met.rest.clear();
  MountSettings settings = from.asked;
  settings.host = here.host;
  settings.addresses = here.addresses;
  settings.rdma_port = here.rdma_port;
  settings.tcp_port = here.tcp_port;
  settings.path = here.path;
  UrlOpener opener(*tree.impl, LastReferral::kFollow, UrlOpener::For::kReferral);
  std::string detail;
  const nfsrdma::Result<void> done =
      co_await follow_referral(from.driver->loop(), settings, met, opener, &trail, &detail);
  if (!done.ok()) {
    log_warning("{}: {} is a referral that cannot be followed: {}", terminal_text(here.host),
                terminal_text(met.path), detail);
    co_return done.error();
  }
  tree.impl->trail = std::move(trail);
  tree.impl->budget.limit = from.budget.limit;
  co_return tree.impl.get();
}

}  // namespace nfsrdma::client
