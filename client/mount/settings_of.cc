// SPDX-License-Identifier: Apache-2.0
#include "client/mount/settings_of.h"

#include <unistd.h>

namespace nfsrdma {

MountSettings settings_of(const MountSource& source, const MountOptions& o) {
  MountSettings settings;
  settings.host = source.host;
  settings.path = source.path;
  settings.version = o.version;
  settings.proto = o.proto == MountProto::kRdma  ? ProtoChoice::kRdma
                   : o.proto == MountProto::kTcp ? ProtoChoice::kTcp
                                                 : ProtoChoice::kAuto;
  settings.fabric = o.fabric == MountFabric::kVerbs   ? FabricChoice::kVerbs
                    : o.fabric == MountFabric::kIwarp ? FabricChoice::kIwarp
                                                      : FabricChoice::kAuto;
  settings.require_crc = o.require_crc;
  settings.rdma_port = o.rdma_port();
  settings.tcp_port = o.effective_tcp_port();
  settings.mount_port = o.mount_port;
  settings.mount_by_tcp = o.mount_proto_tcp;
  settings.rsize = o.rsize;
  settings.wsize = o.wsize;
  settings.soft = o.recovery != MountRecovery::kHard;
  settings.timeo = o.timeout;
  settings.retrans = o.retransmissions;
  settings.connections = o.connections;
  if (o.credits != 0) settings.credits = o.credits;
  if (o.inline_bytes != 0) settings.inline_bytes = o.inline_bytes;
  settings.locks = !o.local_posix_locks || !o.local_flock;
  settings.lock_records = default_lock_records();
  settings.posix_acls = o.posix_acls;
  // Exports are `secure` by default, and over TCP that means a privileged port.
  settings.reserved_port = o.reserved_port && ::geteuid() == 0;
  if (o.callbacks) {
    settings.called_at.emplace();
    settings.called_at->port = o.callback_port;
    // Checked when the option was read.
    if (auto at = SocketAddress::parse(o.client_address, 0); at.ok()) {
      settings.called_at->address = *at;
    }
  }
  return settings;
}

}  // namespace nfsrdma
