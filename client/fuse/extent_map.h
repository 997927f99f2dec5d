// SPDX-License-Identifier: Apache-2.0
// ExtentMap: pieces of one file that do not overlap, by offset.
#pragma once

#include <cstdint>
#include <map>

#include "client/fuse/caller.h"
#include "client/fuse/data_block.h"

namespace nfsrdma {

/// A run of file data in one block. Copies share the block; the bytes are not copied.
struct Extent {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  BlockRef block;
  std::uint32_t block_offset = 0;
  CallerRef writer;            // whose credentials the WRITE carries
  std::uint64_t verifier = 0;  // of the WRITE's reply; unstable extents only
  std::uint64_t serial = 0;    // order of becoming unstable

  std::uint64_t end() const { return offset + length; }
  ByteSpan bytes() const { return {block->data() + block_offset, length}; }
  MutableByteSpan mutable_bytes() const { return {block->data() + block_offset, length}; }
};

class ExtentMap {
 public:
  using Map = std::map<std::uint64_t, Extent>;

  /// Counts the extents of at least `full_length` bytes.
  explicit ExtentMap(std::uint32_t full_length = UINT32_MAX) : full_length_(full_length) {}

  bool empty() const { return map_.empty(); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t full() const { return full_; }
  /// One behind the last byte; 0 when empty.
  std::uint64_t end_offset() const { return map_.empty() ? 0 : map_.rbegin()->second.end(); }
  bool overlaps(std::uint64_t offset, std::uint64_t length) const;
  /// The extent that ends exactly at `offset`, or nullptr.
  Extent* ending_at(std::uint64_t offset);
  /// The extent that holds all of the range, or nullptr.
  Extent* holding(std::uint64_t offset, std::uint64_t length);
  /// Removes the range, cutting extents that stick out.
  void carve(std::uint64_t offset, std::uint64_t length);
  /// Removes whatever `newer` has.
  void carve_all_of(const ExtentMap& newer);
  /// Must not overlap.
  void insert(Extent extent);
  /// `extent` (of this map) has grown in place by `length`.
  void grown(Extent& extent, std::uint32_t length);
  Extent take(Map::iterator it);
  void clear();
  Map& extents() { return map_; }
  const Map& extents() const { return map_; }

 private:
  void count(std::uint32_t length);
  void discount(std::uint32_t length);

  Map map_;
  std::uint32_t full_length_;
  std::uint64_t bytes_ = 0;
  std::uint64_t full_ = 0;
};

}  // namespace nfsrdma
