// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// An IPv4 or IPv6 address with port. Value type.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);

  /// Numeric literal only ("192.0.2.1", "::1", "[::1]", "fe80::1%eth0").
  static Result<SocketAddress> parse(std::string_view host, std::uint16_t port);
  /// Every address that getaddrinfo gives for `host` (may block on DNS: not on a loop thread).
  /// EAGAIN: no name server has answered, and one may later.
  static Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);
  static SocketAddress any_v4(std::uint16_t port);
  static SocketAddress any_v6(std::uint16_t port);
  static Result<SocketAddress> local_of(int fd);
  static Result<SocketAddress> peer_of(int fd);

  int family() const { return storage_.ss_family; }
  bool is_v6() const { return family() == AF_INET6; }
  bool is_loopback() const;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// Below 1024, where only root of a host may bind.
  bool has_reserved_port() const { return port() < 1024; }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t length() const;

  /// "192.0.2.1" or "fe80::1%eth0".
  std::string host_text() const;
  /// "192.0.2.1:20049" or "[::1]:20049".
  std::string text() const;
  /// Same host, whatever the port; IPv4-mapped IPv6 equals its IPv4 address.
  bool same_host(const SocketAddress& other) const;

 private:
  sockaddr_storage storage_{};
};

}  // namespace nfsrdma
