// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/host_ways.h"

#include <netinet/in.h>

#include <algorithm>

namespace nfsrdma::doctor {

namespace {

constexpr int kMostLayers = 4;  // VLAN on bridge on bond on adapters

/// An adapter, or something that stands on one.
bool has_hardware(const HostView& host, const std::string& interface, int layers) {
  constexpr std::string_view kLower = "lower_";
  const std::string at = "/sys/class/net/" + interface;
  if (host.exists(at + "/device")) return true;
  // IPoIB's of other partitions name the one that has the adapter, and have no lower_*.
  if (host.exists("/sys/class/net/" + host.line(at + "/parent") + "/device")) return true;
  const std::vector<std::string> names = host.names(at);
  return layers > 0 && std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name.starts_with(kLower) &&
                  has_hardware(host, name.substr(kLower.size()), layers - 1);
         });
}

bool is_any(const SocketAddress& address) {
  const std::string text = address.host_text();
  return text == "0.0.0.0" || text == "::";
}

bool listens_on(const LocalServer& server, const SocketAddress& address) {
  const auto& all = server.listen;
  return all.empty() || std::any_of(all.begin(), all.end(), [&](const SocketAddress& one) {
           return is_any(one) ? one.is_v6() == address.is_v6() : one.same_host(address);
         });
}

}  // namespace

bool is_link_local(const SocketAddress& address) {
  if (address.is_v6()) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.data());
    return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
  }
  constexpr std::uint32_t kNetwork = 0xa9fe0000, kMask = 0xffff0000;  // 169.254/16
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
  return (ntohl(v4->sin_addr.s_addr) & kMask) == kNetwork;
}

HostWays ways_to(const HostView& host, const LocalServer& server) {
  std::vector<HostWay> with_hardware, others;
  for (const HostAddress& one : host.addresses()) {
    if (one.address.is_loopback() || is_link_local(one.address)) continue;
    if (!listens_on(server, one.address)) continue;
    auto& ways = has_hardware(host, one.interface, kMostLayers) ? with_hardware : others;
    const HostWay way{one.interface, one.address.is_v6()};
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  }
  if (!with_hardware.empty()) return {with_hardware};
  if (!others.empty()) return {others};
  return {{{"", false}, {"", true}}, true};
}

}  // namespace nfsrdma::doctor
