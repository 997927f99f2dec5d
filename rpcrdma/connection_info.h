// SPDX-License-Identifier: Apache-2.0
// What `nfs-rdma status` shows of one connection, the same on both ends and for every transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

enum class TransportKind : std::uint8_t { kVerbs, kIwarp, kTcp, kSimulated, kUdp };
inline constexpr std::size_t kTransportKinds = 5;

/// "verbs", "iwarp", "tcp", "sim", "udp".
const char* transport_name(TransportKind kind);
/// For ConnectionInfo::id. Any thread.
std::uint64_t next_connection_id();
inline bool is_rdma(TransportKind kind) {
  return kind != TransportKind::kTcp && kind != TransportKind::kUdp;
}

/// Counters since the connection was made. Bytes are payload and message bytes, without MPA, DDP
/// or record-mark framing.
struct TransferStats {
  std::uint64_t rdma_write_bytes = 0;  // moved by RDMA Write (server to client)
  std::uint64_t rdma_read_bytes = 0;   // moved by RDMA Read (client to server)
  std::uint64_t inline_bytes = 0;      // moved inside Sends, both directions; all bytes on TCP
  std::uint64_t rdma_writes = 0;       // work requests (server) or segments granted (client)
  std::uint64_t rdma_reads = 0;
  std::uint64_t calls = 0;
  std::uint64_t replies = 0;
  std::uint64_t errors = 0;         // RDMA_ERROR sent or received, undecodable messages
  std::uint64_t invalidations = 0;  // handles withdrawn by Send with Invalidate
  std::uint64_t credit_waits = 0;   // client: calls that had to wait for a credit

  TransferStats& operator+=(const TransferStats& other);
};

struct ConnectionInfo {
  std::uint64_t id = 0;  // unique in the process
  TransportKind transport = TransportKind::kTcp;
  std::string device;  // "iwarp", "mlx5_0"; empty on TCP
  SocketAddress local;
  SocketAddress peer;
  std::uint32_t inline_send = 0;  // bytes: largest Send that we make
  std::uint32_t inline_recv = 0;  // bytes: largest Send that we take
  std::uint32_t credits = 0;      // granted (server) or in force (client)
  std::uint32_t calls_in_progress = 0;
  std::uint32_t ord = 0;
  std::uint32_t ird = 0;
  bool remote_invalidation = false;
  bool crc = false;
  std::string detail;
  std::string fallback_reason;  // client: why not a faster transport; empty when none was tried
  std::uint64_t age_seconds = 0;
  TransferStats stats;
};

}  // namespace nfsrdma
