// SPDX-License-Identifier: Apache-2.0
#include "client/referral.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace nfsrdma {
namespace {

// Targets named in a message.
constexpr std::size_t kMostNamed = 4;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

bool is_address(int family, const std::string& text) {
  in6_addr room;
  return ::inet_pton(family, text.c_str(), &room) == 1;
}

/// An IPv6 address may have a scope behind '%', which inet_pton() does not know.
bool is_ipv6(const std::string& text) {
  return is_address(AF_INET6, text.substr(0, text.find('%')));
}

/// Takes ".N" off the end of *text.
std::optional<unsigned> take_octet(std::string* text) {
  const std::size_t dot = text->rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  unsigned value = 0;
  const char* const begin = text->data() + dot + 1;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || begin == end || value > 255) return std::nullopt;
  text->resize(dot);
  return value;
}

/// A universal address (RFC 5665) with its port.
bool parse_with_port(const std::string& text, ReferralTarget* target) {
  std::string host = text;
  const std::optional<unsigned> low = take_octet(&host);
  const std::optional<unsigned> high = low ? take_octet(&host) : std::nullopt;
  if (!high || (*high == 0 && *low == 0)) return false;
  if (!is_address(AF_INET, host) && !is_ipv6(host)) return false;
  target->host = host;
  target->port = static_cast<std::uint16_t>(*high * 256 + *low);
  return true;
}

/// What lies behind `directory` in `path`, both absolute and normal; nothing: `path` is not in it.
std::optional<std::string_view> behind(std::string_view directory, std::string_view path) {
  if (directory == "/") return path == "/" ? std::string_view() : path;
  if (path.substr(0, directory.size()) != directory) return std::nullopt;
  path.remove_prefix(directory.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  return path;
}

/// Appends each name of `path` to *to.
bool append_path(std::string_view path, std::string* to) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (!append_component(path.substr(0, end), to)) return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

}  // namespace

std::string ReferralTarget::text() const {
  std::string where = host.empty() ? "the same server" : host;
  if (where.find(':') != std::string::npos) where = "[" + where + "]";
  if (port != 0) where += fmt::format(" port {}", port);
  return where + ":" + path;
}

std::string Referral::text() const {
  std::string out;
  for (std::size_t i = 0; i < std::min(targets.size(), kMostNamed); ++i) {
    if (i > 0) out += " or ";
    out += targets[i].text();
  }
  if (targets.size() > kMostNamed) out += fmt::format(" or {} others", targets.size() - kMostNamed);
  return out;
}

Attributes Referral::attributes() const {
  Attributes attributes;
  attributes.type = FileType::kDirectory;
  attributes.mode = 0555;
  attributes.nlink = 2;
  attributes.fsid = fsid;
  attributes.fileid = mounted_on;
  return attributes;
}

bool parse_referral_server(std::string_view text, ReferralTarget* target) {
  target->host.clear();
  target->port = 0;
  if (text.empty()) return true;
  if (text.size() > kLongestReferralHost) return false;
  // What could be read as an option, or as anything but a host, by whoever it is shown to is none.
  if (!is_alphanumeric(text.front()) && text.front() != ':') return false;
  const bool ipv6 = text.find(':') != std::string_view::npos;
  const std::string_view more = ipv6 ? ":.%" : "-._";
  for (const char c : text) {
    if (!is_alphanumeric(c) && more.find(c) == std::string_view::npos) return false;
  }
  std::string host(text);
  if (ipv6 ? is_ipv6(host) : is_address(AF_INET, host)) {
    target->host = std::move(host);
    return true;
  }
  if (parse_with_port(host, target)) return true;
  target->host = std::move(host);
  return !ipv6;
}

bool append_component(std::string_view name, std::string* path) {
  if (name.empty()) return true;
  if (name == "." || name == "..") return false;
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
    return false;
  }
  if (path->size() + 1 + name.size() > kLongestReferralPath) return false;
  path->append("/").append(name);
  return true;
}

Result<std::string> path_at_target(const ReferralMet& met, const ReferralTarget& target) {
  const std::optional<std::string_view> below = behind(met.referral.root, met.path);
  if (!below) return Error{Errc::kNotFound, ENOENT, "fs_root of the referral is not on the way"};
  std::string path;
  if (!append_path(target.path, &path) || !append_path(*below, &path) ||
      !append_path(met.rest, &path)) {
    return Error{Errc::kInvalid, ENAMETOOLONG, "the path behind the referral"};
  }
  if (path.empty()) path = "/";
  return path;
}

}  // namespace nfsrdma
