// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/attribute_timer.h"

#include <algorithm>

namespace nfsrdma {

void AttributeTimer::changed(const AttributePolicy& policy, bool directory, TimePoint now) {
  span_ = directory ? policy.directory_min : policy.regular_min;
  grown_at_ = now;
  believe(policy, now);
}

void AttributeTimer::believe(const AttributePolicy& policy, TimePoint now) {
  const Duration span = held_ ? Duration(kHeld) : span_;
  until_ = policy.enabled ? now + span : TimePoint::min();
}

void AttributeTimer::unchanged(const AttributePolicy& policy, bool directory, TimePoint now) {
  const Duration low = directory ? policy.directory_min : policy.regular_min;
  const Duration high = directory ? policy.directory_max : policy.regular_max;
  // Grows only after a whole span without change, however often somebody asked meanwhile.
  if (now - grown_at_ >= span_) {
    span_ *= 2;
    grown_at_ = now;
  }
  span_ = std::clamp(span_, low, std::max(low, high));
  believe(policy, now);
}

void AttributeTimer::again(const AttributePolicy& policy, bool directory, TimePoint now) {
  if (policy.enabled) until_ = now + (directory ? policy.directory_min : policy.regular_min);
}

}  // namespace nfsrdma
