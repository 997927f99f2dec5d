// SPDX-License-Identifier: Apache-2.0
// The ways by which others reach this host: its interfaces, and the families of their addresses.
#pragma once

#include <string>
#include <vector>

#include "client/doctor/host_view.h"

namespace nfsrdma::doctor {

/// One interface with addresses of one family.
struct HostWay {
  std::string interface;  // "": not known
  bool v6 = false;
  bool operator==(const HostWay&) const = default;
};

struct HostWays {
  std::vector<HostWay> ways{};
  /// The host has no address that others could use (yet): both families, by any interface.
  bool assumed = false;
};

/// By addresses that are neither loopback nor link-local, and that `server` listens on. Interfaces
/// with hardware below them count, and others (those of containers, say) only where none has any.
HostWays ways_to(const HostView& host, const LocalServer& server);

bool is_link_local(const SocketAddress& address);

}  // namespace nfsrdma::doctor
