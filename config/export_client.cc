// SPDX-License-Identifier: Apache-2.0
// Matching of clients against what an export line names.
#include <netinet/in.h>

#include <cstring>

#include "config/exports_file.h"

namespace nfsrdma {

namespace {

std::array<std::uint8_t, 16> canonical(const SocketAddress& address) {
  std::array<std::uint8_t, 16> out{};
  if (address.is_v6()) {
    std::memcpy(out.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr, 16);
  } else {
    out[10] = out[11] = 0xff;
    std::memcpy(out.data() + 12, &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr,
                4);
  }
  return out;
}

bool same_prefix(const std::array<std::uint8_t, 16>& a, const std::array<std::uint8_t, 16>& b,
                 unsigned bits) {
  const unsigned whole = bits / 8;
  if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff00u >> (bits % 8));
  return (a[whole] & mask) == (b[whole] & mask);
}

/// A network of IPv6 has no IPv4 address in it, although those are written as IPv6 ones here.
bool spans_families(const std::array<std::uint8_t, 16>& address, unsigned prefix) {
  constexpr std::array<std::uint8_t, 16> kIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr unsigned kIpv4Prefix = 96;
  return prefix < kIpv4Prefix && same_prefix(address, kIpv4, kIpv4Prefix);
}

/// Does `set`, which begins behind '[', contain `c`? *length: characters of the set with its ']';
/// 0 when it never ends (then '[' is an ordinary character).
bool set_contains(std::string_view set, char c, std::size_t* length) {
  bool found = false;
  std::size_t i = 0;
  const bool negated = !set.empty() && (set[0] == '!' || set[0] == '^');
  if (negated) ++i;
  const std::size_t first = i;
  for (; i < set.size(); ++i) {
    if (set[i] == ']' && i != first) {
      *length = i + 1;
      return found != negated;
    }
    if (i + 2 < set.size() && set[i + 1] == '-' && set[i + 2] != ']') {
      found |= set[i] <= c && c <= set[i + 2];
      i += 2;
    } else {
      found |= set[i] == c;
    }
  }
  *length = 0;
  return false;
}

}  // namespace

unsigned ExportClient::rank() const {
  return is_single_address() ? static_cast<unsigned>(Kind::kHost) : static_cast<unsigned>(kind);
}

bool ExportClient::matches_address(const SocketAddress& peer) const {
  if (kind == Kind::kEveryone) return true;
  if (kind != Kind::kNetwork) return false;
  const auto its = canonical(peer);
  return !spans_families(its, prefix) && same_prefix(its, address, prefix);
}

bool ExportClient::is_same_as(const ExportClient& other) const {
  if (kind != other.kind) return false;
  if (kind == Kind::kNetwork) return address == other.address && prefix == other.prefix;
  return text == other.text;
}

bool ExportClient::contains(const ExportClient& other) const {
  return kind == Kind::kNetwork && other.kind == Kind::kNetwork && prefix <= other.prefix &&
         !spans_families(other.address, prefix) && same_prefix(other.address, address, prefix);
}

bool ExportClient::matches_name(std::string_view host) const {
  if (kind == Kind::kHost) return text == host;
  return kind == Kind::kWildcard && wildcard_matches(text, host);
}

bool wildcard_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, star_name = 0;  // where to go on after a mismatch
  while (n < name.size()) {
    bool matched = false;
    std::size_t used = 1;
    if (p < pattern.size()) {
      if (pattern[p] == '*') {
        star = p++;
        star_name = n;
        continue;
      }
      if (pattern[p] == '[') {
        std::size_t length = 0;
        matched = set_contains(pattern.substr(p + 1), name[n], &length);
        if (length == 0) matched = name[n] == '[';
        used += length;
      } else {
        matched = pattern[p] == '?' || pattern[p] == name[n];
      }
    }
    if (matched) {
      p += used;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

}  // namespace nfsrdma
