// SPDX-License-Identifier: Apache-2.0
// The places for connections that a server shares with those of other transports and threads. When
// all are taken a connection that says nothing makes room for a new one: strangers may have as many
// as they like of those.
#pragma once

#include <functional>

#include "rpcrdma/base/clock.h"

namespace nfsrdma {

/// Who loses its place; the first kind before the second.
enum class Silent {
  kSinceItConnected,  // never carried a call
  kForLong,           // no call for so long as the server's limits say
};

/// Of the connections of a server, considered one by one, the one that ends for a new one.
template <typename Connection>
class LongestSilent {
 public:
  /// For kForLong: silent since `since` at least.
  LongestSilent(Silent kind, TimePoint since)
      : for_long_(kind == Silent::kForLong), since_(since) {}

  /// `heard`: when it last said something, or connected.
  void consider(Connection& connection, TimePoint heard) {
    if (!connection.is_idle() || connection.has_called() != for_long_) return;
    if (for_long_ && heard > since_) return;
    if (longest_ != nullptr && heard >= heard_) return;
    longest_ = &connection;
    heard_ = heard;
  }
  /// It keeps its place until the loop has come round: there is one more for that long. False:
  /// there is none.
  bool end() {
    if (longest_ == nullptr) return false;
    longest_->cut_off(for_long_ ? "without a call for very long, and others want its place"
                                : "silent since it connected, and others want its place");
    return true;
  }

 private:
  const bool for_long_;
  const TimePoint since_;
  TimePoint heard_{};
  Connection* longest_ = nullptr;
};

struct SharedPlaces {
  /// Are they taken? On any thread. Null: there is no limit for all together.
  std::function<bool()> full;
  /// Ends the one of that kind that has been silent for longest, of the other transport on the same
  /// loop. False: there is none. May be null.
  std::function<bool(Silent)> evict_elsewhere;

  bool are_full() const { return full && full(); }
  /// `evict`: the same for the server's own connections.
  template <typename Evict>
  bool make_room(Evict evict) const {
    for (const Silent silent : {Silent::kSinceItConnected, Silent::kForLong}) {
      if (evict(silent) || (evict_elsewhere && evict_elsewhere(silent))) return true;
    }
    return false;
  }
};

}  // namespace nfsrdma
