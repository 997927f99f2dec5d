// SPDX-License-Identifier: Apache-2.0
// The client side of RPC-over-RDMA (RFC 8166): a ClientTransport on any fabric.
//
// A call goes inline, with a Read chunk for its payload, or as a Position-Zero Read chunk when its
// head alone is too long; never with several Read chunks (knfsd before 2025 breaks on them). Result
// data gets a Write chunk on `sink`, long replies a Reply chunk. Exactly those bytes are
// registered, for as long as the call is out; the registration is withdrawn before on_complete().
#pragma once

#include <memory>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/client_transport.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma {

struct RdmaClientOptions {
  std::uint32_t inline_bytes = 4096;  // largest Send that we make and take; 1024..65536
  std::uint32_t max_credits = 128;    // asked for; calls outstanding at most
  std::uint32_t inbound_reads = 32;   // RDMA Reads that the server may have open (IRD)
  Duration connect_timeout = std::chrono::seconds(15);
};

/// Starts connecting. `handler` hears how it went, never from inside this call. Loop, fabric and
/// handler outlive the transport.
std::unique_ptr<ClientTransport> make_rdma_transport(EventLoop& loop, Fabric& fabric,
                                                     const SocketAddress& server,
                                                     const RdmaClientOptions& options,
                                                     ClientTransportHandler& handler);

}  // namespace nfsrdma
