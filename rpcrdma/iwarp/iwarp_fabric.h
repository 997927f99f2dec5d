// SPDX-License-Identifier: Apache-2.0
// The iWARP fabric: RDMA in this process over a TCP socket. Needs no device and no privilege, works
// with itself and with Linux's siw and hardware iWARP.
//
//   auto fabric = iwarp::make_fabric({});
//   auto listener = fabric->listen(loop, address, handler);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rpcrdma/fabric.h"

namespace nfsrdma::iwarp {

struct IwarpOptions {
  /// Ask for CRC32c on every connection. A peer that asks gets it in any case.
  bool require_crc = false;
  /// RDMA Reads that one peer may have open with us (IRD), 1..128.
  std::uint32_t max_inbound_reads = 32;
  /// FPDU size: kAuto follows the peer (large ones to own peers and to siw without CRC), kMss keeps
  /// every FPDU in a TCP segment, another value is a limit in bytes.
  static constexpr std::uint32_t kAuto = 0;
  static constexpr std::uint32_t kMss = 1;
  std::uint32_t max_fpdu = kAuto;
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds handshake_timeout{10'000};
  std::chrono::milliseconds reject_linger{2'000};
  std::chrono::milliseconds close_linger{1'000};
  /// Handshakes that are not complete yet, from one address and in all.
  std::uint32_t max_half_open_per_address = 64;
  std::uint32_t max_half_open = 1024;
  /// Sockets that wait for their peers to close, for one of the two times above, in all (and one
  /// more for each loop). 0: an eighth of the descriptors that the process may have.
  std::uint32_t max_lingering = 0;
  /// Treat peers of this software like strangers: no large or coalesced FPDUs (for tests).
  bool hide_own_peer = false;
  /// Write all traffic to this file in pcap format; empty: no.
  std::string pcap_path;
  /// Or give the pcap bytes to this function (any thread, one call at a time).
  std::function<void(ByteSpan)> pcap_hook;
};

std::unique_ptr<Fabric> make_fabric(const IwarpOptions& options);

}  // namespace nfsrdma::iwarp
