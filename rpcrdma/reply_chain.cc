// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/reply_chain.h"

#include <algorithm>
#include <cstring>

namespace nfsrdma {

namespace {

constexpr std::size_t kPadRoom = 4;
// A result that has a Write chunk goes there (RFC 8267 6.1).
static_assert(xdr::Encoder::kMaxPayloads >= ChunkLists::kMaxWriteChunks);

std::size_t write_list_bytes(const ChunkLists& offered) {
  return offered.write_chunk_count * kWriteChunkBytes + offered.write_segment_count * kSegmentBytes;
}

std::size_t reply_chunk_bytes(const ChunkLists& offered) {
  return 4 + offered.reply_segment_count * kSegmentBytes;
}

/// `segments` again, with `used` bytes spread over them in order.
void echo_segments(WordWriter& out, std::span<const Segment> segments, std::uint64_t used) {
  for (Segment segment : segments) {
    segment.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(used, segment.length));
    used -= segment.length;
    out.segment(segment);
  }
}

}  // namespace

ReplyForm ReplyChain::build(const ReplyParts& parts) {
  request_count_ = sge_count_ = piece_count_ = stream_bytes_ = 0;
  written_bytes_ = sent_bytes_ = 0;
  const ChunkLists& offered = *parts.offered;
  ReplyForm form = ReplyForm::kErrChunk;
  if (pair_payloads(parts)) {
    std::size_t stream = parts.encoded.size();
    for (std::size_t i = 0; i < parts.payloads.size(); ++i) {
      if (!reduced_[i]) stream += round_up4(parts.payloads[i].bytes.size());
    }
    std::size_t inline_header = kMinCallHeaderBytes + write_list_bytes(offered);
    if (kUnusedReplyChunkPolicy == UnusedReplyChunk::kZeroLengths && offered.has_reply_chunk) {
      inline_header += reply_chunk_bytes(offered);
    }
    const std::size_t long_header =
        kMinCallHeaderBytes + write_list_bytes(offered) + reply_chunk_bytes(offered);
    if (inline_header + stream <= parts.inline_send) {
      form = ReplyForm::kInline;
    } else if (stream <= offered.reply_length && long_header <= parts.inline_send) {
      form = ReplyForm::kLong;
    }
    stream_bytes_ = stream;
  }
  const std::size_t header_bytes = encode(parts, form);
  if (form == ReplyForm::kErrChunk) {
    build_send(parts, header_bytes);
    return form;
  }
  pad_ = parts.send_room.data() + header_bytes;
  std::memset(pad_, 0, kPadRoom);
  list_pieces(parts);
  write_payloads(parts);
  if (form == ReplyForm::kLong) write_reply_chunk(parts);
  send(parts, header_bytes, form == ReplyForm::kInline);
  return form;
}

void ReplyChain::build_send(const ReplyParts& parts, std::size_t size) {
  request_count_ = sge_count_ = 0;
  written_bytes_ = 0;
  sent_bytes_ = size;
  sges_[sge_count_++] = {parts.send_room.data(), static_cast<std::uint32_t>(size), parts.send_lkey};
  add_request(WorkOpcode::kSend, 0).signaled = true;
}

/// False when a payload must use a chunk that is too small for it.
bool ReplyChain::pair_payloads(const ReplyParts& parts) {
  for (std::size_t i = 0; i < parts.payloads.size(); ++i) {
    reduced_[i] = false;
    if (i >= parts.offered->write_chunk_count) continue;
    const WriteChunk& chunk = parts.offered->write_chunks[i];
    if (chunk.length == 0) continue;
    if (parts.payloads[i].bytes.size() > chunk.length) return false;
    reduced_[i] = true;
  }
  return true;
}

void ReplyChain::add_piece(std::byte* address, std::size_t length, std::uint32_t lkey) {
  if (length > 0) pieces_[piece_count_++] = {address, static_cast<std::uint32_t>(length), lkey};
}

void ReplyChain::list_pieces(const ReplyParts& parts) {
  // The adapter only reads what is sent; Sge has one type for both directions.
  std::byte* encoded = const_cast<std::byte*>(parts.encoded.data());
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts.payloads.size(); ++i) {
    if (reduced_[i]) continue;
    const xdr::PayloadReference& payload = parts.payloads[i];
    add_piece(encoded + at, payload.head_bytes - at, parts.encoded_lkey);
    at = payload.head_bytes;
    add_piece(const_cast<std::byte*>(payload.bytes.data()), payload.bytes.size(),
              parts.payload_lkey);
    add_piece(pad_, pad4(payload.bytes.size()), parts.send_lkey);
  }
  add_piece(encoded + at, parts.encoded.size() - at, parts.encoded_lkey);
}

std::size_t ReplyChain::encode(const ReplyParts& parts, ReplyForm form) {
  if (form == ReplyForm::kErrChunk) return encode_err_chunk(parts.send_room, parts.xid, 1);
  const ChunkLists& offered = *parts.offered;
  WordWriter out(parts.send_room);
  out.word(parts.xid);
  out.word(kRpcRdmaVersion);
  out.word(1);  // credits: patched when the chain is posted
  out.word(form == ReplyForm::kLong ? RDMA_NOMSG : RDMA_MSG);
  out.word(0);  // Read list
  for (std::size_t i = 0; i < offered.write_chunk_count; ++i) {
    const WriteChunk& chunk = offered.write_chunks[i];
    out.word(1);
    out.word(chunk.count);
    const bool used = i < parts.payloads.size() && reduced_[i];
    echo_segments(out, offered.segments(chunk), used ? parts.payloads[i].bytes.size() : 0);
  }
  out.word(0);
  const bool echo_reply =
      form == ReplyForm::kLong ||
      (kUnusedReplyChunkPolicy == UnusedReplyChunk::kZeroLengths && offered.has_reply_chunk);
  out.word(echo_reply ? 1 : 0);
  if (echo_reply) {
    out.word(offered.reply_segment_count);
    echo_segments(out, offered.reply(), form == ReplyForm::kLong ? stream_bytes_ : 0);
  }
  return out.written();
}

WorkRequest& ReplyChain::add_request(WorkOpcode opcode, std::size_t first_sge) {
  WorkRequest& request = requests_[request_count_++];
  request = WorkRequest{};
  request.opcode = opcode;
  request.signaled = false;
  request.sges = {sges_.data() + first_sge, sge_count_ - first_sge};
  return request;
}

void ReplyChain::write_payloads(const ReplyParts& parts) {
  for (std::size_t i = 0; i < parts.payloads.size(); ++i) {
    if (!reduced_[i]) continue;
    std::byte* from = const_cast<std::byte*>(parts.payloads[i].bytes.data());
    std::size_t left = parts.payloads[i].bytes.size();
    for (const Segment& segment : parts.offered->segments(parts.offered->write_chunks[i])) {
      const std::uint32_t length =
          static_cast<std::uint32_t>(std::min<std::size_t>(left, segment.length));
      if (length == 0) continue;  // some adapters refuse Writes of nothing
      sges_[sge_count_++] = {from, length, parts.payload_lkey};
      WorkRequest& request = add_request(WorkOpcode::kWrite, sge_count_ - 1);
      request.remote_handle = segment.handle;
      request.remote_offset = segment.offset;
      from += length;
      left -= length;
      written_bytes_ += length;
    }
  }
}

void ReplyChain::write_reply_chunk(const ReplyParts& parts) {
  std::size_t piece = 0;
  std::uint32_t piece_done = 0;
  for (const Segment& segment : parts.offered->reply()) {
    std::uint32_t segment_done = 0;
    while (segment_done < segment.length && piece < piece_count_) {
      const std::size_t first_sge = sge_count_;
      const std::uint32_t request_start = segment_done;
      while (segment_done < segment.length && piece < piece_count_ &&
             sge_count_ - first_sge < parts.max_send_sge) {
        const Sge& from = pieces_[piece];
        const std::uint32_t length =
            std::min(from.length - piece_done, segment.length - segment_done);
        sges_[sge_count_++] = {from.address + piece_done, length, from.lkey};
        segment_done += length;
        piece_done += length;
        if (piece_done == from.length) {
          ++piece;
          piece_done = 0;
        }
      }
      WorkRequest& request = add_request(WorkOpcode::kWrite, first_sge);
      request.remote_handle = segment.handle;
      request.remote_offset = segment.offset + request_start;
    }
  }
  written_bytes_ += stream_bytes_;
}

void ReplyChain::send(const ReplyParts& parts, std::size_t header_bytes, bool with_pieces) {
  const std::size_t first_sge = sge_count_;
  sent_bytes_ = header_bytes + (with_pieces ? stream_bytes_ : 0);
  sges_[sge_count_++] = {parts.send_room.data(), static_cast<std::uint32_t>(header_bytes),
                         parts.send_lkey};
  if (with_pieces && piece_count_ + 1 <= parts.max_send_sge) {
    for (std::size_t i = 0; i < piece_count_; ++i)
      sges_[sge_count_++] = pieces_[i];
  } else if (with_pieces) {
    std::byte* to = parts.send_room.data() + header_bytes;
    for (std::size_t i = 0; i < piece_count_; ++i) {
      // The pad source lies where the copy goes: zeros are written, not copied.
      if (pieces_[i].address == pad_) {
        std::memset(to, 0, pieces_[i].length);
      } else {
        std::memcpy(to, pieces_[i].address, pieces_[i].length);
      }
      to += pieces_[i].length;
    }
    sges_[first_sge].length += static_cast<std::uint32_t>(stream_bytes_);
  }
  WorkRequest& request = add_request(WorkOpcode::kSend, first_sge);
  request.signaled = true;
  if (parts.invalidate) {
    request.opcode = WorkOpcode::kSendWithInvalidate;
    request.remote_handle = *parts.invalidate;
  }
}

}  // namespace nfsrdma
