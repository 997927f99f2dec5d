// SPDX-License-Identifier: Apache-2.0
// Trunk discovery (RFC 8881, section 11.5.1; trunkdiscovery of nfs(5)): asks a server by which
// other addresses it can be reached, and has a mount use those as well.
//
// What fs_locations names may be other servers with a copy: each is asked who it is (trunk.h), and
// used only when it is the same. Nothing here waits without an end: nothing is begun
// any more after kDiscoveryPatience, or when kMostReferralTargets addresses were tried.
#pragma once

#include <string>
#include <vector>

#include "client/async_mount.h"

namespace nfsrdma {

inline constexpr std::chrono::seconds kDiscoveryPatience{15};
/// Addresses of one mount, the first one included; max_connect of nfs(5).
inline constexpr unsigned kMostAddresses = 16;

struct DiscoveredTrunks {
  std::vector<SocketAddress> joined;  // for AsyncMount::join_address() of other threads
  std::vector<std::string> notes;     // what was not used and why, for people
};

/// `family`: of addresses, AF_UNSPEC for any. `most`: addresses in use, 1 to kMostAddresses. The
/// mount outlives the Task, and has no other under way.
Task<DiscoveredTrunks> discover_trunks(AsyncMount& mount, int family, unsigned most);

}  // namespace nfsrdma
