// SPDX-License-Identifier: Apache-2.0
// Universal addresses (RFC 5665): "192.0.2.1.8.1" is 192.0.2.1 port 2049, and the same with IPv6
// text in front of the last two numbers. Text only; whether the host part is an address is for
// who connects to it to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nfsrdma::xdr {

struct UniversalAddress {
  std::string_view host;  // view into the text
  std::uint16_t port = 0;
};

inline std::string format_universal_address(std::string_view host, std::uint16_t port) {
  std::string text(host);
  text += '.';
  text += std::to_string(port >> 8);
  text += '.';
  text += std::to_string(port & 0xff);
  return text;
}

namespace detail {

/// Cuts ".NUMBER" with 0 <= NUMBER <= 255 off the end of `text`; -1 when there is none.
inline int take_port_octet(std::string_view& text) {
  std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return -1;
  std::string_view digits = text.substr(dot + 1);
  if (digits.empty() || digits.size() > 3) return -1;
  int value = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  if (value > 255) return -1;
  text = text.substr(0, dot);
  return value;
}

}  // namespace detail

inline std::optional<UniversalAddress> parse_universal_address(std::string_view text) {
  int low = detail::take_port_octet(text);
  int high = low < 0 ? -1 : detail::take_port_octet(text);
  if (high < 0 || text.empty()) return std::nullopt;
  return UniversalAddress{text, static_cast<std::uint16_t>(high << 8 | low)};
}

}  // namespace nfsrdma::xdr
