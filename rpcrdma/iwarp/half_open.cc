// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/half_open.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace nfsrdma::iwarp {
namespace {

/// `network`: of IPv6 what 64 bits say.
HalfOpenLimit::Place place_of(const SocketAddress& address, bool network) {
  HalfOpenLimit::Place place{};
  if (address.family() == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr;
    std::memcpy(place.data(), &in6, network && !IN6_IS_ADDR_V4MAPPED(&in6) ? 8 : 16);
  } else if (address.family() == AF_INET) {
    place[10] = place[11] = std::byte{0xff};
    std::memcpy(place.data() + 12, &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr,
                4);
  }
  return place;
}

}  // namespace

HalfOpenLimit::Slot HalfOpenLimit::enter(const SocketAddress& peer, int fd) {
  Entry entry;
  entry.address = place_of(peer, false);
  entry.network = place_of(peer, true);
  entry.fd = fd;
  std::lock_guard lock(mutex_);
  if (total_ == 0 || per_address_ == 0) return {};
  const auto of = [](const Counts& counts, const Place& place) {
    const auto found = counts.find(place);
    return found == counts.end() ? 0u : found->second;
  };
  if (of(addresses_, entry.address) >= per_address_ ||
      of(networks_, entry.network) >= kPerNetwork * per_address_) {
    return {};
  }
  if (count_ >= total_ && !evict()) return {};
  ++addresses_[entry.address];
  ++networks_[entry.network];
  ++count_;
  Slot slot;
  slot.entry_ = entries_.insert(entries_.end(), entry);
  slot.limit_ = this;
  return slot;
}

std::uint32_t HalfOpenLimit::share_of(const Entry& entry) const {
  return std::max(addresses_.at(entry.address), networks_.at(entry.network) / kPerNetwork);
}

bool HalfOpenLimit::evict() {
  // Those that were ended before are gone when their threads come round; until then they cost a
  // descriptor each.
  if (entries_.size() >= 2 * std::size_t{total_}) return false;
  Entry* first = nullptr;
  std::uint32_t most = 0;
  for (Entry& entry : entries_) {
    if (entry.evicted || entry.fd < 0) continue;
    const std::uint32_t share = share_of(entry);
    const bool goes_first =
        first == nullptr || share > most || (share == most && first->heard && !entry.heard);
    if (!goes_first) continue;
    first = &entry;
    most = share;
  }
  if (first == nullptr) return false;
  first->evicted = true;
  uncount(*first);
  ::shutdown(first->fd, SHUT_RDWR);
  return true;
}

void HalfOpenLimit::take_from(Counts& counts, const Place& place) {
  const auto found = counts.find(place);
  if (--found->second == 0) counts.erase(found);
}

void HalfOpenLimit::uncount(const Entry& entry) {
  take_from(addresses_, entry.address);
  take_from(networks_, entry.network);
  --count_;
}

void HalfOpenLimit::leave(Entries::iterator entry) {
  std::lock_guard lock(mutex_);
  if (!entry->evicted) uncount(*entry);
  entries_.erase(entry);
}

void HalfOpenLimit::Slot::heard() {
  std::lock_guard lock(limit_->mutex_);
  entry_->heard = true;
}

void HalfOpenLimit::Slot::settle() {
  std::lock_guard lock(limit_->mutex_);
  entry_->fd = -1;
}

}  // namespace nfsrdma::iwarp
