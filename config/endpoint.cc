// SPDX-License-Identifier: Apache-2.0
#include "config/endpoint.h"

#include <charconv>
#include <string>

namespace nfsrdma {

bool parse_endpoint(std::string_view text, SocketAddress* address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') != host.ends_with(']')) return false;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return false;
  auto parsed = SocketAddress::parse(std::string(host), port);
  if (!parsed.ok()) return false;
  *address = *parsed;
  return true;
}

}  // namespace nfsrdma
