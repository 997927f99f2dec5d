// SPDX-License-Identifier: Apache-2.0
// TcpFlow: the frames of one TCP connection, made up around a payload that is given: Ethernet, IPv4
// or IPv6, TCP, with sequence numbers and checksums as they would be. Nobody acknowledges or sends
// again; each frame acknowledges all that the other side has sent.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rpcrdma/base/socket_address.h"
#include "server/capture/packet_sink.h"

namespace nfsrdma {

/// The Internet checksum (RFC 1071) of bytes that come in pieces.
class InternetChecksum {
 public:
  void add(ByteSpan bytes);
  /// Two bytes, in the order in which they travel.
  void add16(std::uint16_t value) { sum_ += value; }
  std::uint16_t value() const;

 private:
  std::uint64_t sum_ = 0;
  bool odd_ = false;  // the next byte is the second of its pair
};

class TcpFlow {
 public:
  enum class From : std::uint8_t { kClient, kServer };

  /// `number` tells connections apart that have the same addresses one after the other.
  TcpFlow(const SocketAddress& client, const SocketAddress& server, std::uint64_t number,
          PacketSink& sink);

  /// The three segments that open a connection.
  void open(std::string_view comment);
  /// One segment with `payload`, of which the first `kept` bytes are written.
  void segment(From from, std::span<const ByteSpan> payload, std::size_t kept,
               std::string_view comment = {});
  /// `payload` in as many segments as it takes.
  void stream(From from, std::span<const ByteSpan> payload, std::size_t kept);
  /// Both sides close.
  void close(std::string_view comment);

  /// What a segment carries at most: an IP packet has 64 KiB, and dissectors show a whole one.
  static constexpr std::size_t kMostPayload = 32768;

 private:
  struct End {
    SocketAddress address;
    std::uint32_t next_sequence = 0;
  };
  void frame(From from, std::uint8_t flags, std::span<const ByteSpan> payload, std::size_t kept,
             std::string_view comment);
  std::size_t put_ip(std::byte* out, const End& source, const End& target, std::size_t tcp_bytes);

  End client_;
  End server_;
  PacketSink& sink_;
  std::vector<ByteSpan> pieces_;  // of the frame that is made
};

}  // namespace nfsrdma
