// SPDX-License-Identifier: Apache-2.0
// The MOUNT protocol of a server, wherever it is: at a port given, on the NFS connection itself
// (ours serves it there), on the NFS TCP port, or where rpcbind says (Linux' rpc.mountd).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/mount_settings.h"
#include "client/nfs_types.h"
#include "client/op_context.h"
#include "client/rpc_client.h"
#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::nfs3 {

/// Makes a client for RPC over TCP to `port` of the first address in `settings`.
std::unique_ptr<RpcClient> make_tcp_rpc(EventLoop& loop, const MountSettings& settings,
                                        std::uint16_t port);

/// The TCP port of program and version according to rpcbind; 0: not registered.
Task<Result<std::uint16_t>> rpcbind_port(EventLoop& loop, const MountSettings& settings,
                                         std::uint32_t program, std::uint32_t version,
                                         CancelToken* cancel, std::string* detail);

class MountService {
 public:
  /// `nfs` is the NFS connection, which outlives this.
  MountService(EventLoop& loop, const MountSettings& settings, RpcClient& nfs)
      : loop_(loop), settings_(settings), nfs_(nfs) {}

  /// Finds the service. On an error *detail says where it was looked for.
  Task<Result<void>> find(std::string* detail);
  /// Goes straight to where it was found earlier: port().
  Task<Result<void>> reach(std::uint16_t port, std::string* detail);
  /// The TCP port of the service; 0: it is on the NFS connection.
  std::uint16_t port() const { return port_; }
  /// Ends calls and connecting early, and no further place is tried then. Outlives this.
  void set_cancel(CancelToken* cancel) { cancel_ = cancel; }
  // After find():
  /// EACCES: also where the handle takes no AUTH_SYS (RFC 1813, 5.2.1).
  Task<Result<FileHandle>> mnt(const OpContext& op, std::string_view path);
  Task<Result<void>> umnt(const OpContext& op, std::string_view path);
  Task<Result<std::vector<std::string>>> exports(const OpContext& op);

 private:
  Task<bool> try_tcp(std::uint16_t port, std::string* detail);
  Task<bool> answers(RpcClient& rpc, std::string* detail);

  EventLoop& loop_;
  const MountSettings& settings_;
  RpcClient& nfs_;
  std::unique_ptr<RpcClient> own_;
  RpcClient* rpc_ = nullptr;
  std::uint16_t port_ = 0;
  CancelToken* cancel_ = nullptr;
};

}  // namespace nfsrdma::nfs3
