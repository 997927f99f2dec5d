// SPDX-License-Identifier: Apache-2.0
// Calls whose RDMA Reads fail again and again. A failed Read kills the connection and the client
// resends the call with the same xid on the next one; without a memory of it that would go on for
// ever. After kPoisonAfter failures the call is answered with ERR_CHUNK instead (wire.md 5.5). A
// single failure proves nothing: the network may have cut a healthy transfer. Nor do old ones: xids
// come again, a busy client's within the day.
#pragma once

#include <array>
#include <cstdint>

#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

class PoisonTable {
 public:
  static constexpr std::uint32_t kPoisonAfter = 3;
  static constexpr std::size_t kEntries = 64;
  /// After the latest failure; a client sends again within seconds of it.
  static constexpr Duration kForgottenAfter = std::chrono::minutes(5);

  void record_failure(const SocketAddress& peer, std::uint32_t xid, TimePoint now) {
    if (Entry* entry = find(peer, xid)) {
      entry->failures = (entry->counts(now) ? entry->failures : 0) + 1;
      entry->latest = now;
      return;
    }
    entries_[next_] = Entry{peer, xid, 1, now};
    next_ = (next_ + 1) % kEntries;
    any_ = true;
  }
  void record_success(const SocketAddress& peer, std::uint32_t xid) {
    if (!any_) return;
    if (Entry* entry = find(peer, xid)) *entry = Entry{};
  }
  bool poisoned(const SocketAddress& peer, std::uint32_t xid, TimePoint now) {
    if (!any_) return false;
    Entry* entry = find(peer, xid);
    return entry != nullptr && entry->failures >= kPoisonAfter && entry->counts(now);
  }

 private:
  struct Entry {
    SocketAddress peer;
    std::uint32_t xid = 0;
    std::uint32_t failures = 0;
    TimePoint latest{};
    bool counts(TimePoint now) const { return now - latest < kForgottenAfter; }
  };
  Entry* find(const SocketAddress& peer, std::uint32_t xid) {
    for (Entry& entry : entries_) {
      if (entry.failures > 0 && entry.xid == xid && entry.peer.same_host(peer)) return &entry;
    }
    return nullptr;
  }

  std::array<Entry, kEntries> entries_{};
  std::size_t next_ = 0;
  bool any_ = false;  // almost always false: the fast path asks nothing else
};

}  // namespace nfsrdma
