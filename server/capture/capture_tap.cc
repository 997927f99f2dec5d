// SPDX-License-Identifier: Apache-2.0
#include "server/capture/capture_tap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rpcrdma/record_mark.h"
#include "server/capture/pieces.h"

namespace nfsrdma {

namespace {

constexpr std::uint16_t kNfsRdmaPort = 20049;
constexpr std::uint16_t kNfsPort = 2049;
// Where ports that nobody knows are made up: not to be taken for services.
constexpr std::uint16_t kFirstMadeUpPort = 49152;
constexpr std::uint16_t kMadeUpPorts = 16384;
constexpr std::uint32_t kFirstSink = 0x5e000001;

/// IPv4 in IPv6's clothes becomes IPv4.
SocketAddress plain(const SocketAddress& address) {
  if (!address.is_v6()) return address;
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address.data());
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return address;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, reinterpret_cast<const std::byte*>(&v6.sin6_addr) + 12, 4);
  return SocketAddress(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

bool is_ip(const SocketAddress& address) {
  return address.family() == AF_INET || address.is_v6();
}

std::string describe(const ConnectionInfo& connection) {
  std::string text =
      fmt::format("connection {} over {}", connection.id, transport_name(connection.transport));
  if (!connection.device.empty()) text += fmt::format(" ({})", connection.device);
  return text;
}

}  // namespace

SocketAddress captured_client(const ConnectionInfo& connection) {
  SocketAddress out = plain(connection.peer);
  if (!is_ip(out)) out = SocketAddress::any_v4(0);
  if (out.port() == 0) {
    out.set_port(static_cast<std::uint16_t>(kFirstMadeUpPort + connection.id % kMadeUpPorts));
  }
  return out;
}

SocketAddress captured_server(const ConnectionInfo& connection) {
  SocketAddress out = plain(connection.local);
  const SocketAddress client = captured_client(connection);
  if (out.family() != client.family()) {
    const std::uint16_t port = is_ip(out) ? out.port() : std::uint16_t{0};
    out = client.is_v6() ? SocketAddress::any_v6(port) : SocketAddress::any_v4(port);
  }
  if (out.port() == 0) out.set_port(is_rdma(connection.transport) ? kNfsRdmaPort : kNfsPort);
  return out;
}

CaptureTap::CaptureTap(const ConnectionInfo& connection, bool fresh, std::uint64_t snap,
                       CaptureBuffer& buffer)
    : buffer_(buffer),
      snap_(snap),
      tcp_(captured_client(connection), captured_server(connection), connection.id, buffer),
      next_sink_(kFirstSink) {
  const std::string comment = describe(connection) + (fresh ? "; made up: stands for its set-up"
                                                            : "; made up: the capture began later");
  buffer_.begin_message();
  tcp_.open(comment);
  if (!is_rdma(connection.transport)) return;
  mpa_.emplace(tcp_);
  // What was agreed on; what the ends announced may have been more.
  const PrivateData client{connection.inline_recv, connection.inline_send,
                           connection.remote_invalidation};
  const PrivateData server{connection.inline_send, connection.inline_recv, true};
  mpa_->open(client, server, comment);
}

void CaptureTap::close() {
  buffer_.begin_message();
  tcp_.close("made up: the connection ended");
}

void CaptureTap::on_receive(ByteSpan message) {
  buffer_.begin_message();
  if (!mpa_) return record(TcpFlow::From::kClient, {&message, 1});
  mpa_->send(TcpFlow::From::kClient, {&message, 1}, std::nullopt);
}

void CaptureTap::on_send(std::span<const ByteSpan> pieces,
                         std::optional<std::uint32_t> invalidated) {
  buffer_.begin_message();
  if (!mpa_) return record(TcpFlow::From::kServer, pieces);
  mpa_->send(TcpFlow::From::kServer, pieces, invalidated);
}

/// A message on TCP with its record mark.
void CaptureTap::record(TcpFlow::From from, std::span<const ByteSpan> message) {
  std::array<std::byte, kRecordMarkBytes> mark;
  store_be32(mark.data(), kLastFragment | static_cast<std::uint32_t>(total_size(message)));
  pieces_.assign(1, ByteSpan(mark));
  pieces_.insert(pieces_.end(), message.begin(), message.end());
  const std::uint64_t kept = std::max(snap_, kLeastOfRecord);
  const std::size_t all = total_size(pieces_);
  tcp_.stream(from, pieces_, kept < all ? static_cast<std::size_t>(kept) : all);
}

void CaptureTap::on_write(std::uint32_t handle, std::uint64_t offset,
                          std::span<const ByteSpan> pieces) {
  if (!mpa_) return;
  buffer_.begin_message();
  mpa_->write(handle, offset, pieces, snap_);
}

void CaptureTap::on_read(const std::byte* sink, std::uint32_t handle, std::uint64_t offset,
                         std::uint32_t length) {
  if (!mpa_) return;
  buffer_.begin_message();
  reads_.push_back({sink, length, next_sink_});
  mpa_->read_request({next_sink_, 0, length, handle, offset});
  ++next_sink_;
}

void CaptureTap::on_read_done(ByteSpan data) {
  if (!mpa_) return;
  const std::byte* const end = data.data() + data.size();
  auto lies_in = [&](const PendingRead& read) {
    return read.sink >= data.data() && read.sink < end &&
           read.length <= static_cast<std::size_t>(end - read.sink);
  };
  for (const PendingRead& read : reads_) {
    if (!lies_in(read)) continue;
    buffer_.begin_message();
    mpa_->read_response(read.sink_handle, 0, {read.sink, read.length}, snap_);
  }
  std::erase_if(reads_, lies_in);
}

}  // namespace nfsrdma
