// SPDX-License-Identifier: Apache-2.0
#include "server/capture/tcp_flow.h"

#include <netinet/in.h>

#include <algorithm>

#include "server/capture/pieces.h"

namespace nfsrdma {

namespace {

constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kAck = 0x10;
constexpr std::uint8_t kTcp = 6;  // as a protocol of IP

constexpr std::size_t kEthernetHeader = 14;
constexpr std::size_t kIpv4Header = 20;
constexpr std::size_t kIpv6Header = 40;
constexpr std::size_t kTcpHeader = 20;
constexpr std::size_t kSynOptions = 8;
constexpr std::size_t kMostHeaders = kEthernetHeader + kIpv6Header + kTcpHeader + kSynOptions;
constexpr std::size_t kTcpChecksumAt = 16;

// Nobody has these: "locally administered", and the last byte says which end it is.
constexpr std::uint8_t kClientMac[6] = {0x02, 0x6e, 0x66, 0x73, 0x00, 0x01};
constexpr std::uint8_t kServerMac[6] = {0x02, 0x6e, 0x66, 0x73, 0x00, 0x02};

constexpr std::uint16_t kMostSegment = 65495;
// A window of a gigabyte, so that no dissector finds it full.
constexpr std::uint8_t kWindowShift = 14;
constexpr std::uint16_t kWindow = 65535;

/// The address as it stands in an IP header.
ByteSpan host_bytes(const SocketAddress& address) {
  if (address.is_v6()) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address.data());
    return {reinterpret_cast<const std::byte*>(&v6.sin6_addr), sizeof v6.sin6_addr};
  }
  const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address.data());
  return {reinterpret_cast<const std::byte*>(&v4.sin_addr), sizeof v4.sin_addr};
}

/// MSS and window scale.
void put_syn_options(std::byte* out) {
  out[0] = std::byte{2};
  out[1] = std::byte{4};
  store_be16(out + 2, kMostSegment);
  out[4] = std::byte{3};
  out[5] = std::byte{3};
  out[6] = std::byte{kWindowShift};
  out[7] = std::byte{1};
}

}  // namespace

void InternetChecksum::add(ByteSpan bytes) {
  std::size_t at = 0;
  if (odd_ && !bytes.empty()) {
    sum_ += std::to_integer<std::uint8_t>(bytes[at++]);
    odd_ = false;
  }
  // Words of any size will do: carries come round in value().
  for (; at + 4 <= bytes.size(); at += 4)
    sum_ += load_be32(bytes.data() + at);
  for (; at + 2 <= bytes.size(); at += 2)
    sum_ += load_be16(bytes.data() + at);
  if (at < bytes.size()) {
    sum_ += std::uint64_t{std::to_integer<std::uint8_t>(bytes[at])} << 8;
    odd_ = true;
  }
}

std::uint16_t InternetChecksum::value() const {
  std::uint64_t sum = sum_;
  while (sum > 0xffff)
    sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

TcpFlow::TcpFlow(const SocketAddress& client, const SocketAddress& server, std::uint64_t number,
                 PacketSink& sink)
    : client_{client, static_cast<std::uint32_t>(number * 0x9e3779b1u)},
      server_{server, static_cast<std::uint32_t>(number * 0x85ebca6bu + 1)},
      sink_(sink) {}

void TcpFlow::open(std::string_view comment) {
  frame(From::kClient, kSyn, {}, 0, comment);
  ++client_.next_sequence;
  frame(From::kServer, kSyn | kAck, {}, 0, comment);
  ++server_.next_sequence;
  frame(From::kClient, kAck, {}, 0, comment);
}

void TcpFlow::segment(From from, std::span<const ByteSpan> payload, std::size_t kept,
                      std::string_view comment) {
  frame(from, kPush | kAck, payload, kept, comment);
  End& source = from == From::kClient ? client_ : server_;
  source.next_sequence += static_cast<std::uint32_t>(total_size(payload));
}

void TcpFlow::stream(From from, std::span<const ByteSpan> payload, std::size_t kept) {
  PieceCursor cursor(payload);
  std::vector<ByteSpan> part;
  for (std::size_t left = total_size(payload); left > 0;) {
    const std::size_t size = std::min(left, kMostPayload);
    const std::size_t kept_here = std::min(kept, size);
    part.clear();
    cursor.take(size, part);
    segment(from, part, kept_here);
    left -= size;
    kept -= kept_here;
  }
}

void TcpFlow::close(std::string_view comment) {
  frame(From::kClient, kFin | kAck, {}, 0, comment);
  ++client_.next_sequence;
  frame(From::kServer, kFin | kAck, {}, 0, comment);
  ++server_.next_sequence;
  frame(From::kClient, kAck, {}, 0, comment);
}

/// Returns the header's size.
std::size_t TcpFlow::put_ip(std::byte* out, const End& source, const End& target,
                            std::size_t tcp_bytes) {
  const ByteSpan from = host_bytes(source.address);
  const ByteSpan to = host_bytes(target.address);
  if (source.address.is_v6()) {
    store_be32(out, 0x60000000);
    store_be16(out + 4, static_cast<std::uint16_t>(tcp_bytes));
    out[6] = std::byte{kTcp};
    out[7] = std::byte{64};
    std::memcpy(out + 8, from.data(), from.size());
    std::memcpy(out + 24, to.data(), to.size());
    return kIpv6Header;
  }
  store_be16(out, 0x4500);
  store_be16(out + 2, static_cast<std::uint16_t>(kIpv4Header + tcp_bytes));
  store_be32(out + 4, 0x00004000);  // not to be fragmented
  out[8] = std::byte{64};
  out[9] = std::byte{kTcp};
  store_be16(out + 10, 0);
  std::memcpy(out + 12, from.data(), from.size());
  std::memcpy(out + 16, to.data(), to.size());
  InternetChecksum checksum;
  checksum.add({out, kIpv4Header});
  store_be16(out + 10, checksum.value());
  return kIpv4Header;
}

void TcpFlow::frame(From from, std::uint8_t flags, std::span<const ByteSpan> payload,
                    std::size_t kept, std::string_view comment) {
  const bool by_client = from == From::kClient;
  const End& source = by_client ? client_ : server_;
  const End& target = by_client ? server_ : client_;
  const std::size_t payload_bytes = total_size(payload);
  const std::size_t options = (flags & kSyn) != 0 ? kSynOptions : 0;
  const std::size_t tcp_bytes = kTcpHeader + options + payload_bytes;

  std::byte headers[kMostHeaders];
  std::memcpy(headers, by_client ? kServerMac : kClientMac, 6);
  std::memcpy(headers + 6, by_client ? kClientMac : kServerMac, 6);
  store_be16(headers + 12, source.address.is_v6() ? 0x86dd : 0x0800);
  const std::size_t ip_header = put_ip(headers + kEthernetHeader, source, target, tcp_bytes);
  std::byte* tcp = headers + kEthernetHeader + ip_header;
  store_be16(tcp, source.address.port());
  store_be16(tcp + 2, target.address.port());
  store_be32(tcp + 4, source.next_sequence);
  store_be32(tcp + 8, (flags & kAck) != 0 ? target.next_sequence : 0);
  store_be16(tcp + 12, static_cast<std::uint16_t>((kTcpHeader + options) / 4 << 12 | flags));
  store_be16(tcp + 14, kWindow);
  store_be32(tcp + kTcpChecksumAt, 0);
  if (options > 0) put_syn_options(tcp + kTcpHeader);

  // The pseudo header: addresses, protocol, length.
  InternetChecksum checksum;
  checksum.add(host_bytes(source.address));
  checksum.add(host_bytes(target.address));
  checksum.add16(kTcp);
  checksum.add16(static_cast<std::uint16_t>(tcp_bytes));
  checksum.add({tcp, kTcpHeader + options});
  for (const ByteSpan& piece : payload)
    checksum.add(piece);
  store_be16(tcp + kTcpChecksumAt, checksum.value());

  const std::size_t header_bytes = kEthernetHeader + ip_header + kTcpHeader + options;
  pieces_.clear();
  pieces_.emplace_back(headers, header_bytes);
  PieceCursor(payload).take(std::min(kept, payload_bytes), pieces_);
  sink_.packet(!by_client, pieces_, header_bytes + payload_bytes, comment);
}

}  // namespace nfsrdma
