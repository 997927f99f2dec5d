// SPDX-License-Identifier: Apache-2.0
#include "client/transport_order.h"

namespace nfsrdma {
namespace {

void add_kind(TransportKind kind, Fabric* fabric, const MountSettings& settings,
              TransportOrder& order) {
  for (SocketAddress address : settings.addresses) {
    address.set_port(kind == TransportKind::kTcp ? settings.tcp_port : settings.rdma_port);
    order.candidates.push_back({kind, address, fabric});
  }
}

void add_fabric(TransportKind kind, Fabric* fabric, const std::string& missing,
                const MountSettings& settings, TransportOrder& order) {
  std::string why = missing;
  if (fabric != nullptr) {
    if (fabric->available()) {
      add_kind(kind, fabric, settings, order);
      return;
    }
    why = fabric->available().error().message();
  }
  if (!order.left_out.empty()) order.left_out += "; ";
  order.left_out += transport_name(kind);
  order.left_out += ": " + why;
}

}  // namespace

TransportOrder transport_order(const Fabrics& fabrics, const MountSettings& settings) {
  TransportOrder order;
  if (settings.proto != ProtoChoice::kTcp) {
    if (settings.fabric != FabricChoice::kIwarp) {
      add_fabric(TransportKind::kVerbs, fabrics.verbs, fabrics.no_verbs, settings, order);
    }
    if (settings.fabric != FabricChoice::kVerbs) {
      add_fabric(TransportKind::kIwarp, fabrics.iwarp, fabrics.no_iwarp, settings, order);
    }
  }
  if (settings.proto != ProtoChoice::kRdma) {
    add_kind(TransportKind::kTcp, nullptr, settings, order);
  }
  return order;
}

}  // namespace nfsrdma
