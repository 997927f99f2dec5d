// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/pcap_tap.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace nfsrdma::iwarp {
namespace {

constexpr std::uint32_t kLinkRaw = 101;  // packets begin with the IP header
constexpr std::size_t kMaxPayload = 60'000;
constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kAck = 0x10;

void put16(std::vector<std::byte>& out, std::uint16_t v) {
  const std::size_t at = out.size();
  out.resize(at + 2);
  store_be16(out.data() + at, v);
}
void put32(std::vector<std::byte>& out, std::uint32_t v) {
  const std::size_t at = out.size();
  out.resize(at + 4);
  store_be32(out.data() + at, v);
}
/// pcap's own headers are in the writer's byte order.
void put_host(std::vector<std::byte>& out, std::uint32_t v) {
  const std::size_t at = out.size();
  out.resize(at + 4);
  std::memcpy(out.data() + at, &v, 4);
}
void put_bytes(std::vector<std::byte>& out, const void* data, std::size_t size) {
  const auto* p = static_cast<const std::byte*>(data);
  out.insert(out.end(), p, p + size);
}

void put_ip(std::vector<std::byte>& out, const SocketAddress& from, const SocketAddress& to,
            std::size_t tcp_size) {
  if (from.is_v6()) {
    put32(out, 0x60000000);
    put16(out, static_cast<std::uint16_t>(tcp_size));
    put16(out, 6 << 8 | 64);  // next header TCP, hop limit
    put_bytes(out, &reinterpret_cast<const sockaddr_in6*>(from.data())->sin6_addr, 16);
    put_bytes(out, &reinterpret_cast<const sockaddr_in6*>(to.data())->sin6_addr, 16);
    return;
  }
  put16(out, 0x4500);
  put16(out, static_cast<std::uint16_t>(20 + tcp_size));
  put32(out, 0x00004000);   // do not fragment
  put16(out, 64 << 8 | 6);  // time to live, TCP
  put16(out, 0);
  put_bytes(out, &reinterpret_cast<const sockaddr_in*>(from.data())->sin_addr, 4);
  put_bytes(out, &reinterpret_cast<const sockaddr_in*>(to.data())->sin_addr, 4);
}

}  // namespace

PcapTap::PcapTap(Sink sink) : sink_(std::move(sink)) {
  std::vector<std::byte> header;
  put_host(header, 0xa1b2c3d4);
  put_host(header, 4u << 16 | 2);  // version 2.4
  put_host(header, 0);
  put_host(header, 0);
  put_host(header, 262'144);
  put_host(header, kLinkRaw);
  sink_(header);
}

PcapTap::Sink PcapTap::to_file(const std::string& path) {
  auto fd = std::make_shared<UniqueFd>(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return [fd](ByteSpan bytes) {
    [[maybe_unused]] ssize_t n = ::write(fd->get(), bytes.data(), bytes.size());
  };
}

void PcapTap::open(Stream& stream, const SocketAddress& local, const SocketAddress& peer,
                   bool initiator) {
  std::lock_guard lock(mutex_);
  stream.open_ = true;
  stream.local_ = local;
  stream.peer_ = peer;
  stream.sent_ = 1000;
  stream.received_ = 2000;
  packet(stream, initiator, kSyn, {});
  (initiator ? stream.sent_ : stream.received_)++;
  packet(stream, !initiator, kSyn | kAck, {});
  (initiator ? stream.received_ : stream.sent_)++;
  packet(stream, initiator, kAck, {});
}

void PcapTap::data(Stream& stream, bool outgoing, ByteSpan bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  data(stream, outgoing, &piece, bytes.size());
}

void PcapTap::data(Stream& stream, bool outgoing, const iovec* pieces, std::size_t bytes) {
  if (!stream.open_) return;
  std::vector<std::byte> flat;
  flat.reserve(bytes);
  for (std::size_t i = 0; flat.size() < bytes; ++i) {
    const std::size_t take = std::min(pieces[i].iov_len, bytes - flat.size());
    put_bytes(flat, pieces[i].iov_base, take);
  }
  std::lock_guard lock(mutex_);
  for (std::size_t at = 0; at < flat.size(); at += kMaxPayload) {
    const ByteSpan part = ByteSpan(flat).subspan(at, std::min(kMaxPayload, flat.size() - at));
    packet(stream, outgoing, kPush | kAck, part);
    (outgoing ? stream.sent_ : stream.received_) += static_cast<std::uint32_t>(part.size());
  }
}

void PcapTap::close(Stream& stream) {
  if (!stream.open_) return;
  std::lock_guard lock(mutex_);
  packet(stream, true, kFin | kAck, {});
  stream.open_ = false;
}

void PcapTap::packet(Stream& stream, bool outgoing, std::uint8_t flags, ByteSpan payload) {
  const SocketAddress& from = outgoing ? stream.local_ : stream.peer_;
  const SocketAddress& to = outgoing ? stream.peer_ : stream.local_;
  std::vector<std::byte> ip;
  put_ip(ip, from, to, 20 + payload.size());
  put16(ip, from.port());
  put16(ip, to.port());
  put32(ip, outgoing ? stream.sent_ : stream.received_);
  put32(ip, (flags & kAck) == 0 ? 0 : outgoing ? stream.received_ : stream.sent_);
  put16(ip, static_cast<std::uint16_t>(5 << 12 | flags));
  put16(ip, 65535);
  put32(ip, 0);  // checksum, urgent pointer
  put_bytes(ip, payload.data(), payload.size());

  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::vector<std::byte> record;
  put_host(record, static_cast<std::uint32_t>(us / 1'000'000));
  put_host(record, static_cast<std::uint32_t>(us % 1'000'000));
  put_host(record, static_cast<std::uint32_t>(ip.size()));
  put_host(record, static_cast<std::uint32_t>(ip.size()));
  record.insert(record.end(), ip.begin(), ip.end());
  sink_(record);
}

}  // namespace nfsrdma::iwarp
