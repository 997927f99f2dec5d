// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/chunk_list.h"

namespace nfsrdma {

namespace {

bool segment_fits(const Segment& segment) {
  std::uint64_t end;
  return checked_add<std::uint64_t>(segment.offset, segment.length, &end);
}

/// A list entry starts with 1, the list ends with 0; anything else is no XDR boolean.
enum class More { kYes, kNo, kBroken };
More next_entry(WordReader& in) {
  const std::uint32_t discriminator = in.word();
  if (!in.ok() || discriminator > 1) return More::kBroken;
  return discriminator == 1 ? More::kYes : More::kNo;
}

bool decode_read_list(WordReader& in, ChunkLists& lists) {
  for (;;) {
    const More more = next_entry(in);
    if (more != More::kYes) return more == More::kNo;
    const std::uint32_t position = in.word();
    const Segment segment = in.segment();
    if (!in.ok() || !lists.add_read_segment(position, segment)) return false;
  }
}

bool decode_write_list(WordReader& in, ChunkLists& lists) {
  for (;;) {
    const More more = next_entry(in);
    if (more != More::kYes) return more == More::kNo;
    const std::uint32_t count = in.word();
    if (!in.ok() || count > ChunkLists::kMaxSegmentsPerChunk) return false;
    if (!lists.begin_write_chunk()) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Segment segment = in.segment();
      if (!in.ok() || !lists.add_write_segment(segment)) return false;
    }
  }
}

bool decode_reply_chunk(WordReader& in, ChunkLists& lists) {
  const More more = next_entry(in);
  if (more != More::kYes) return more == More::kNo;
  lists.has_reply_chunk = true;
  const std::uint32_t count = in.word();
  if (!in.ok() || count > ChunkLists::kMaxSegmentsPerChunk) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Segment segment = in.segment();
    if (!in.ok() || !lists.add_reply_segment(segment)) return false;
  }
  return true;
}

}  // namespace

void ChunkLists::clear() {
  read_segment_count = read_chunk_count = 0;
  write_segment_count = write_chunk_count = 0;
  reply_segment_count = 0;
  has_reply_chunk = false;
  reply_length = 0;
}

bool ChunkLists::add_read_segment(std::uint32_t position, const Segment& segment) {
  if (read_segment_count == kMaxReadSegments || (position & 3) != 0 || !segment_fits(segment)) {
    return false;
  }
  const bool same_chunk =
      read_chunk_count > 0 && read_chunks[read_chunk_count - 1].position == position;
  if (!same_chunk) {
    if (read_chunk_count == kMaxReadChunks) return false;
    if (read_chunk_count > 0) {
      // Positions count in the unreduced stream, where each item stands with its pad. The
      // Position-Zero chunk holds the rest of the stream and overlaps nothing.
      const ReadChunk& before = read_chunks[read_chunk_count - 1];
      const std::uint64_t end =
          before.position == 0 ? 4 : before.position + ((std::uint64_t{before.length} + 3) & ~3ull);
      if (position < end || position <= before.position) return false;
    }
    read_chunks[read_chunk_count++] = ReadChunk{position, 0, read_segment_count, 0};
  }
  ReadChunk& chunk = read_chunks[read_chunk_count - 1];
  if (!checked_add(chunk.length, segment.length, &chunk.length)) return false;
  read_segments[read_segment_count++] = segment;
  ++chunk.count;
  return true;
}

bool ChunkLists::begin_write_chunk() {
  if (write_chunk_count == kMaxWriteChunks) return false;
  write_chunks[write_chunk_count++] = WriteChunk{0, write_segment_count, 0};
  return true;
}

bool ChunkLists::add_write_segment(const Segment& segment) {
  if (write_chunk_count == 0 || write_segment_count == kMaxWriteSegments) return false;
  WriteChunk& chunk = write_chunks[write_chunk_count - 1];
  if (chunk.count == kMaxSegmentsPerChunk || !segment_fits(segment)) return false;
  write_segments[write_segment_count++] = segment;
  ++chunk.count;
  chunk.length += segment.length;
  return true;
}

bool ChunkLists::add_reply_segment(const Segment& segment) {
  if (reply_segment_count == kMaxSegmentsPerChunk || !segment_fits(segment)) return false;
  has_reply_chunk = true;
  reply_segments[reply_segment_count++] = segment;
  reply_length += segment.length;
  return true;
}

bool decode_chunk_lists(WordReader& in, ChunkLists& lists) {
  lists.clear();
  return decode_read_list(in, lists) && decode_write_list(in, lists) &&
         decode_reply_chunk(in, lists);
}

void encode_chunk_lists(WordWriter& out, const ChunkLists& lists) {
  for (const ReadChunk& chunk : lists.reads()) {
    for (const Segment& segment : lists.segments(chunk)) {
      out.word(1);
      out.word(chunk.position);
      out.segment(segment);
    }
  }
  out.word(0);
  for (const WriteChunk& chunk : lists.writes()) {
    out.word(1);
    out.word(chunk.count);
    for (const Segment& segment : lists.segments(chunk))
      out.segment(segment);
  }
  out.word(0);
  out.word(lists.has_reply_chunk ? 1 : 0);
  if (!lists.has_reply_chunk) return;
  out.word(lists.reply_segment_count);
  for (const Segment& segment : lists.reply())
    out.segment(segment);
}

std::optional<std::uint32_t> invalidation_candidate(const ChunkLists& lists) {
  std::optional<std::uint32_t> candidate;
  std::optional<std::uint32_t> pad_handle;
  bool several = false;
  auto offer = [&](const Segment& segment) {
    if (!candidate) {
      candidate = segment.handle;
    } else if (*candidate != segment.handle) {
      several = true;
    }
  };
  for (std::size_t i = 0; i < lists.read_segment_count; ++i)
    offer(lists.read_segments[i]);
  for (const WriteChunk& chunk : lists.writes()) {
    std::span<const Segment> segments = lists.segments(chunk);
    if (segments.size() > 1 && segments.back().length <= 4) {
      pad_handle = segments.back().handle;
      segments = segments.first(segments.size() - 1);
    }
    for (const Segment& segment : segments)
      offer(segment);
  }
  for (const Segment& segment : lists.reply())
    offer(segment);
  if (several || candidate == pad_handle) return std::nullopt;
  return candidate;
}

}  // namespace nfsrdma
