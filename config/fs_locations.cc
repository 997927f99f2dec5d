// SPDX-License-Identifier: Apache-2.0
#include "config/fs_locations.h"

#include <algorithm>

namespace nfsrdma {

namespace {

constexpr std::size_t kLongestHost = 255;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/// Takes what stands before the next `separator` off `rest`, brackets (IPv6) kept whole. *more: is
/// there another part? An empty one, too, behind a separator at the end.
std::string_view take_part(std::string_view& rest, char separator, bool* more) {
  bool inside = false;
  std::size_t end = 0;
  for (; end < rest.size(); ++end) {
    if (rest[end] == '[') inside = true;
    if (rest[end] == ']') inside = false;
    if (rest[end] == separator && !inside) break;
  }
  *more = end < rest.size();
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return part;
}

std::string_view parse_path(std::string_view text, std::string* path) {
  if (!text.starts_with('/')) {
    return "an absolute path in front of each '@' (and IPv6 addresses in brackets)";
  }
  if (text.size() > kLongestLocationPath) return "a path of at most 1023 bytes";
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find('/'));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (name == "." || name == "..") return "a path without . and ..";
    if (!name.empty()) path->append("/").append(name);
  }
  if (path->empty()) *path = "/";
  return {};
}

std::string_view parse_host(std::string_view text, std::string* host) {
  constexpr std::string_view kExpected = "a host name or address behind '@' and '+'";
  if (text.empty() || text.size() > kLongestHost) return kExpected;
  const bool bracketed = text.front() == '[';
  if (bracketed) {
    if (text.size() < 2 || text.back() != ']') return "a ']' behind an IPv6 address";
    text = text.substr(1, text.size() - 2);
    if (text.find(':') == text.npos) return "an IPv6 address in the brackets";
  }
  const std::string_view more = bracketed ? ":.%" : "-._";
  for (char c : text) {
    if (!is_alphanumeric(c) && more.find(c) == more.npos) return kExpected;
  }
  *host = text;
  return {};
}

}  // namespace

std::string_view parse_fs_locations(std::string_view value, std::vector<FsLocation>* out) {
  out->clear();
  std::size_t hosts = 0;
  for (bool more_locations = true; more_locations;) {
    std::string_view text = take_part(value, ':', &more_locations);
    const std::size_t at = text.find('@');
    FsLocation& location = out->emplace_back();
    std::string_view expected = parse_path(text.substr(0, at), &location.path);
    if (!expected.empty()) return expected;
    if (at == text.npos) return "PATH@HOST[+HOST][:PATH@HOST[+HOST]]";
    text.remove_prefix(at + 1);
    for (bool more_hosts = true; more_hosts;) {
      const std::string_view host = take_part(text, '+', &more_hosts);
      if (++hosts > kMostLocationHosts) return "at most 64 hosts";
      expected = parse_host(host, &location.servers.emplace_back());
      if (!expected.empty()) return expected;
    }
  }
  return {};
}

}  // namespace nfsrdma
