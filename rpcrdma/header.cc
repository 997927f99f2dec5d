// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/header.h"

namespace nfsrdma {

namespace {

HeaderVerdict decode_error(WordReader& in, TransportHeader& header) {
  header.error = in.word();
  if (header.error == ERR_VERS) {
    header.version_low = in.word();
    header.version_high = in.word();
  }
  return in.ok() ? HeaderVerdict::kOk : HeaderVerdict::kBadChunks;
}

}  // namespace

HeaderVerdict decode_header(ByteSpan message, TransportHeader& header) {
  WordReader in(message);
  header.chunks.clear();
  header.xid = in.word();
  header.version = in.word();
  header.credits = in.word();
  header.proc = in.word();
  header.error = header.version_low = header.version_high = 0;
  header.header_bytes = kFixedHeaderBytes;
  if (!in.ok()) return HeaderVerdict::kTooShort;
  if (header.version != kRpcRdmaVersion) return HeaderVerdict::kWrongVersion;
  switch (header.proc) {
    case RDMA_MSG:
    case RDMA_NOMSG: {
      if (!decode_chunk_lists(in, header.chunks)) return HeaderVerdict::kBadChunks;
      header.header_bytes = in.consumed();
      return HeaderVerdict::kOk;
    }
    case RDMA_MSGP:
    case RDMA_DONE:
      return HeaderVerdict::kOk;
    case RDMA_ERROR:
      return decode_error(in, header);
    default:
      return HeaderVerdict::kUnknownType;
  }
}

bool call_chunks_sane(const TransportHeader& header, std::size_t inline_bytes,
                      std::size_t max_call) {
  const ChunkLists& chunks = header.chunks;
  const bool long_call = chunks.has_position_zero();
  // A Long message has nothing in line, a short one nothing at position zero.
  if (long_call != (header.proc == RDMA_NOMSG)) return false;
  const std::size_t stream = long_call ? chunks.read_chunks[0].length : inline_bytes;
  std::size_t removed = 0;  // of the stream before the current chunk, pads included
  std::size_t total = stream;
  for (const ReadChunk& chunk : chunks.reads().subspan(long_call ? 1 : 0)) {
    // The item's length word stands before it, so the place lies inside of what was not removed.
    if (chunk.position - removed > stream) return false;
    removed += round_up4(chunk.length);
    total += round_up4(chunk.length);
    if (total > max_call) return false;
  }
  return total <= max_call;
}

std::size_t encode_header(MutableByteSpan room, std::uint32_t xid, std::uint32_t credits,
                          rdma_proc proc, const ChunkLists& chunks) {
  WordWriter out(room);
  out.word(xid);
  out.word(kRpcRdmaVersion);
  out.word(credits);
  out.word(proc);
  encode_chunk_lists(out, chunks);
  return out.ok() ? out.written() : 0;
}

std::size_t encode_err_vers(MutableByteSpan room, std::uint32_t xid, std::uint32_t credits) {
  WordWriter out(room);
  out.word(xid);
  out.word(kRpcRdmaVersion);  // what the peer knows how to read is this version's error
  out.word(credits);
  out.word(RDMA_ERROR);
  out.word(ERR_VERS);
  out.word(kRpcRdmaVersion);
  out.word(kRpcRdmaVersion);
  return out.ok() ? out.written() : 0;
}

std::size_t encode_err_chunk(MutableByteSpan room, std::uint32_t xid, std::uint32_t credits) {
  WordWriter out(room);
  out.word(xid);
  out.word(kRpcRdmaVersion);
  out.word(credits);
  out.word(RDMA_ERROR);
  out.word(ERR_CHUNK);
  return out.ok() ? out.written() : 0;
}

}  // namespace nfsrdma
