// SPDX-License-Identifier: Apache-2.0
// The fabrics of this build, made on first use and kept until the process ends.
#pragma once

#include "client/mount_settings.h"
#include "rpcrdma/base/device_report.h"

namespace nfsrdma {

/// Any thread. `require_crc`: connections over iWARP ask for CRC32c (MPA).
Fabrics default_fabrics(bool require_crc = false);

/// What this host has for RDMA: its devices, probed, and the engine that needs none.
struct RdmaHostReport {
  VerbsHostReport verbs;
  std::uint32_t iwarp_inbound_reads = 0;  // IRD that the iwarp engine offers
};
/// Any thread; takes some milliseconds.
RdmaHostReport report_rdma_host();

}  // namespace nfsrdma
