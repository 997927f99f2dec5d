// SPDX-License-Identifier: Apache-2.0
// DeviceReport: what an RDMA device can do and what of it we use, for people (nfs-rdma status
// --devices). Plain data: rpcrdma/verbs fills it in by probing, client/tool prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nfsrdma {

enum class Probed : std::uint8_t { kNo, kYes, kUnknown };

/// An optional feature: does the device have it, do we use it, and what else is to say.
struct DeviceFeature {
  std::string key;    // in JSON: "memory_windows_type_2"
  std::string title;  // for people: "memory windows type 2"
  Probed there = Probed::kUnknown;
  bool used = false;
  std::string note;
};

struct DevicePort {
  unsigned number = 0;
  std::string state;       // "ACTIVE", "DOWN", ...
  bool active = false;     // carries traffic
  std::string link_layer;  // "Ethernet", "InfiniBand", ""
  std::uint32_t mtu = 0;   // of RDMA packets, in bytes; 0: not known
  std::uint32_t max_mtu = 0;
  struct GidType {
    std::string name;  // "IB", "RoCE v1", "RoCE v2", "iWARP"
    unsigned count = 0;
  };
  std::vector<GidType> gid_types;     // those that occur
  std::vector<std::string> networks;  // network interfaces behind the GIDs: "eth0"
};

struct DeviceReport {
  std::string name;
  std::string kind;  // "RoCE (rxe)", "iWARP (siw)", "InfiniBand", ...
  std::string firmware;
  std::string problem;  // why it could not be opened, with the remedy; then little else is known
  std::uint32_t max_sge = 0;
  std::uint32_t max_sge_read = 0;  // of RDMA Reads, as far as we use them
  std::uint32_t max_qp_rd_atom = 0;
  std::uint32_t max_qp_init_rd_atom = 0;
  std::uint64_t max_mr_size = 0;
  std::uint32_t max_mr = 0;
  std::uint32_t max_qp_wr = 0;
  std::uint32_t max_cqe = 0;
  std::uint32_t max_srq_wr = 0;
  std::uint32_t max_inline = 0;
  std::vector<DeviceFeature> features;
  std::vector<DevicePort> ports;

  /// A connection can go over it now.
  bool usable() const {
    if (!problem.empty()) return false;
    for (const DevicePort& port : ports) {
      if (port.active) return true;
    }
    return false;
  }
};

/// The verbs devices of this host and what a process needs to use them.
struct VerbsHostReport {
  std::vector<DeviceReport> devices;
  std::string problem;                // why this host cannot use verbs; empty when it can
  std::vector<std::string> remedies;  // against it, one a line
  std::uint64_t memlock_limit = 0;    // RLIMIT_MEMLOCK in bytes
  bool memlock_unlimited = false;
  bool memlock_exempt = false;  // not bound by it (CAP_IPC_LOCK)
  std::string memlock_remedy;   // when the limit is likely to be too low
};

}  // namespace nfsrdma
