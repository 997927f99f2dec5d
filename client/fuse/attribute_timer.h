// SPDX-License-Identifier: Apache-2.0
// How long cached attributes of one object may be believed, by nfs(5): at least ac*min, and longer
// the longer the object stays unchanged, up to ac*max. A change starts again at the minimum. With a
// delegation the server tells when they are not good any more.
#pragma once

#include <chrono>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

struct AttributePolicy {
  std::chrono::seconds regular_min{3}, regular_max{60};
  std::chrono::seconds directory_min{30}, directory_max{60};
  bool enabled = true;  // false: noac
};

class AttributeTimer {
 public:
  /// Attributes arrived that differ from what was known (or nothing was known).
  void changed(const AttributePolicy& policy, bool directory, TimePoint now);
  /// Attributes arrived and nothing changed.
  void unchanged(const AttributePolicy& policy, bool directory, TimePoint now);
  /// The server did not say: what is known is believed for the shortest time once more.
  void again(const AttributePolicy& policy, bool directory, TimePoint now);
  /// From the next attributes on: the server has promised to tell of changes.
  void hold() { held_ = true; }
  /// The promise is over, and the attributes may be.
  void let_go() {
    held_ = false;
    expire();
  }
  bool held() const { return held_; }
  /// Do not believe them any longer; how fast the timer had grown stays.
  void expire() { until_ = TimePoint::min(); }

  bool fresh(TimePoint now) const { return now < until_; }
  /// Zero when not fresh.
  Duration left(TimePoint now) const { return fresh(now) ? until_ - now : Duration::zero(); }

 private:
  /// Long enough to cost nothing; a lost message then does harm for so long at most.
  static constexpr std::chrono::minutes kHeld{30};

  void believe(const AttributePolicy& policy, TimePoint now);

  TimePoint until_ = TimePoint::min();
  TimePoint grown_at_ = TimePoint::min();  // when span_ last changed
  Duration span_{0};
  bool held_ = false;
};

}  // namespace nfsrdma
