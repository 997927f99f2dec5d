// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/write_behind.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace nfsrdma {
namespace {

// What is appended to grows to a whole WRITE. A block starts as small as its data: pieces that lie
// scattered stay as they are, and there may be a great many.
constexpr std::size_t kFirstGrowth = std::size_t{4} << 10;
constexpr std::size_t kGrowth = 4;

// Longer pieces are sent as they are: copying them would cost what a call of their own does.
constexpr std::uint32_t kJoinUpTo = std::uint32_t{64} << 10;

/// Moves `extent` into a block that has room for `capacity` bytes.
void move_to_larger_block(Extent& extent, std::size_t capacity) {
  BlockRef block = std::make_shared<DataBlock>(capacity);
  std::memcpy(block->data(), extent.bytes().data(), extent.length);
  block->used = extent.length;
  extent.block = std::move(block);
  extent.block_offset = 0;
}

}  // namespace

bool WriteBehind::append_in_place(std::uint64_t offset, ByteSpan data, const CallerRef& writer) {
  Extent* before = dirty_.ending_at(offset);
  if (before == nullptr || before->writer != writer) return false;
  if (before->length + data.size() > write_size_) return false;
  const std::size_t at = before->block_offset + before->length;
  if (before->block->used != at || at + data.size() > before->block->capacity()) {
    const std::size_t wanted = before->length + data.size();
    move_to_larger_block(
        *before, std::min<std::size_t>(std::max(wanted * kGrowth, kFirstGrowth), write_size_));
  }
  std::memcpy(before->block->data() + before->block_offset + before->length, data.data(),
              data.size());
  before->block->used = before->block_offset + before->length + data.size();
  dirty_.grown(*before, static_cast<std::uint32_t>(data.size()));
  return true;
}

void WriteBehind::write(std::uint64_t offset, ByteSpan data, const CallerRef& writer) {
  if (data.empty()) return;
  if (Extent* same = dirty_.holding(offset, data.size()); same && same->writer == writer) {
    std::memcpy(same->mutable_bytes().data() + (offset - same->offset), data.data(), data.size());
    return;
  }
  dirty_.carve(offset, data.size());
  // Fills up the piece before to a whole WRITE; what is left starts a new one.
  if (Extent* before = dirty_.ending_at(offset);
      before != nullptr && before->writer == writer && before->length < write_size_) {
    const std::size_t fits = std::min<std::size_t>(data.size(), write_size_ - before->length);
    if (append_in_place(offset, data.first(fits), writer)) {
      offset += fits;
      data = data.subspan(fits);
    }
  }
  while (!data.empty()) {
    const std::size_t n = std::min<std::size_t>(data.size(), write_size_);
    BlockRef block = std::make_shared<DataBlock>(n);
    std::memcpy(block->data(), data.data(), n);
    block->used = n;
    dirty_.insert({offset, static_cast<std::uint32_t>(n), std::move(block), 0, writer});
    offset += n;
    data = data.subspan(n);
  }
}

void WriteBehind::adopt(std::uint64_t offset, BlockRef block, std::uint32_t block_offset,
                        std::uint32_t length, const CallerRef& writer) {
  dirty_.carve(offset, length);
  block->used = block->capacity();  // what lies behind the data is not ours to grow into
  for (std::uint32_t done = 0; done < length;) {
    const std::uint32_t n = std::min(length - done, write_size_);
    dirty_.insert({offset + done, n, block, block_offset + done, writer});
    done += n;
  }
}

bool WriteBehind::flying(std::uint64_t offset, std::uint64_t length) const {
  return std::any_of(flights_.begin(), flights_.end(), [&](const Flight& flight) {
    return flight.extent.offset < offset + length && offset < flight.extent.end();
  });
}

std::optional<WriteBehind::FlightRef> WriteBehind::next(bool all) {
  // Many small scattered pieces do not wait for a flush either: memory is bounded by bytes.
  all |= dirty_.full() == 0 && has_full();
  if (!all && dirty_.full() == 0) return {};  // asked behind each write(2)
  for (auto it = dirty_.extents().begin(); it != dirty_.extents().end(); ++it) {
    const Extent& extent = it->second;
    if (!all && extent.length < write_size_) continue;
    if (flying(extent.offset, extent.length)) continue;
    return flights_.insert(flights_.end(), Flight{take_joined(it)});
  }
  return {};
}

/// The extent at `first`, with those right behind it that fit into the same WRITE: what was written
/// there in another order.
Extent WriteBehind::take_joined(ExtentMap::Map::iterator first) {
  const auto none = dirty_.extents().end();
  std::size_t length = first->second.length;
  if (length > kJoinUpTo) return dirty_.take(first);
  auto behind = std::next(first);
  for (; behind != none; ++behind) {
    const Extent& next = behind->second;
    const bool touches =
        next.offset == first->second.offset + length && next.writer == first->second.writer;
    const bool fits = next.length <= kJoinUpTo && length + next.length <= write_size_;
    if (!touches || !fits || flying(next.offset, next.length)) break;
    length += next.length;
  }
  if (std::next(first) == behind) return dirty_.take(first);
  BlockRef block = std::make_shared<DataBlock>(length);
  for (auto it = std::next(first); it != behind;) {
    const Extent piece = dirty_.take(it++);
    std::memcpy(block->data() + (piece.offset - first->second.offset), piece.bytes().data(),
                piece.length);
  }
  Extent joined = dirty_.take(first);
  std::memcpy(block->data(), joined.bytes().data(), joined.length);
  block->used = length;
  joined.length = static_cast<std::uint32_t>(length);
  joined.block = std::move(block);
  joined.block_offset = 0;
  return joined;
}

void WriteBehind::written(FlightRef flight, std::uint32_t count, bool stable,
                          std::uint64_t verifier) {
  Extent extent = std::move(flight->extent);
  flights_.erase(flight);
  count = std::min(count, extent.length);
  if (count < extent.length) {
    Extent rest = extent;
    rest.offset += count;
    rest.block_offset += count;
    rest.length -= count;
    make_dirty_below(std::move(rest));
    extent.length = count;
  }
  // Older unstable data of the range is history, whatever becomes of this.
  unstable_.carve(extent.offset, extent.length);
  if (!has_unstable()) doubted_at_ = 0;
  if (verifier != verifier_) doubt();
  if (stable) return;
  verifier_ = verifier;
  extent.verifier = verifier;
  extent.serial = ++serial_;
  unstable_.insert(std::move(extent));
}

void WriteBehind::returned(FlightRef flight) {
  Extent extent = std::move(flight->extent);
  flights_.erase(flight);
  make_dirty_below(std::move(extent));
}

/// Makes what nothing newer (dirty or in flight) covers dirty again.
void WriteBehind::make_dirty_below(Extent extent) {
  ExtentMap pieces;
  pieces.insert(std::move(extent));
  pieces.carve_all_of(dirty_);
  for (const Flight& newer : flights_)
    pieces.carve(newer.extent.offset, newer.extent.length);
  for (auto& [offset, piece] : pieces.extents())
    dirty_.insert(piece);
}

bool WriteBehind::committed(std::uint64_t mark, std::uint64_t verifier) {
  std::vector<Extent> lost;
  auto& extents = unstable_.extents();
  for (auto it = extents.begin(); it != extents.end();) {
    auto current = it++;
    // What was answered after the COMMIT left is not covered by it; the next one will tell.
    if (current->second.serial > mark) continue;
    Extent extent = unstable_.take(current);
    if (extent.verifier != verifier) lost.push_back(std::move(extent));
  }
  if (doubted_at_ <= mark) doubted_at_ = 0;
  const bool all_stable = lost.empty();
  for (Extent& extent : lost)
    make_dirty_below(std::move(extent));
  return all_stable;
}

void WriteBehind::truncated(std::uint64_t size) {
  unstable_.carve(size, UINT64_MAX - size);
  dirty_.carve(size, UINT64_MAX - size);
  if (!has_unstable()) doubted_at_ = 0;
}

bool WriteBehind::pending(std::uint64_t offset, std::uint64_t length) const {
  return dirty_.overlaps(offset, length) || flying(offset, length);
}

std::uint64_t WriteBehind::bytes_held() const {
  std::uint64_t total = dirty_.bytes() + unstable_.bytes();
  for (const Flight& flight : flights_)
    total += flight.extent.length;
  return total;
}

std::uint64_t WriteBehind::pending_end() const {
  std::uint64_t end = dirty_.end_offset();
  for (const Flight& flight : flights_)
    end = std::max(end, flight.extent.end());
  return in_doubt() ? std::max(end, unstable_.end_offset()) : end;
}

bool WriteBehind::single_write() const {
  return flights_.empty() && unstable_.empty() && dirty_.extents().size() == 1;
}

}  // namespace nfsrdma
