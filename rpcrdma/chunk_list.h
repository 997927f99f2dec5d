// SPDX-License-Identifier: Apache-2.0
// Chunk lists of an RPC-over-RDMA version 1 header (RFC 8166, section 4.3): Read list, Write list,
// Reply chunk. Decoding checks everything once, against the named limits; afterwards these are
// plain values in fixed arrays, and no code behind has to doubt them:
//
//  * counts are within the limits, every segment's offset + length fits 64 bits;
//  * Read chunks are in ascending order of position, positions are multiples of 4 and chunks do
//    not overlap in the XDR stream;
//  * the Position-Zero chunk, if any, is the first one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

struct Segment {
  std::uint32_t handle = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Consecutive entries of the Read list with the same position.
struct ReadChunk {
  std::uint32_t position = 0;  // in the unreduced XDR stream; 0: the whole message
  std::uint32_t length = 0;    // of all segments
  std::uint16_t first = 0;     // index into ChunkLists::read_segments
  std::uint16_t count = 0;
};

struct WriteChunk {
  std::uint64_t length = 0;  // capacity in a call, bytes written in a reply
  std::uint16_t first = 0;   // index into ChunkLists::write_segments
  std::uint16_t count = 0;   // 0: a place-holder
};

struct ChunkLists {
  static constexpr std::size_t kMaxReadSegments = 64;
  static constexpr std::size_t kMaxReadChunks = 16;
  static constexpr std::size_t kMaxWriteChunks = 16;
  static constexpr std::size_t kMaxSegmentsPerChunk = 64;
  static constexpr std::size_t kMaxWriteSegments = 128;  // of all Write chunks together

  std::array<Segment, kMaxReadSegments> read_segments;
  std::array<ReadChunk, kMaxReadChunks> read_chunks;
  std::array<Segment, kMaxWriteSegments> write_segments;
  std::array<WriteChunk, kMaxWriteChunks> write_chunks;
  std::array<Segment, kMaxSegmentsPerChunk> reply_segments;
  std::uint16_t read_segment_count = 0;
  std::uint16_t read_chunk_count = 0;
  std::uint16_t write_segment_count = 0;
  std::uint16_t write_chunk_count = 0;
  std::uint16_t reply_segment_count = 0;
  bool has_reply_chunk = false;
  std::uint64_t reply_length = 0;  // capacity in a call, bytes written in a reply

  ChunkLists() {}  // the arrays stay uninitialised: the counts say what is valid

  void clear();
  std::span<const ReadChunk> reads() const { return {read_chunks.data(), read_chunk_count}; }
  std::span<const WriteChunk> writes() const { return {write_chunks.data(), write_chunk_count}; }
  std::span<const Segment> segments(const ReadChunk& chunk) const {
    return {read_segments.data() + chunk.first, chunk.count};
  }
  std::span<const Segment> segments(const WriteChunk& chunk) const {
    return {write_segments.data() + chunk.first, chunk.count};
  }
  std::span<const Segment> reply() const { return {reply_segments.data(), reply_segment_count}; }
  bool has_position_zero() const { return read_chunk_count > 0 && read_chunks[0].position == 0; }
  bool empty() const { return read_chunk_count == 0 && write_chunk_count == 0 && !has_reply_chunk; }

  /// For building: false when a limit is reached.
  bool add_read_segment(std::uint32_t position, const Segment& segment);
  bool begin_write_chunk();
  bool add_write_segment(const Segment& segment);
  bool add_reply_segment(const Segment& segment);
};

/// Bounded reader of 32-bit words; the first shortage sticks.
class WordReader {
 public:
  explicit WordReader(ByteSpan bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  std::size_t consumed() const { return at_; }
  std::uint32_t word() {
    if (bytes_.size() - at_ < 4) {
      ok_ = false;
      return 0;
    }
    std::uint32_t v = load_be32(bytes_.data() + at_);
    at_ += 4;
    return v;
  }
  Segment segment() {
    Segment s;
    s.handle = word();
    s.length = word();
    s.offset = std::uint64_t{word()} << 32;
    s.offset |= word();
    return s;
  }

 private:
  ByteSpan bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

/// Bounded writer of 32-bit words.
class WordWriter {
 public:
  explicit WordWriter(MutableByteSpan room) : room_(room) {}
  bool ok() const { return ok_; }
  std::size_t written() const { return at_; }
  void word(std::uint32_t v) {
    if (room_.size() - at_ < 4) {
      ok_ = false;
      return;
    }
    store_be32(room_.data() + at_, v);
    at_ += 4;
  }
  void segment(const Segment& s) {
    word(s.handle);
    word(s.length);
    word(static_cast<std::uint32_t>(s.offset >> 32));
    word(static_cast<std::uint32_t>(s.offset));
  }

 private:
  MutableByteSpan room_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

/// Reads the three lists; false when they break a rule above.
bool decode_chunk_lists(WordReader& in, ChunkLists& lists);
void encode_chunk_lists(WordWriter& out, const ChunkLists& lists);

/// The one handle that appears in all chunks of a call, which a reply may invalidate; nullopt when
/// there are several or none. A last segment of at most 4 bytes in a Write chunk does not count:
/// Linux puts its shared pad region there (wire.md 5.7), which must not be chosen either.
std::optional<std::uint32_t> invalidation_candidate(const ChunkLists& lists);

}  // namespace nfsrdma
