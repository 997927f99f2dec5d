// SPDX-License-Identifier: Apache-2.0
// RFC 8166 headers, RFC 8797 private data and the place of READ data in a reply, from hostile
// bytes. What decodes must encode to the same bytes, and a reply to it must stay within what it
// offers.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "rpcrdma/header.h"
#include "rpcrdma/nfs_binding.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/reply_chain.h"

namespace {

using namespace nfsrdma;

void require(bool condition) {
  if (!condition) std::abort();
}

void answer(const TransportHeader& header, std::size_t stream, std::size_t payload_bytes) {
  static std::vector<std::byte> rpc(8192), payload(8192), room(65536);
  static auto chain = std::make_unique<ReplyChain>();
  const xdr::PayloadReference reference{stream / 2 & ~std::size_t{3},
                                        ByteSpan(payload).first(payload_bytes)};
  ReplyParts parts;
  parts.xid = header.xid;
  parts.offered = &header.chunks;
  parts.encoded = ByteSpan(rpc).first(stream);
  if (payload_bytes > 0) parts.payloads = {&reference, 1};
  parts.send_room = room;
  parts.inline_send = 4096;
  parts.max_send_sge = 1 + static_cast<std::uint32_t>(stream % 5);
  chain->build(parts);
  std::size_t sent = 0;
  for (const WorkRequest& request : chain->requests()) {
    std::uint64_t length = 0;
    for (const Sge& sge : request.sges)
      length += sge.length;
    if (request.opcode != WorkOpcode::kWrite) {
      sent += length;
      continue;
    }
    bool offered = false;
    auto inside = [&](const Segment& s) {
      offered =
          offered || (s.handle == request.remote_handle && request.remote_offset >= s.offset &&
                      request.remote_offset - s.offset + length <= s.length);
    };
    for (std::size_t i = 0; i < header.chunks.write_segment_count; ++i) {
      inside(header.chunks.write_segments[i]);
    }
    for (const Segment& s : header.chunks.reply())
      inside(s);
    require(offered);
  }
  require(sent <= 4096 && sent >= 20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  static auto header = std::make_unique<TransportHeader>();
  if (decode_header(bytes, *header) == HeaderVerdict::kOk &&
      (header->proc == RDMA_MSG || header->proc == RDMA_NOMSG)) {
    require(header->header_bytes <= size);
    std::vector<std::byte> again(header->header_bytes);
    const std::size_t encoded = encode_header(again, header->xid, header->credits,
                                              static_cast<rdma_proc>(header->proc), header->chunks);
    require(encoded == header->header_bytes);
    require(std::equal(again.begin(), again.end(), bytes.begin()));
    (void)call_chunks_sane(*header, size - header->header_bytes, 1 << 22);
    (void)invalidation_candidate(header->chunks);
    answer(*header, (size * 37) % 8189 & ~std::size_t{3}, size % 7000);
  }
  (void)PrivateData::parse(bytes);
  if (size > 40) (void)find_result(bytes.first(40), bytes.subspan(40));
  return 0;
}
