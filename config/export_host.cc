// SPDX-License-Identifier: Apache-2.0
// The host part of an export: everyone, a network or address, a wildcard, a name.
#include "config/export_host.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

namespace nfsrdma {

namespace {

/// The length of a contiguous IPv4 netmask, or nothing.
std::optional<unsigned> netmask_length(const std::string& text) {
  in_addr mask{};
  if (::inet_pton(AF_INET, text.c_str(), &mask) != 1) return std::nullopt;
  const std::uint32_t bits = ntohl(mask.s_addr);
  const auto ones = static_cast<unsigned>(std::countl_one(bits));
  if (ones < 32 && (bits << ones) != 0) return std::nullopt;
  return ones;
}

/// The same for IPv6.
std::optional<unsigned> netmask6_length(const std::string& text) {
  std::array<std::uint8_t, 16> mask{};
  if (::inet_pton(AF_INET6, text.c_str(), mask.data()) != 1) return std::nullopt;
  unsigned ones = 0;
  bool ended = false;
  for (const std::uint8_t byte : mask) {
    const auto here = static_cast<unsigned>(std::countl_one(byte));
    const auto behind = static_cast<std::uint8_t>(here == 8 ? 0 : byte << here);
    if (behind != 0 || (ended && byte != 0)) return std::nullopt;
    ones += here;
    ended = here < 8;
  }
  return ones;
}

bool parse_prefix(std::string_view text, bool v6, unsigned* length, std::string* problem) {
  const unsigned most = v6 ? 128 : 32;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *length);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (number && *length <= most) return true;
  const std::string mask(text);
  if (const auto ones = v6 ? netmask6_length(mask) : netmask_length(mask)) {
    return *length = *ones, true;
  }
  *problem = fmt::format("'/{}' is no network length, expected /0 to /{} or a contiguous netmask",
                         text, most);
  return false;
}

/// Bits behind the prefix do not count; they are cleared, as exportfs does.
void clear_host_bits(ExportClient& client) {
  for (unsigned bit = client.prefix; bit < 128; ++bit) {
    client.address[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
  }
}

/// True when `word` is meant as an address or network; then *problem may be set.
bool parse_network(std::string_view word, ExportClient& client, std::string* problem) {
  const std::size_t slash = word.find('/');
  const std::string host(word.substr(0, slash));
  in_addr four{};
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), &four) == 1;
  const bool v6 = !v4 && ::inet_pton(AF_INET6, host.c_str(), client.address.data()) == 1;
  if (!v4 && !v6) {
    if (host.starts_with('[') && host.find(':') != std::string::npos) {
      *problem = fmt::format(
          "'{}': brackets mean a wildcard here, expected the IPv6 address without them", word);
      return true;
    }
    if (host.find(':') != std::string::npos || slash != std::string_view::npos) {
      *problem = fmt::format("'{}' is no IPv4 or IPv6 address", host);
      return true;
    }
    return false;
  }
  unsigned length = v6 ? 128 : 32;
  if (slash != std::string_view::npos &&
      !parse_prefix(word.substr(slash + 1), v6, &length, problem)) {
    return true;
  }
  if (v4) {
    client.address = {};
    client.address[10] = client.address[11] = 0xff;
    std::memcpy(client.address.data() + 12, &four, 4);
    length += 96;
  }
  client.kind = ExportClient::Kind::kNetwork;
  client.prefix = static_cast<std::uint8_t>(length);
  clear_host_bits(client);
  return true;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "192.0.2.*": meant as addresses, but wildcards are compared with names.
bool is_address_pattern(std::string_view word) {
  return word.find('.') != std::string_view::npos && std::ranges::any_of(word, is_digit) &&
         word.find_first_not_of("0123456789.*?[]-!^") == std::string_view::npos;
}

/// "192.0.2.0/24" for "192.0.2.*"; empty where no length of 8, 16 or 24 says it.
std::string network_of_pattern(std::string_view word) {
  std::string network;
  unsigned numbers = 0, parts = 0;
  for (std::string_view rest = word; parts < 4; ++parts) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    const bool number = !part.empty() && std::ranges::all_of(part, is_digit);
    if (number ? numbers != parts : part != "*" && !part.empty()) return {};
    numbers += number ? 1 : 0;
    network += (parts == 0 ? "" : ".") + (number ? std::string(part) : "0");
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  if (numbers == 0 || numbers == 4) return {};
  return fmt::format("{}/{}", network, numbers * 8);
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

}  // namespace

bool parse_export_host(std::string_view word, ExportClient& client, std::string* problem) {
  client.text = word;
  if (word.empty() || word == "*") {
    client.kind = ExportClient::Kind::kEveryone;
    client.text = "*";
    return true;
  }
  if (word.front() == '@') {
    client.kind = ExportClient::Kind::kNetgroup;
    const bool good = word.size() > 1 && std::ranges::all_of(word.substr(1), [](char c) {
                        return c > ' ' && c != 0x7f && c != '(' && c != ')' && c != ',';
                      });
    if (!good) *problem = fmt::format("'{}' is no netgroup, expected @NAME", word);
    return good;
  }
  if (word.starts_with("gss/")) {
    *problem = fmt::format(
        "'{}' is not supported (Kerberos is not), expected a host, a network, a wildcard or a "
        "netgroup",
        word);
    return false;
  }
  if (is_address_pattern(word) && word.find_first_of("*?[") != std::string_view::npos) {
    const std::string network = network_of_pattern(word);
    *problem = fmt::format("'{}': wildcards match names, never addresses, expected a network{}{}",
                           word, network.empty() ? " such as 192.0.2.0/24" : " such as ", network);
    return false;
  }
  if (parse_network(word, client, problem)) return problem->empty();
  bool wildcard = false;
  for (char c : word) {
    const bool pattern = std::string_view("*?[]!^").find(c) != std::string_view::npos;
    if (!pattern && !is_name_char(c)) {
      *problem = fmt::format(
          "'{}' has a character that no host name has, expected a host, a network, a wildcard, "
          "-options or *",
          word);
      return false;
    }
    wildcard |= pattern;
  }
  client.kind = wildcard ? ExportClient::Kind::kWildcard : ExportClient::Kind::kHost;
  std::transform(client.text.begin(), client.text.end(), client.text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  return true;
}

}  // namespace nfsrdma
