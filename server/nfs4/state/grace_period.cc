// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/grace_period.h"

namespace nfsrdma::nfs4 {

GracePeriod::Verdict GracePeriod::reclaim(const std::string& owner, TimePoint now) const {
  // Whoever has completed said that there is nothing more to come.
  if (over(now) || completed_.contains(owner)) return Verdict::kNoGrace;
  return before_.contains(owner) ? Verdict::kGo : Verdict::kReclaimBad;
}

GracePeriod::Verdict GracePeriod::make_new(const std::string& owner, bool completes,
                                           TimePoint now) const {
  if (!over(now)) return Verdict::kGrace;
  if (completes && !completed_.contains(owner)) return Verdict::kGrace;
  return Verdict::kGo;
}

bool GracePeriod::complete(const std::string& owner) {
  waited_for_.erase(owner);
  return completed_.insert(owner).second;
}

void GracePeriod::forget(const std::string& owner) {
  waited_for_.erase(owner);
  completed_.erase(owner);
}

}  // namespace nfsrdma::nfs4
