// SPDX-License-Identifier: Apache-2.0
// Which transports to try, in which order, and what to say about those left out.
#pragma once

#include <string>
#include <vector>

#include "client/mount_settings.h"
#include "rpcrdma/connection_info.h"

namespace nfsrdma {

struct TransportCandidate {
  TransportKind kind = TransportKind::kTcp;
  SocketAddress address;
  Fabric* fabric = nullptr;      // null: TCP
  std::uint16_t local_port = 0;  // TCP: rather from there; 0: from any
};

struct TransportOrder {
  /// Fastest first; addresses of one kind in the order given.
  std::vector<TransportCandidate> candidates;
  /// Why wanted kinds are missing: "verbs: no RDMA device". Empty: none is.
  std::string left_out;
};

TransportOrder transport_order(const Fabrics& fabrics, const MountSettings& settings);

}  // namespace nfsrdma
