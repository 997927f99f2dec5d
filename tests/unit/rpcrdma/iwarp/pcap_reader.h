// SPDX-License-Identifier: Apache-2.0
// Reads a pcap file (Ethernet or raw IPv4) and puts its TCP connections back together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma::iwarp::test {

/// One connection; `initiator` is the side that sent the SYN.
struct CapturedConnection {
  std::vector<std::byte> from_initiator;
  std::vector<std::byte> from_responder;
};

/// Whole file; .gz files go through gzip. Empty when it cannot be read.
std::vector<std::byte> read_capture(const std::string& path);

/// The connections that begin inside the capture, up to the first byte that is missing.
std::vector<CapturedConnection> reassemble(const std::vector<std::byte>& capture);

}  // namespace nfsrdma::iwarp::test
