// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/host.h"

#include <algorithm>
#include <cctype>

namespace nfsrdma::nlm {

namespace {

/// Longer ones are cut, so that all fit into the records of clients.
constexpr std::size_t kLongestName = 255;

constexpr std::string_view kMapped = "::ffff:";

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

}  // namespace

std::string host_key(const SocketAddress& peer, std::string_view name) {
  std::string address = peer.host_text();
  if (address.starts_with(kMapped)) address.erase(0, kMapped.size());
  return address + ' ' + lower(name.substr(0, kLongestName));
}

bool parse_host_key(std::string_view key, SocketAddress* peer, std::string* name) {
  const std::size_t blank = key.find(' ');
  if (blank == std::string_view::npos) return false;
  auto parsed = SocketAddress::parse(key.substr(0, blank), 0);
  if (!parsed.ok()) return false;
  *peer = *parsed;
  *name = key.substr(blank + 1);
  return true;
}

bool same_host_name(std::string_view a, std::string_view b) {
  const std::string left = lower(a), right = lower(b);
  if (left == right) return true;
  const std::string& shorter = left.size() < right.size() ? left : right;
  const std::string& longer = left.size() < right.size() ? right : left;
  return !shorter.empty() && longer.starts_with(shorter) && longer[shorter.size()] == '.';
}

}  // namespace nfsrdma::nlm
