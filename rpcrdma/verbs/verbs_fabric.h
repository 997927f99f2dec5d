// SPDX-License-Identifier: Apache-2.0
// The verbs fabric: RDMA adapters (InfiniBand, RoCE, iWARP, and the kernel's rxe and siw) through
// librdmacm and libibverbs. Everything else in this folder is private to it.
#pragma once

#include <chrono>
#include <memory>

#include "rpcrdma/fabric.h"

namespace nfsrdma::verbs {

/// How a client exposes memory on devices with memory windows of type 2.
enum class WindowUse : std::uint8_t {
  kNever,   // by registration
  kSafe,    // by windows, where the device keeps the peer within them
  kAlways,  // by windows (for tests)
};

struct VerbsOptions {
  /// A connection attempt of ours in all: address, route, handshake.
  std::chrono::milliseconds connect_timeout{10000};
  /// How long a closing connection may take to flush what is posted before it is cut off.
  std::chrono::milliseconds drain_timeout{2000};
  int backlog = 128;
  /// IPv4 TOS / IPv6 traffic class of connections of ours; 0: the system's.
  std::uint8_t type_of_service = 0;
  /// Use receive queues per queue pair even where the device has shared ones (for tests).
  bool per_queue_pair_receives = false;
  /// With windows servers may end an exposure by their replies. Servers expose nothing.
  WindowUse windows = WindowUse::kNever;
};

/// Never fails: what this host lacks is told by available().
std::unique_ptr<Fabric> make_fabric(const VerbsOptions& options);

}  // namespace nfsrdma::verbs
