// SPDX-License-Identifier: Apache-2.0
// MpaFlow: what crosses an RDMA connection, as an iWARP connection carries it: MPA (RFC 5044,
// without markers and CRC), DDP (RFC 5041), RDMAP (RFC 5040), on a TcpFlow. Each FPDU is a TCP
// segment of its own, so that one that was cut or lost spoils no other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rpcrdma/private_data.h"
#include "server/capture/tcp_flow.h"

namespace nfsrdma {

class MpaFlow {
 public:
  using From = TcpFlow::From;
  /// Of a message or transfer; the rest goes into the next segment.
  static constexpr std::size_t kSegmentPayload = 32736;

  explicit MpaFlow(TcpFlow& tcp) : tcp_(tcp) {}

  /// MPA's request and reply, with the private data of both ends.
  void open(const PrivateData& client, const PrivateData& server, std::string_view comment);
  /// A Send, or a Send with Invalidate.
  void send(From from, std::span<const ByteSpan> message, std::optional<std::uint32_t> invalidated);
  /// An RDMA Write of the server; `kept` bytes of its data are written.
  void write(std::uint32_t handle, std::uint64_t offset, std::span<const ByteSpan> data,
             std::size_t kept);
  struct Read {
    std::uint32_t sink_handle = 0;
    std::uint64_t sink_offset = 0;
    std::uint32_t length = 0;
    std::uint32_t source_handle = 0;
    std::uint64_t source_offset = 0;
  };
  /// A Read Request of the server.
  void read_request(const Read& read);
  /// The client's answer.
  void read_response(std::uint32_t sink_handle, std::uint64_t sink_offset, ByteSpan data,
                     std::size_t kept);

 private:
  void tagged(From from, std::uint8_t opcode, std::uint32_t handle, std::uint64_t offset,
              std::span<const ByteSpan> data, std::size_t kept);
  void fpdu(From from, ByteSpan header, std::size_t kept);

  TcpFlow& tcp_;
  std::uint32_t client_sends_ = 0;
  std::uint32_t server_sends_ = 0;
  std::uint32_t read_requests_ = 0;
  std::vector<ByteSpan> payload_;  // of the segment that is made
  std::vector<ByteSpan> pieces_;
};

}  // namespace nfsrdma
