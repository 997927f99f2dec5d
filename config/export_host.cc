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

bool parse_prefix(std::string_view text, bool v6, unsigned* length, std::string* problem) {
  const unsigned most = v6 ? 128 : 32;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *length);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (number && *length <= most) return true;
  if (!v6) {
    if (auto mask = netmask_length(std::string(text))) return *length = *mask, true;
    *problem =
        fmt::format("'/{}' is no network length, expected /0 to /32 or a contiguous netmask", text);
  } else {
    *problem = fmt::format("'/{}' is no network length, expected /0 to /128", text);
  }
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
    *problem = fmt::format(
        "netgroup '{}' is not supported, expected a host, a network or a wildcard", word);
    return false;
  }
  if (word.starts_with("gss/")) {
    *problem = fmt::format("'{}' is not supported, expected a host, a network or a wildcard", word);
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
