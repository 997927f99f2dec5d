// SPDX-License-Identifier: Apache-2.0
// Counts handshakes under way, so that strangers cannot pile them up. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma::iwarp {

class HalfOpenLimit {
 public:
  HalfOpenLimit(std::uint32_t per_address, std::uint32_t total)
      : per_address_(per_address), total_(total) {}

  /// One handshake's place; free again on destruction.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : limit_(other.limit_), host_(other.host_) {
      other.limit_ = nullptr;
    }
    Slot& operator=(Slot&& other) noexcept {
      std::swap(limit_, other.limit_);
      std::swap(host_, other.host_);
      return *this;
    }
    ~Slot() {
      if (limit_ != nullptr) limit_->leave(host_);
    }
    explicit operator bool() const { return limit_ != nullptr; }

   private:
    friend class HalfOpenLimit;
    HalfOpenLimit* limit_ = nullptr;
    std::array<std::byte, 16> host_{};
  };

  /// Empty when `peer` or all together have too many.
  Slot enter(const SocketAddress& peer);

 private:
  void leave(const std::array<std::byte, 16>& host);

  const std::uint32_t per_address_;
  const std::uint32_t total_;
  std::mutex mutex_;
  std::uint32_t count_ = 0;                                   // guarded by mutex_
  std::map<std::array<std::byte, 16>, std::uint32_t> hosts_;  // guarded by mutex_
};

}  // namespace nfsrdma::iwarp
