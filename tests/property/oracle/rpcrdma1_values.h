// SPDX-License-Identifier: Apache-2.0
// Transport headers as rpcgen has them: random ones within our limits, those limits said once more,
// and the way to our ChunkLists. Generated names: ::rdma_msg and the like.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rpcrdma/header.h"
#include "xdr/random.h"

// Behind ours: libtirpc's headers have macros.
#include "rpcrdma1_oracle.h"
#include "tests/property/oracle/convert.h"

namespace nfsrdma::oracle {

static_assert(ChunkLists::kMaxSegmentsPerChunk == RPCRDMA1_SEGMENTS_PER_CHUNK);

using xdr::RandomSource;

inline constexpr std::uint32_t kLongestSegment = ~std::uint32_t{0};

/// 0 to `max`, small most of the time.
inline std::uint64_t few(RandomSource& random, std::uint64_t max) {
  return random.below((random.below(4) == 0 ? max : std::min<std::uint64_t>(max, 3)) + 1);
}

inline void randomize(RandomSource& random, std::uint64_t longest, ::rpcrdma1_segment& to) {
  to.rdma_handle = random.make<std::uint32_t>();
  const std::uint64_t length = random.make<std::uint32_t>();
  to.rdma_length = static_cast<std::uint32_t>(length <= longest      ? length
                                              : random.below(8) == 0 ? longest
                                                                     : random.below(longest + 1));
  to.rdma_offset = std::min(random.make<std::uint64_t>(), ~std::uint64_t{0} - to.rdma_length);
}

inline ::rpcrdma1_read_list* random_reads(Arena& arena, RandomSource& random) {
  ::rpcrdma1_read_list* first = nullptr;
  ::rpcrdma1_read_list** link = &first;
  std::uint64_t segments_left = ChunkLists::kMaxReadSegments;
  std::uint64_t position = random.below(2) == 0 ? 0 : 4 * random.below(100);
  for (std::uint64_t left = few(random, ChunkLists::kMaxReadChunks); left > 0; --left) {
    // A chunk takes at most half of the stream that is left, so that the next ones find a place.
    // What is at position zero is apart from the stream.
    const bool apart = left == 1 || position == 0;
    std::uint64_t bytes_left = apart ? kLongestSegment : (kLongestSegment - position) / 2;
    std::uint64_t length = 0;
    for (std::uint64_t more = few(random, segments_left - left) + 1; more > 0; --more) {
      *link = arena.make<::rpcrdma1_read_list>();
      ::rpcrdma1_read_segment& entry = (*link)->rdma_entry;
      entry.rdma_position = static_cast<std::uint32_t>(position);
      randomize(random, bytes_left, entry.rdma_target);
      bytes_left -= entry.rdma_target.rdma_length;
      length += entry.rdma_target.rdma_length;
      --segments_left;
      link = &(*link)->rdma_next;
    }
    position += position == 0 ? 4 : std::max<std::uint64_t>(4, (length + 3) / 4 * 4);
    position += 4 * random.below(3);
  }
  return first;
}

inline void randomize(Arena& arena, RandomSource& random, std::uint64_t segments,
                      std::uint32_t longest, ::rpcrdma1_write_chunk& to) {
  to.rdma_target.rdma_target_len = static_cast<unsigned>(segments);
  to.rdma_target.rdma_target_val = arena.make_array<::rpcrdma1_segment>(segments);
  for (std::uint64_t i = 0; i < segments; ++i)
    randomize(random, longest, to.rdma_target.rdma_target_val[i]);
}

inline ::rpcrdma1_write_list* random_writes(Arena& arena, RandomSource& random,
                                            std::uint32_t longest) {
  ::rpcrdma1_write_list* first = nullptr;
  ::rpcrdma1_write_list** link = &first;
  std::uint64_t segments_left = ChunkLists::kMaxWriteSegments;
  for (std::uint64_t left = few(random, ChunkLists::kMaxWriteChunks); left > 0; --left) {
    const std::uint64_t segments =
        few(random, std::min<std::uint64_t>(segments_left, ChunkLists::kMaxSegmentsPerChunk));
    segments_left -= segments;
    *link = arena.make<::rpcrdma1_write_list>();
    randomize(arena, random, segments, longest, (*link)->rdma_entry);
    link = &(*link)->rdma_next;
  }
  return first;
}

inline ::rpcrdma1_write_chunk* random_reply(Arena& arena, RandomSource& random,
                                            std::uint32_t longest) {
  if (random.below(3) == 0) return nullptr;
  auto* chunk = arena.make<::rpcrdma1_write_chunk>();
  randomize(arena, random, few(random, ChunkLists::kMaxSegmentsPerChunk), longest, *chunk);
  return chunk;
}

/// Into the body of a type that has lists.
template <typename Lists>
void randomize(Arena& arena, RandomSource& random, Lists& to) {
  to.rdma_reads = random_reads(arena, random);
  to.rdma_writes = random_writes(arena, random, kLongestSegment);
  to.rdma_reply = random_reply(arena, random, kLongestSegment);
}

/// A header of version 1 that our decoder has to take.
inline ::rdma_msg random_header(Arena& arena, RandomSource& random, std::uint32_t proc) {
  ::rdma_msg to;
  std::memset(&to, 0, sizeof to);
  to.rdma_xid = random.make<std::uint32_t>();
  to.rdma_vers = kRpcRdmaVersion;
  to.rdma_credit = random.make<std::uint32_t>();
  to.rdma_body.proc = static_cast<::rdma_proc>(proc);
  auto& body = to.rdma_body.rpcrdma1_body_u;
  switch (proc) {
    case RDMA_MSG:
      randomize(arena, random, body.rdma_msg);
      break;
    case RDMA_NOMSG:
      randomize(arena, random, body.rdma_nomsg);
      break;
    case RDMA_MSGP:
      body.rdma_msgp.rdma_align = random.make<std::uint32_t>();
      body.rdma_msgp.rdma_thresh = random.make<std::uint32_t>();
      randomize(arena, random, body.rdma_msgp);
      break;
    case RDMA_ERROR:
      body.rdma_error.err = random.below(2) == 0 ? ::ERR_VERS : ::ERR_CHUNK;
      if (body.rdma_error.err == ::ERR_CHUNK) break;
      body.rdma_error.rpcrdma1_error_u.range.rdma_vers_low = random.make<std::uint32_t>();
      body.rdma_error.rpcrdma1_error_u.range.rdma_vers_high = random.make<std::uint32_t>();
      break;
    default:
      break;
  }
  return to;
}

/// Of RDMA_MSG and RDMA_NOMSG.
inline const ::rpcrdma1_chunk_lists& lists_of(const ::rdma_msg& header) {
  const auto& body = header.rdma_body.rpcrdma1_body_u;
  return header.rdma_body.proc == ::RDMA_NOMSG ? body.rdma_nomsg : body.rdma_msg;
}

inline Segment segment_of(const ::rpcrdma1_segment& from) {
  return {from.rdma_handle, from.rdma_length, from.rdma_offset};
}
inline std::span<const ::rpcrdma1_segment> segments_of(const ::rpcrdma1_write_chunk& chunk) {
  return {chunk.rdma_target.rdma_target_val, chunk.rdma_target.rdma_target_len};
}

/// As a sender of ours builds them; false when it refuses.
inline bool build(const ::rpcrdma1_chunk_lists& from, ChunkLists& to) {
  to.clear();
  bool ok = true;
  for (const auto* read = from.rdma_reads; read != nullptr; read = read->rdma_next) {
    const ::rpcrdma1_read_segment& entry = read->rdma_entry;
    ok = to.add_read_segment(entry.rdma_position, segment_of(entry.rdma_target)) && ok;
  }
  for (const auto* write = from.rdma_writes; write != nullptr; write = write->rdma_next) {
    ok = to.begin_write_chunk() && ok;
    for (const ::rpcrdma1_segment& segment : segments_of(write->rdma_entry))
      ok = to.add_write_segment(segment_of(segment)) && ok;
  }
  if (from.rdma_reply == nullptr) return ok;
  to.has_reply_chunk = true;
  for (const ::rpcrdma1_segment& segment : segments_of(*from.rdma_reply))
    ok = to.add_reply_segment(segment_of(segment)) && ok;
  return ok;
}

inline bool segment_fits(const ::rpcrdma1_segment& segment) {
  return segment.rdma_offset <= ~std::uint64_t{0} - segment.rdma_length;
}

inline bool reads_fit(const ::rpcrdma1_read_list* read) {
  std::size_t segments = 0, chunks = 0;
  std::uint64_t position = 0, length = 0, free_from = 0;
  for (; read != nullptr; read = read->rdma_next) {
    const ::rpcrdma1_read_segment& entry = read->rdma_entry;
    if (++segments > ChunkLists::kMaxReadSegments) return false;
    if (entry.rdma_position % 4 != 0 || !segment_fits(entry.rdma_target)) return false;
    if (chunks == 0 || entry.rdma_position != position) {
      if (++chunks > ChunkLists::kMaxReadChunks || entry.rdma_position < free_from) return false;
      position = entry.rdma_position;
      length = 0;
    }
    length += entry.rdma_target.rdma_length;
    if (length > kLongestSegment) return false;
    free_from = position == 0 ? 4 : position + std::max<std::uint64_t>(4, (length + 3) / 4 * 4);
  }
  return true;
}

/// What the oracle has no idea of: the rules of rpcrdma/chunk_list.h.
inline bool lists_fit(const ::rpcrdma1_chunk_lists& lists) {
  std::size_t chunks = 0, segments = 0;
  bool fit = reads_fit(lists.rdma_reads);
  for (const auto* write = lists.rdma_writes; write != nullptr; write = write->rdma_next) {
    ++chunks;
    segments += segments_of(write->rdma_entry).size();
    for (const ::rpcrdma1_segment& segment : segments_of(write->rdma_entry))
      fit = segment_fits(segment) && fit;
  }
  if (lists.rdma_reply != nullptr) {
    for (const ::rpcrdma1_segment& segment : segments_of(*lists.rdma_reply))
      fit = segment_fits(segment) && fit;
  }
  return fit && chunks <= ChunkLists::kMaxWriteChunks && segments <= ChunkLists::kMaxWriteSegments;
}

}  // namespace nfsrdma::oracle
