// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/stag_table.h"

#include <sys/random.h>

#include <algorithm>
#include <numeric>

#include "rpcrdma/base/check.h"

namespace nfsrdma::iwarp {
namespace {

constexpr std::uint32_t kIndexMask = 0xffffff;

std::uint64_t system_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) {
    seed = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return seed | 1;
}

}  // namespace

StagTable::StagTable(std::uint64_t seed, std::uint32_t max_entries)
    : max_entries_(max_entries), random_state_(seed != 0 ? seed : system_seed()) {
  base_index_ = static_cast<std::uint32_t>(random()) & kIndexMask;
}

// splitmix64: not for secrets beyond the reach of a peer that guesses on one connection and is cut
// off at the first miss.
std::uint64_t StagTable::random() {
  std::uint64_t z = (random_state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint32_t StagTable::slot_of(std::uint32_t stag) const {
  std::uint32_t slot = ((stag >> 8) - base_index_) & kIndexMask;
  return slot < entries_.size() ? slot : kNoFree;
}

std::uint32_t StagTable::stag_of(std::uint32_t slot) const {
  return ((slot + base_index_) & kIndexMask) << 8 | entries_[slot].key;
}

bool StagTable::grow() {
  const std::size_t old_size = entries_.size();
  const std::size_t new_size =
      std::min<std::size_t>(max_entries_, old_size == 0 ? 64 : 2 * old_size);
  if (new_size == old_size) return false;
  entries_.resize(new_size);
  std::vector<std::uint32_t> order(new_size - old_size);
  std::iota(order.begin(), order.end(), static_cast<std::uint32_t>(old_size));
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random() % i]);
  for (std::uint32_t slot : order) {
    StagEntry& entry = entries_[slot];
    entry.key = static_cast<std::uint8_t>(random());
    entry.next_free = kNoFree;
    // Index 0 stays unused: no STag is ever 0.
    if (((slot + base_index_) & kIndexMask) == 0) continue;
    if (last_free_ == kNoFree) {
      first_free_ = slot;
    } else {
      entries_[last_free_].next_free = slot;
    }
    last_free_ = slot;
  }
  return first_free_ != kNoFree;
}

bool StagTable::add(MutableByteSpan bytes, Access access, std::uint64_t scope, Added* added) {
  if (first_free_ == kNoFree && !grow()) return false;
  const std::uint32_t slot = first_free_;
  StagEntry& entry = entries_[slot];
  first_free_ = entry.next_free;
  if (first_free_ == kNoFree) last_free_ = kNoFree;
  ++entry.key;
  entry.base = bytes.data();
  entry.size = bytes.size();
  // Far from both ends of the offset space, so that no honest access wraps.
  entry.base_offset = (random() & 0x00ffffffffffu) << 12;
  entry.scope = scope;
  entry.placed_end = 0;
  entry.access = access;
  entry.valid = entry.taken = entry.was_used = true;
  ++in_use_;
  *added = {stag_of(slot), entry.base_offset};
  return true;
}

std::uint64_t StagTable::remove(std::uint32_t stag) {
  const std::uint32_t slot = slot_of(stag);
  NFSRDMA_CHECK(slot != kNoFree);
  StagEntry& entry = entries_[slot];
  NFSRDMA_CHECK(entry.taken && entry.key == (stag & 0xff));
  entry.valid = entry.taken = false;
  entry.base = nullptr;
  // To the end of the queue: a slot rests as long as possible before its index comes back.
  entry.next_free = kNoFree;
  if (last_free_ == kNoFree) {
    first_free_ = slot;
  } else {
    entries_[last_free_].next_free = slot;
  }
  last_free_ = slot;
  --in_use_;
  return entry.scope;
}

StagAccess StagTable::check(std::uint32_t stag, std::uint64_t offset, std::uint64_t length,
                            std::uint64_t scope, Access access) {
  const std::uint32_t slot = slot_of(stag);
  if (slot == kNoFree) return {};
  StagEntry& entry = entries_[slot];
  if (!entry.valid || entry.key != (stag & 0xff)) return {};
  if (entry.scope != scope) return {StagFault::kStream};
  if (entry.access != access) return {StagFault::kAccess};
  std::uint64_t end;
  if (!checked_add(offset, length, &end) && end != 0) return {StagFault::kWrap};
  if (offset < entry.base_offset) return {StagFault::kBounds};
  const std::uint64_t position = offset - entry.base_offset;
  if (!range_inside(position, length, entry.size)) return {StagFault::kBounds};
  return {StagFault::kNone, &entry, position};
}

bool StagTable::invalidate(std::uint32_t stag, std::uint64_t scope) {
  const std::uint32_t slot = slot_of(stag);
  if (slot == kNoFree) return false;
  StagEntry& entry = entries_[slot];
  if (!entry.was_used) return false;
  if (!entry.taken || entry.key != (stag & 0xff)) return true;
  if (entry.scope != scope) return false;
  if (entry.access != Access::kRemoteRead && entry.access != Access::kRemoteWrite) return false;
  entry.valid = false;
  return true;
}

}  // namespace nfsrdma::iwarp
