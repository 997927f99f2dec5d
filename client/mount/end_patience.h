// SPDX-License-Identifier: Apache-2.0
// EndPatience: how long a mount that comes to its end waits for its server. Data that is not on the
// server yet is waited for without limit, as on every hard mount, until somebody tells the daemon
// to stop: then only as long as the server answers, and not longer than a service manager waits
// before it kills. No calls, no clock of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

class EndPatience {
 public:
  /// Nothing is unwritten: only goodbyes are under way.
  static constexpr std::chrono::seconds kClean{3};
  /// Told to stop: without any answer from the server.
  static constexpr std::chrono::seconds kSilent{10};
  /// Told to stop: in spite of answers.
  static constexpr std::chrono::seconds kAtMost{60};

  /// SIGTERM or the like.
  void told(TimePoint now) {
    if (!told_) told_ = now;
  }
  /// The kernel has let go of the mount, or was made to.
  void ending(TimePoint now) {
    if (!ending_) ending_ = now;
  }

  /// Is it time to give up? `unwritten`: bytes that may not be stable; `answers`: how many the
  /// server gave so far.
  bool over(TimePoint now, std::uint64_t unwritten, std::uint64_t answers) {
    if (answers != answers_) {
      answers_ = answers;
      heard_ = now;
    }
    if (unwritten > 0) {
      clean_.reset();
    } else if (!clean_) {
      clean_ = now;
    }
    if (ending_ && clean_ && now - std::max(*ending_, *clean_) >= kClean) return true;
    if (!told_) return false;
    return now - std::max(*told_, heard_) >= kSilent || now - *told_ >= kAtMost;
  }

 private:
  std::optional<TimePoint> told_, ending_, clean_;
  TimePoint heard_ = TimePoint::min();
  std::uint64_t answers_ = 0;
};

}  // namespace nfsrdma
