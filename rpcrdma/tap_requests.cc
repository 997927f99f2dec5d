// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/tap_requests.h"

#include <vector>

namespace nfsrdma {

namespace {

void tap_request(WireTap& tap, const WorkRequest& request) {
  std::vector<ByteSpan> pieces;
  for (const Sge& sge : request.sges)
    pieces.emplace_back(sge.address, sge.length);
  switch (request.opcode) {
    case WorkOpcode::kSend:
      return tap.on_send(pieces, std::nullopt);
    case WorkOpcode::kSendWithInvalidate:
      return tap.on_send(pieces, request.remote_handle);
    case WorkOpcode::kWrite:
      return tap.on_write(request.remote_handle, request.remote_offset, pieces);
    case WorkOpcode::kRead:
      for (const ByteSpan& sink : pieces) {
        tap.on_read(sink.data(), request.remote_handle, request.remote_offset,
                    static_cast<std::uint32_t>(sink.size()));
      }
      return;
    default:  // what stays on this side
      return;
  }
}

}  // namespace

void tap_requests(WireTap& tap, std::span<const WorkRequest> requests) {
  for (const WorkRequest& request : requests)
    tap_request(tap, request);
}

}  // namespace nfsrdma
