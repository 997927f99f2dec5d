// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/connection_info.h"

#include <atomic>

namespace nfsrdma {

const char* transport_name(TransportKind kind) {
  switch (kind) {
    case TransportKind::kVerbs:
      return "verbs";
    case TransportKind::kIwarp:
      return "iwarp";
    case TransportKind::kTcp:
      return "tcp";
    case TransportKind::kSimulated:
      return "sim";
    case TransportKind::kUdp:
      return "udp";
  }
  return "?";
}

std::uint64_t next_connection_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

TransferStats& TransferStats::operator+=(const TransferStats& other) {
  rdma_write_bytes += other.rdma_write_bytes;
  rdma_read_bytes += other.rdma_read_bytes;
  inline_bytes += other.inline_bytes;
  rdma_writes += other.rdma_writes;
  rdma_reads += other.rdma_reads;
  calls += other.calls;
  replies += other.replies;
  errors += other.errors;
  invalidations += other.invalidations;
  credit_waits += other.credit_waits;
  return *this;
}

}  // namespace nfsrdma
