// SPDX-License-Identifier: Apache-2.0
// ClientTransport over TCP with RFC 5531 record marking. READ and READLINK data is read from the
// socket straight into the call's `sink` (nfs_binding.h knows where it lies in a reply).
#pragma once

#include <memory>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/client_transport.h"

namespace nfsrdma {

struct TcpClientOptions {
  std::uint32_t max_calls = 128;  // outstanding at most; more wait in order
  std::size_t max_record = (std::size_t{4} << 20) + (64 << 10);
  Duration connect_timeout = std::chrono::seconds(15);
  /// Bind to a port below 1024 (needs privilege; falls back to any port): `secure` exports.
  bool reserved_port = false;
  /// Connect from that address, whatever its port; without a family: the kernel chooses.
  SocketAddress local{};
  /// From that port, if it can be had; 0: from any.
  std::uint16_t local_port = 0;
};

/// Starts connecting. `handler` hears how it went, never from inside this call. Loop and handler
/// outlive the transport.
std::unique_ptr<ClientTransport> make_tcp_transport(EventLoop& loop, const SocketAddress& server,
                                                    const TcpClientOptions& options,
                                                    ClientTransportHandler& handler);

}  // namespace nfsrdma
