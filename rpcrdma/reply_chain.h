// SPDX-License-Identifier: Apache-2.0
// How a reply travels (RFC 8166, section 3.5 and 4.3; wire.md 5.3), and the work requests that
// make it so:
//
//  1. Each payload is paired with the Write chunk of the same rank and must use it, unless the
//     chunk is a place-holder without room; then it goes in line.
//  2. What remains goes in the Send when it fits the inline threshold, also when a Reply chunk was
//     offered: that saves an RDMA Write.
//  3. Otherwise it goes into the Reply chunk, and the Send carries the header alone.
//  4. Otherwise the answer is ERR_CHUNK.
//
// Nothing is copied but headers: pieces of the message are gathered by the adapter. Only when a
// device takes too few of them in one request an inline message is put together by copying.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "rpcrdma/chunk_list.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/header.h"
#include "xdr/encoder.h"

namespace nfsrdma {

/// RFC 8166 allows an unused Reply chunk to be returned with zero lengths or left out of an inline
/// reply. Linux clients take both; shorter is better.
enum class UnusedReplyChunk : std::uint8_t { kAbsent, kZeroLengths };
inline constexpr UnusedReplyChunk kUnusedReplyChunkPolicy = UnusedReplyChunk::kAbsent;

struct ReplyParts {
  std::uint32_t xid = 0;
  const ChunkLists* offered = nullptr;  // the call's
  ByteSpan encoded;                     // the RPC reply without payloads
  std::uint32_t encoded_lkey = 0;
  std::span<const xdr::PayloadReference> payloads;
  std::uint32_t payload_lkey = 0;
  MutableByteSpan send_room;  // for the header, and the message when it must be copied
  std::uint32_t send_lkey = 0;
  std::uint32_t inline_send = 1024;
  std::uint32_t max_send_sge = 1;
  std::optional<std::uint32_t> invalidate;
};

enum class ReplyForm : std::uint8_t { kInline, kLong, kErrChunk };

/// Room for one chain; one per shard is enough, since post() copies.
class ReplyChain {
 public:
  /// Decides and builds. The requests' wr_ids and the credits are still to be set.
  ReplyForm build(const ReplyParts& parts);
  /// A lone Send of `size` bytes that stand in the send room already.
  void build_send(const ReplyParts& parts, std::size_t size);

  std::span<WorkRequest> requests() { return {requests_.data(), request_count_}; }
  std::uint64_t written_bytes() const { return written_bytes_; }  // by RDMA Write
  std::uint64_t sent_bytes() const { return sent_bytes_; }        // in the Send

 private:
  static constexpr std::size_t kMaxPieces = 4 * xdr::Encoder::kMaxPayloads + 2;
  static constexpr std::size_t kMaxRequests =
      ChunkLists::kMaxWriteSegments + ChunkLists::kMaxSegmentsPerChunk + kMaxPieces + 1;
  static constexpr std::size_t kMaxSges = kMaxRequests + kMaxPieces;

  bool pair_payloads(const ReplyParts& parts);
  void list_pieces(const ReplyParts& parts);
  void add_piece(std::byte* address, std::size_t length, std::uint32_t lkey);
  std::size_t encode(const ReplyParts& parts, ReplyForm form);
  void write_payloads(const ReplyParts& parts);
  void write_reply_chunk(const ReplyParts& parts);
  void send(const ReplyParts& parts, std::size_t header_bytes, bool with_pieces);
  WorkRequest& add_request(WorkOpcode opcode, std::size_t first_sge);

  std::array<bool, xdr::Encoder::kMaxPayloads> reduced_{};
  std::array<Sge, kMaxPieces> pieces_;  // the stream that is not reduced
  std::size_t piece_count_ = 0;
  std::size_t stream_bytes_ = 0;
  std::byte* pad_ = nullptr;  // four zero bytes in the send room
  std::array<WorkRequest, kMaxRequests> requests_;
  std::size_t request_count_ = 0;
  std::array<Sge, kMaxSges> sges_;
  std::size_t sge_count_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace nfsrdma
