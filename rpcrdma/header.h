// SPDX-License-Identifier: Apache-2.0
// The transport header of RPC-over-RDMA version 1 (RFC 8166, section 4): fixed part, message
// types, errors. One decoder for both ends.
#pragma once

#include <cstdint>

#include "rpcrdma/chunk_list.h"

namespace nfsrdma {

enum rdma_proc : std::uint32_t {
  RDMA_MSG = 0,
  RDMA_NOMSG = 1,
  RDMA_MSGP = 2,  // obsolete
  RDMA_DONE = 3,  // obsolete
  RDMA_ERROR = 4,
};

enum rpcrdma_errcode : std::uint32_t { ERR_VERS = 1, ERR_CHUNK = 2 };

inline constexpr std::uint32_t kRpcRdmaVersion = 1;
inline constexpr std::size_t kFixedHeaderBytes = 16;    // xid, version, credits, type
inline constexpr std::size_t kCreditsOffset = 8;        // of the third word
inline constexpr std::size_t kMinCallHeaderBytes = 28;  // with three empty lists
inline constexpr std::size_t kWriteChunkBytes = 8;      // discriminator, count
inline constexpr std::size_t kSegmentBytes = 16;
inline constexpr std::size_t kReadSegmentBytes = 24;
/// No header that we make is longer: every Write list and Reply chunk within ChunkLists' limits.
inline constexpr std::size_t kMaxReplyHeaderBytes =
    kMinCallHeaderBytes + ChunkLists::kMaxWriteChunks * kWriteChunkBytes +
    (ChunkLists::kMaxWriteSegments + ChunkLists::kMaxSegmentsPerChunk) * kSegmentBytes + 8;

struct TransportHeader {
  std::uint32_t xid = 0;
  std::uint32_t version = kRpcRdmaVersion;
  std::uint32_t credits = 0;
  std::uint32_t proc = RDMA_MSG;
  // RDMA_ERROR only:
  std::uint32_t error = 0;
  std::uint32_t version_low = 0;
  std::uint32_t version_high = 0;
  ChunkLists chunks;             // RDMA_MSG and RDMA_NOMSG only
  std::size_t header_bytes = 0;  // the RPC message, if any, follows
};

enum class HeaderVerdict : std::uint8_t {
  kOk,
  kTooShort,      // not even a fixed part: drop
  kWrongVersion,  // xid and credits are valid: ERR_VERS
  kUnknownType,   // xid and credits are valid: ERR_CHUNK
  kBadChunks,     // xid and credits are valid: ERR_CHUNK
};

/// Decodes and checks the header at the start of `message`. On kOk all fields are valid.
HeaderVerdict decode_header(ByteSpan message, TransportHeader& header);

/// What a responder additionally demands of a call: the number of bytes of RPC message in line,
/// where its items may have been removed, and the largest call that it takes. False: ERR_CHUNK.
bool call_chunks_sane(const TransportHeader& header, std::size_t inline_bytes,
                      std::size_t max_call);

/// Each writes a header and gives its size; 0 when `room` is too small.
std::size_t encode_header(MutableByteSpan room, std::uint32_t xid, std::uint32_t credits,
                          rdma_proc proc, const ChunkLists& chunks);
std::size_t encode_err_vers(MutableByteSpan room, std::uint32_t xid, std::uint32_t credits);
std::size_t encode_err_chunk(MutableByteSpan room, std::uint32_t xid, std::uint32_t credits);

}  // namespace nfsrdma
