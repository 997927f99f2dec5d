// SPDX-License-Identifier: Apache-2.0
#include "client/trunk_discovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/follow_referral.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {
namespace {

/// Where the mount's own tree is, as the server says.
Task<Result<Referral>> ask_for_locations(AsyncMount& mount) {
  CancelToken patience;
  Timer limit([&patience] { patience.cancel(); });
  limit.arm_after(mount.loop(), kDiscoveryPatience);
  OpContext op;
  op.identity = mount.settings().identity;
  op.cancel = &patience;
  co_return co_await mount.referral(op, mount.root().handle, "");
}

bool contains(const std::vector<SocketAddress>& addresses, const SocketAddress& wanted) {
  return std::any_of(addresses.begin(), addresses.end(), [&wanted](const SocketAddress& one) {
    return one.same_host(wanted) && (wanted.port() == 0 || one.port() == wanted.port());
  });
}

/// Port 0 where the server names none.
Task<Result<std::vector<SocketAddress>>> addresses_of(AsyncMount& mount,
                                                      const ReferralTarget& target,
                                                      std::chrono::milliseconds patience,
                                                      std::string* detail) {
  MountSettings there = mount.settings();
  there.host = target.host;
  there.addresses.clear();
  Result<void> found = co_await find_addresses(mount.loop(), &there, detail, patience);
  if (!found.ok()) co_return found.error();
  for (SocketAddress& address : there.addresses)
    address.set_port(target.port);
  co_return std::move(there.addresses);
}

}  // namespace

Task<DiscoveredTrunks> discover_trunks(AsyncMount& mount, int family, unsigned most) {
  DiscoveredTrunks out;
  const TimePoint until = mount.loop().refresh_now() + kDiscoveryPatience;
  Result<Referral> found = co_await ask_for_locations(mount);
  if (!found.ok()) {
    out.notes.push_back(found.error().sys == ENOENT ? "the server names no addresses"
                                                    : found.error().message());
    co_return out;
  }
  std::vector<SocketAddress> seen;
  for (const ConnectionInfo& info : mount.connections())
    seen.push_back(info.peer);
  const std::string late = "too many of them, or too slow: further addresses were not tried";
  for (const ReferralTarget& target : found->targets) {
    if (target.host.empty()) continue;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - mount.loop().refresh_now());
    if (left.count() <= 0) {
      out.notes.push_back(late);
      co_return out;
    }
    const std::chrono::milliseconds patience = std::min(left, kNamePatience);
    std::string why;
    Result<std::vector<SocketAddress>> addresses =
        co_await addresses_of(mount, target, patience, &why);
    if (!addresses.ok()) {
      // Hosts come from servers, and this is for people.
      out.notes.push_back(terminal_text(target.host + ": " + why));
      continue;
    }
    for (const SocketAddress& address : *addresses) {
      if ((family != AF_UNSPEC && address.family() != family) || contains(seen, address)) continue;
      if (out.joined.size() + 1 >= most) {
        out.notes.push_back(fmt::format("{} of its addresses in use, no more are wanted", most));
        co_return out;
      }
      if (mount.loop().refresh_now() >= until || seen.size() >= kMostReferralTargets) {
        out.notes.push_back(late);
        co_return out;
      }
      seen.push_back(address);
      why.clear();
      Result<void> joined = co_await mount.join_address(address, &why);
      if (joined.ok()) {
        out.joined.push_back(address);
      } else {
        out.notes.push_back(address.host_text() + ": " + why);
      }
    }
  }
  co_return out;
}

}  // namespace nfsrdma
