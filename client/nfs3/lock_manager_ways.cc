// SPDX-License-Identifier: Apache-2.0
#include "client/nfs3/lock_manager_ways.h"

#include <algorithm>

#include "client/nfs3/rpcbind.h"

namespace nfsrdma::nfs3 {
namespace {

/// Of rpcbind, which may close it as well.
constexpr Duration kIdle = std::chrono::seconds(5);

std::unique_ptr<RpcClient> tcp_to(EventLoop& loop, const MountSettings& settings,
                                  std::vector<SocketAddress> addresses, Duration idle) {
  RpcClientOptions options;
  for (const SocketAddress& address : addresses)
    options.candidates.push_back({TransportKind::kTcp, address, nullptr});
  // Hard mounts go on: from the beginning, since a lock manager that was restarted may be
  // elsewhere.
  options.soft = true;
  options.timeo = std::chrono::seconds(10);
  options.retrans = 1;
  options.idle_timeout = idle;
  options.connect_timeout = std::min(settings.connect_timeout, settings.mount_connect_timeout);
  TcpClientOptions tcp;
  tcp.reserved_port = settings.reserved_port;
  return std::make_unique<RpcClient>(
      std::make_unique<LoopEnvironment>(loop, RdmaClientOptions{}, tcp), std::move(options));
}

}  // namespace

TcpLockManagerWays::~TcpLockManagerWays() {
  if (rpcbind_ != nullptr) rpcbind_->abort_all();
}

Task<Result<std::optional<SocketAddress>>> TcpLockManagerWays::find(CancelToken* cancel,
                                                                    std::string* detail) {
  if (rpcbind_ == nullptr) {
    std::vector<SocketAddress> addresses = settings_.addresses;
    for (SocketAddress& address : addresses)
      address.set_port(settings_.rpcbind_port);
    rpcbind_ = tcp_to(loop_, settings_, std::move(addresses), kIdle);
  }
  co_return co_await ask_rpcbind(*rpcbind_, xdr::kNlmProgram, xdr::kNlmV4, cancel, detail);
}

std::unique_ptr<RpcClient> TcpLockManagerWays::connect_to(const SocketAddress& address) {
  return tcp_to(loop_, settings_, {address}, settings_.idle_timeout);
}

}  // namespace nfsrdma::nfs3
