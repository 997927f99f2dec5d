// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/extent_map.h"

#include <iterator>

namespace nfsrdma {
namespace {

/// The first extent that ends behind `offset`.
template <typename Map>
auto first_touching(Map& map, std::uint64_t offset) {
  auto it = map.upper_bound(offset);
  if (it != map.begin() && std::prev(it)->second.end() > offset) --it;
  return it;
}

/// The part of `extent` from byte `from` on, `length` long.
Extent part_of(const Extent& extent, std::uint64_t from, std::uint64_t length) {
  Extent part = extent;
  part.offset = from;
  part.length = static_cast<std::uint32_t>(length);
  part.block_offset += static_cast<std::uint32_t>(from - extent.offset);
  return part;
}

}  // namespace

bool ExtentMap::overlaps(std::uint64_t offset, std::uint64_t length) const {
  auto it = first_touching(map_, offset);
  return it != map_.end() && length > 0 && it->second.offset < offset + length;
}

Extent* ExtentMap::ending_at(std::uint64_t offset) {
  auto it = map_.lower_bound(offset);
  if (it == map_.begin()) return nullptr;
  --it;
  return it->second.end() == offset ? &it->second : nullptr;
}

Extent* ExtentMap::holding(std::uint64_t offset, std::uint64_t length) {
  auto it = first_touching(map_, offset);
  if (it == map_.end()) return nullptr;
  Extent& extent = it->second;
  return extent.offset <= offset && offset + length <= extent.end() ? &extent : nullptr;
}

void ExtentMap::carve(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = offset + length;
  for (auto it = first_touching(map_, offset); it != map_.end() && it->second.offset < end;) {
    Extent old = std::move(it->second);
    discount(old.length);
    it = map_.erase(it);
    if (old.offset < offset) insert(part_of(old, old.offset, offset - old.offset));
    if (old.end() > end) insert(part_of(old, end, old.end() - end));
  }
}

void ExtentMap::carve_all_of(const ExtentMap& newer) {
  if (map_.empty()) return;
  const std::uint64_t end = end_offset();
  for (auto it = first_touching(newer.map_, map_.begin()->first);
       it != newer.map_.end() && it->first < end; ++it) {
    carve(it->first, it->second.length);
  }
}

void ExtentMap::count(std::uint32_t length) {
  bytes_ += length;
  full_ += length >= full_length_;
}

void ExtentMap::discount(std::uint32_t length) {
  bytes_ -= length;
  full_ -= length >= full_length_;
}

void ExtentMap::insert(Extent extent) {
  if (extent.length == 0) return;
  count(extent.length);
  map_.insert_or_assign(extent.offset, std::move(extent));
}

void ExtentMap::grown(Extent& extent, std::uint32_t length) {
  discount(extent.length);
  extent.length += length;
  count(extent.length);
}

Extent ExtentMap::take(Map::iterator it) {
  Extent extent = std::move(it->second);
  discount(extent.length);
  map_.erase(it);
  return extent;
}

void ExtentMap::clear() {
  map_.clear();
  bytes_ = 0;
  full_ = 0;
}

}  // namespace nfsrdma
