// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/half_open.h"

#include <cstring>

namespace nfsrdma::iwarp {
namespace {

std::array<std::byte, 16> host_of(const SocketAddress& address) {
  std::array<std::byte, 16> host{};
  if (address.family() == AF_INET6) {
    std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr, 16);
  } else if (address.family() == AF_INET) {
    host[10] = host[11] = std::byte{0xff};
    std::memcpy(host.data() + 12, &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr,
                4);
  }
  return host;
}

}  // namespace

HalfOpenLimit::Slot HalfOpenLimit::enter(const SocketAddress& peer) {
  Slot slot;
  slot.host_ = host_of(peer);
  std::lock_guard lock(mutex_);
  if (count_ >= total_) return {};
  std::uint32_t& of_host = hosts_[slot.host_];
  if (of_host >= per_address_) return {};
  ++of_host;
  ++count_;
  slot.limit_ = this;
  return slot;
}

void HalfOpenLimit::leave(const std::array<std::byte, 16>& host) {
  std::lock_guard lock(mutex_);
  auto found = hosts_.find(host);
  if (--found->second == 0) hosts_.erase(found);
  --count_;
}

}  // namespace nfsrdma::iwarp
