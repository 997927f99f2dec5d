// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/table.h"

#include <algorithm>

namespace nfsrdma::doctor {

namespace {

constexpr const char* kRdma = "RDMA";
constexpr const char* kSystem = "system";
constexpr const char* kService = "service";
constexpr const char* kWay = "way to the server";
constexpr const char* kEnds = "end to end";

constexpr CheckRow kRows[] = {
    {"devices", kRdma, "RDMA devices, and whether user space reaches them", check_devices, nullptr},
    {"ports", kRdma, "their ports: down, or without a subnet manager", check_ports, nullptr},
    {"link-layer", kRdma, "InfiniBand, RoCE or iWARP, and the network interface that goes with it",
     check_link_layer, nullptr},
    {"gids", kRdma, "RoCE v1 and v2 addresses (GIDs)", check_gids, nullptr},
    {"software", kRdma, "rxe and siw: modules there, devices made", check_software_devices,
     nullptr},
    {"ipoib", kRdma, "IPoIB mode and MTU", check_ipoib, nullptr},
    {"mtu", kRdma, "RDMA packets and the MTU of the interface below", check_mtu, nullptr},
    {"numa", kRdma, "NUMA node of the adapters, and the CPUs that processes may use", check_numa,
     nullptr},
    {"memlock", kSystem, "how much memory may be locked: user, daemons, unit, container",
     check_memlock, nullptr},
    {"modules", kSystem, "rpcrdma of the kernel: missing, or of a vendor's package", check_modules,
     nullptr},
    {"clock", kSystem, "is the clock synchronised?", check_clock, nullptr},
    {"fuse", kSystem, "what mounting needs: /dev/fuse, fusermount3, user_allow_other", check_fuse,
     nullptr},
    {"kernel-nfsd", kService, "the kernel's own NFS server and its ports", check_kernel_server,
     nullptr},
    {"listeners", kService, "who has the ports of NFS", check_listeners, nullptr},
    {"firewall", kService, "nftables, iptables and firewalld: are the ports open?", check_firewall,
     nullptr},
    {"rpcbind", kService, "rpcbind, and what is registered", check_rpcbind, nullptr},
    {"configuration", kService, "do rdma.conf and the exports parse?", check_configuration,
     nullptr},
    {"dns", kWay, "name to addresses, and back", nullptr, check_dns},
    {"route", kWay, "interface, gateway, MTU and RDMA device for the server's address", nullptr,
     check_route},
    {"gid-match", kWay, "RoCE v1 and v2 at both ends", nullptr, check_gid_match},
    {"reach", kWay, "TCP ports of NFS and rpcbind: open, refused, or dropped", nullptr,
     check_reach},
    {"null-iwarp", kEnds, "an empty call by iWARP, and what was agreed on", nullptr,
     check_null_iwarp},
    {"null-verbs", kEnds, "the same over an RDMA device", nullptr, check_null_verbs},
    {"null-tcp", kEnds, "the same by TCP", nullptr, check_null_tcp},
    {"transport", kEnds, "which transport a mount would take", nullptr, check_transport},
    {"data-iwarp", kEnds, "a file written and read back by RDMA, over iWARP", nullptr,
     check_data_iwarp},
    {"data-verbs", kEnds, "the same over an RDMA device", nullptr, check_data_verbs},
    {"data-tcp", kEnds, "the same by TCP", nullptr, check_data_tcp},
    {"skew", kEnds, "the server's clock beside this host's", nullptr, check_skew},
};

}  // namespace

std::span<const CheckRow> check_rows() {
  return kRows;
}

const CheckRow* find_row(std::string_view id) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const CheckRow& one) { return one.id == id; });
  return row == std::end(kRows) ? nullptr : row;
}

std::vector<CheckResult> run_checks(const HostView& host, ServerVisit* visit,
                                    const std::vector<std::string>& only,
                                    const std::function<void(const CheckRow&)>& begin) {
  std::vector<CheckResult> results;
  const auto wanted = [&](const char* id) {
    return only.empty() || std::find(only.begin(), only.end(), id) != only.end();
  };
  if (visit != nullptr) visit->transport_is_judged = wanted("transport");
  for (const CheckRow& row : kRows) {
    if (!wanted(row.id)) continue;
    if (row.of_host == nullptr && visit == nullptr) continue;
    if (begin) begin(row);
    CheckResult result = row.of_host != nullptr ? row.of_host(host) : row.of_server(*visit);
    result.id = row.id;
    result.area = row.area;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace nfsrdma::doctor
