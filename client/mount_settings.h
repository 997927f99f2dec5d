// SPDX-License-Identifier: Apache-2.0
// What a mount needs to know: where the server is, how to reach it, how to behave. Filled from a
// URL (mount_url.h), from mount options (client/mount/) or by a program.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/called_at.h"
#include "client/nfs_types.h"
#include "client/nfs_version.h"
#include "client/op_context.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma::nfs4 {
class SessionSource;
}
namespace nfsrdma {

class PutOff;

/// The fabrics that this program has; a null one was not built in or does not work here, for the
/// reason given. They outlive the mounts. client/default_fabrics.h makes the usual ones.
struct Fabrics {
  Fabric* verbs = nullptr;
  Fabric* iwarp = nullptr;
  std::string no_verbs = "not built in";
  std::string no_iwarp = "not built in";
};

enum class ProtoChoice : std::uint8_t {
  kAuto,  // verbs, iwarp, tcp: the first that connects; why not a faster one is shown
  kRdma,  // verbs, iwarp
  kTcp,
};
enum class FabricChoice : std::uint8_t { kAuto, kVerbs, kIwarp };

struct MountSettings {
  std::string host;
  /// Of `host`, tried in order (ports are ignored). resolve_host() fills it; of an AsyncMount the
  /// one where it found the server.
  std::vector<SocketAddress> addresses;
  /// All that resolve_host() found, of an AsyncMount: what an earlier one may have used.
  std::vector<SocketAddress> addresses_of_host;
  std::string path = "/";  // what is mounted

  NfsVersion version = kBestVersion;  // of an AsyncMount: the one in force
  ProtoChoice proto = ProtoChoice::kAuto;
  FabricChoice fabric = FabricChoice::kAuto;
  /// iWARP: ask for CRC32c. For default_fabrics(); fabrics made otherwise have their own mind.
  bool require_crc = false;
  std::uint16_t rdma_port = 20049;
  std::uint16_t tcp_port = 2049;
  /// MOUNT protocol: this TCP port only; 0: over the NFS connection itself (unless mount_by_tcp),
  /// then tcp_port, then where rpcbind says.
  std::uint16_t mount_port = 0;
  bool mount_by_tcp = false;
  std::uint16_t rpcbind_port = 111;

  std::uint32_t rsize = 0;  // bytes; 0: as large as both sides can
  std::uint32_t wsize = 0;
  bool soft = false;                        // give up with ETIMEDOUT
  std::chrono::milliseconds timeo{60'000};  // until a call is sent again
  std::uint32_t retrans = 2;                // times, before "not responding" (hard) or giving up
  std::uint32_t connections = 1;            // nconnect
  /// TCP: from a port below 1024 where we may, since exports are `secure` by default.
  bool reserved_port = true;
  AuthSys identity = AuthSys::of_process();  // of calls that are the mount's own

  std::uint32_t inline_bytes = 4096;  // RDMA: the largest Send, 1024 to 65536
  std::uint32_t credits = 128;        // calls outstanding on one connection, 1 to 1024
  /// A connection without calls for so long is closed and made again when needed; 0: never.
  std::chrono::seconds idle_timeout{300};
  /// Round trip of the first connection attempt over all candidates.
  std::chrono::milliseconds connect_timeout{15'000};
  /// Of that, at most, for a transport that says nothing while there is another to try.
  std::chrono::milliseconds silence{5'000};
  /// As connect_timeout for MOUNT and rpcbind on ports of their own, if it is shorter.
  std::chrono::milliseconds mount_connect_timeout{15'000};
  /// Then, for MOUNT and FSINFO, also on a `hard` mount.
  std::chrono::milliseconds first_answers{30'000};
  /// NFSv3: locks are the server's, by NLM; else there are none. Of several AsyncMounts of a tree
  /// one has them.
  bool locks = true;
  /// NFSv3: where mounts that have locks are remembered, for whoever comes after they have died
  /// (client/nfs3/lock_records.h). "": nowhere.
  std::string lock_records;
  /// NFSv3: POSIX ACLs are the server's, by NFSACL; else there are none.
  bool posix_acls = true;
  /// NFSv4: another AsyncMount's, which outlives this one: both are one client to the server. Null:
  /// a client by itself.
  nfs4::SessionSource* session_source = nullptr;
  /// Of all AsyncMounts that one person sees as one; null: one of its own.
  std::shared_ptr<PutOff> put_off;
  /// NFSv4.0: none: nowhere, and so there are no delegations.
  std::optional<CalledAt> called_at;
  /// Ends an attempt to connect with EINTR; outlives it. Null: nobody wants to.
  CancelToken* stop = nullptr;
};

/// For MountSettings::lock_records.
std::string default_lock_records();

/// Looks `settings.host` up (blocking). The Error comes with *detail for people.
Result<void> resolve_host(MountSettings& settings, std::string* detail);

}  // namespace nfsrdma
