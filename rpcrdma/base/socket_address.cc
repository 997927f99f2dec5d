// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>

namespace nfsrdma {

namespace {

const sockaddr_in& v4(const sockaddr_storage& s) {
  return reinterpret_cast<const sockaddr_in&>(s);
}
const sockaddr_in6& v6(const sockaddr_storage& s) {
  return reinterpret_cast<const sockaddr_in6&>(s);
}

Result<std::vector<SocketAddress>> lookup(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  // glibc takes "*" for this host; whoever writes it means every address.
  const int error = host == "*"
                        ? EAI_NONAME
                        : ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error == EAI_AGAIN) return Error{Errc::kNotFound, EAGAIN, "name lookup"};
  if (error != 0) return Error{Errc::kNotFound, 0, "name lookup"};
  std::vector<SocketAddress> found;
  for (addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    found.emplace_back(entry->ai_addr, entry->ai_addrlen);
  }
  ::freeaddrinfo(list);
  return found;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length) {
  std::memcpy(&storage_, address, std::min<std::size_t>(length, sizeof storage_));
}

Result<SocketAddress> SocketAddress::parse(std::string_view host, std::uint16_t port) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  NFSRDMA_TRY(std::vector<SocketAddress> found, lookup(std::string(host), port, AI_NUMERICHOST));
  return found.front();
}

Result<std::vector<SocketAddress>> SocketAddress::resolve(const std::string& host,
                                                          std::uint16_t port) {
  std::string name = host;
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  return lookup(name, port, 0);
}

SocketAddress SocketAddress::any_v4(std::uint16_t port) {
  SocketAddress address;
  auto& in = reinterpret_cast<sockaddr_in&>(address.storage_);
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  return address;
}

SocketAddress SocketAddress::any_v6(std::uint16_t port) {
  SocketAddress address;
  auto& in6 = reinterpret_cast<sockaddr_in6&>(address.storage_);
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  return address;
}

Result<SocketAddress> SocketAddress::local_of(int fd) {
  SocketAddress address;
  socklen_t length = sizeof address.storage_;
  if (::getsockname(fd, address.data(), &length) != 0) return system_error("getsockname");
  return address;
}

Result<SocketAddress> SocketAddress::peer_of(int fd) {
  SocketAddress address;
  socklen_t length = sizeof address.storage_;
  if (::getpeername(fd, address.data(), &length) != 0) return system_error("getpeername");
  return address;
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) return (ntohl(v4(storage_).sin_addr.s_addr) >> 24) == 127;
  const in6_addr& a = v6(storage_).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127);
}

std::uint16_t SocketAddress::port() const {
  return ntohs(is_v6() ? v6(storage_).sin6_port : v4(storage_).sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  if (is_v6()) {
    reinterpret_cast<sockaddr_in6&>(storage_).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port);
  }
}

socklen_t SocketAddress::length() const {
  return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string SocketAddress::host_text() const {
  char host[NI_MAXHOST] = "?";
  if (family() == AF_UNSPEC) return "?";
  ::getnameinfo(data(), length(), host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::string SocketAddress::text() const {
  std::string host = host_text();
  if (is_v6()) host = "[" + host + "]";
  return host + ":" + std::to_string(port());
}

bool SocketAddress::same_host(const SocketAddress& other) const {
  auto canonical = [](const SocketAddress& a, std::byte(&out)[16]) {
    std::memset(out, 0, sizeof out);
    if (a.is_v6()) {
      std::memcpy(out, &v6(a.storage_).sin6_addr, 16);
    } else {
      out[10] = out[11] = std::byte{0xff};
      std::memcpy(out + 12, &v4(a.storage_).sin_addr, 4);
    }
  };
  std::byte mine[16], theirs[16];
  canonical(*this, mine);
  canonical(other, theirs);
  return std::memcmp(mine, theirs, sizeof mine) == 0;
}

}  // namespace nfsrdma
