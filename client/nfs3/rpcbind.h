// SPDX-License-Identifier: Apache-2.0
// What a server's rpcbind says about where its programs are.
#pragma once

#include <optional>
#include <string>

#include "client/mount_settings.h"
#include "client/op_context.h"
#include "client/rpc_client.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::nfs3 {

/// Where `program` is by TCP, at the address where `rpcbind`, an RPC client for RPC over TCP to it,
/// is connected, or connects now; none: not registered. On an error *detail says what was tried.
Task<Result<std::optional<SocketAddress>>> ask_rpcbind(RpcClient& rpcbind, std::uint32_t program,
                                                       std::uint32_t version, CancelToken* cancel,
                                                       std::string* detail);

}  // namespace nfsrdma::nfs3
