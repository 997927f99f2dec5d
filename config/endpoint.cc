// SPDX-License-Identifier: Apache-2.0
#include "config/endpoint.h"

#include <charconv>

namespace nfsrdma {

bool parse_endpoint(std::string_view text, SocketAddress* address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return false;
  auto parsed = SocketAddress::parse(host, port);
  if (!parsed.ok()) return false;
  // Without brackets, the last group of an address that lacks its port would be the port.
  if (parsed->is_v6() != host.starts_with('[')) return false;
  *address = *parsed;
  return true;
}

}  // namespace nfsrdma
