// SPDX-License-Identifier: Apache-2.0
// The usual ways to a server's lock manager: rpcbind of the addresses of a mount, and TCP.
#pragma once

#include "client/mount_settings.h"
#include "client/nfs3/lock_manager.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma::nfs3 {

class TcpLockManagerWays final : public LockManagerWays {
 public:
  /// Both outlive this.
  TcpLockManagerWays(EventLoop& loop, const MountSettings& settings)
      : loop_(loop), settings_(settings) {}
  ~TcpLockManagerWays() override;

  Task<Result<std::optional<SocketAddress>>> find(CancelToken* cancel,
                                                  std::string* detail) override;
  std::unique_ptr<RpcClient> connect_to(const SocketAddress& address) override;

 private:
  EventLoop& loop_;
  const MountSettings& settings_;
  /// Not destroyed by a Task that it resumes. Its connection ends when nothing was asked for long.
  std::unique_ptr<RpcClient> rpcbind_;
};

}  // namespace nfsrdma::nfs3
