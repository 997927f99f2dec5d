// SPDX-License-Identifier: Apache-2.0
// Counts handshakes under way, so that strangers cannot pile them up. Thread-safe. In IPv6 whoever
// is in a /64 has as many addresses as he likes, but so has the whole LAN, and each neighbour of a
// link: it has so many times what an address has.
//
// When there are as many as may be in all, the oldest ends for a new one, of whoever has most: a
// few addresses would else shut everybody out. First one that has not said a word. It is ended by
// shutting its socket down, which its own thread hears of.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma::iwarp {

class HalfOpenLimit {
 public:
  /// An IPv6 network has so many times what one address has.
  static constexpr std::uint32_t kPerNetwork = 4;

  HalfOpenLimit(std::uint32_t per_address, std::uint32_t total)
      : per_address_(per_address), total_(total) {}

  using Place = std::array<std::byte, 16>;

 private:
  struct Entry {
    Place address{}, network{};
    int fd = -1;
    bool heard = false;    // it has said something
    bool evicted = false;  // ended for another: counts no more, but may still be there
  };
  using Entries = std::list<Entry>;

 public:
  /// One handshake's place; free again on destruction, which comes before that of the socket.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : limit_(other.limit_), entry_(other.entry_) {
      other.limit_ = nullptr;
    }
    Slot& operator=(Slot&& other) noexcept {
      std::swap(limit_, other.limit_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Slot() {
      if (limit_ != nullptr) limit_->leave(entry_);
    }
    explicit operator bool() const { return limit_ != nullptr; }
    /// Some bytes came.
    void heard();
    /// The whole request came: it is not ended for another any more.
    void settle();

   private:
    friend class HalfOpenLimit;
    HalfOpenLimit* limit_ = nullptr;
    Entries::iterator entry_;
  };

  /// Empty when `peer` has too many, or all together and none can be ended. `fd`: to end this one
  /// by; -1: it cannot be.
  Slot enter(const SocketAddress& peer, int fd = -1);

 private:
  using Counts = std::map<Place, std::uint32_t>;
  static void take_from(Counts& counts, const Place& place);
  void uncount(const Entry& entry);
  /// How much of what it may have an entry's peer has, in handshakes of one address.
  std::uint32_t share_of(const Entry& entry) const;
  bool evict();
  void leave(Entries::iterator entry);

  const std::uint32_t per_address_;
  const std::uint32_t total_;
  std::mutex mutex_;
  Entries entries_;              // guarded by mutex_; the oldest first
  std::uint32_t count_ = 0;      // guarded by mutex_; without those that were evicted
  Counts addresses_, networks_;  // guarded by mutex_
};

}  // namespace nfsrdma::iwarp
