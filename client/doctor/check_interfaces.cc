// SPDX-License-Identifier: Apache-2.0
// The network interfaces beside the RDMA devices, and where in the machine the devices are.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "client/doctor/host_checks.h"
#include "client/doctor/host_ways.h"
#include "client/doctor/rdma_sysfs.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::string_view kInfiniBandInterface = "32";  // ARPHRD_INFINIBAND
constexpr unsigned kMostDatagramMtu = 4092;              // an InfiniBand packet of 4096 bytes
constexpr unsigned kSmallMtu = 2044;
constexpr unsigned kConnectedMtu = 65520;
constexpr std::uint32_t kFullRocePacket = 4096;
constexpr unsigned kMtuForFullPackets = 4200;  // with RoCE v2's headers

/// Has it, or what is built upon it (a bond, other partitions), an IP address of a network?
bool has_ip_address(const HostView& host, const std::string& interface) {
  if (!host.link_name("/sys/class/net/" + interface + "/master").empty()) return true;
  const std::vector<HostAddress> all = host.addresses();
  return std::any_of(all.begin(), all.end(), [&](const HostAddress& one) {
    return (one.interface == interface || one.interface.starts_with(interface + ".")) &&
           !is_link_local(one.address);
  });
}

void look_at_ipoib(const HostView& host, const std::string& interface, CheckResult* result) {
  const std::string at = "/sys/class/net/" + interface;
  const std::string mode = host.line(at + "/mode");
  const unsigned mtu = interface_mtu(host, interface);
  const std::string seen =
      fmt::format("{}: {} mode, MTU {}", interface, mode.empty() ? "unknown" : mode, mtu);
  if (!interface_up(host, interface)) {
    result->warning(seen + ", down: no IP address on it leads to the InfiniBand port",
                    {fmt::format("ip link set {} up", interface)});
  } else if (host.line(at + "/carrier") == "0") {
    // It has not joined its network's group of all hosts, for which the subnet manager stands.
    result->warning(seen + ", up, and not on the fabric: nothing goes through it",
                    {"nfs-rdma doctor --only ports    # is its port ACTIVE?",
                     fmt::format("if so, the subnet manager does not let it into the partition of "
                                 "{}/pkey",
                                 at)});
  } else if (!has_ip_address(host, interface)) {
    result->warning(seen + ", without an IP address: no connection is made by it",
                    {fmt::format("ip address add ADDRESS/PREFIX dev {}", interface)});
  } else if (mode == "connected" && mtu <= kMostDatagramMtu) {
    result->warning(
        seen + fmt::format(": connected mode could take {}; what falls back to TCP is slow",
                           kConnectedMtu),
        {fmt::format("ip link set {} mtu {}", interface, kConnectedMtu)});
  } else if (mode == "datagram" && mtu < kSmallMtu) {
    result->warning(seen + fmt::format(": less than the {} that every fabric carries", kSmallMtu),
                    {fmt::format("ip link set {} mtu {}", interface, kSmallMtu)});
  } else {
    // RDMA itself uses IPoIB for addresses only.
    result->ok(seen + "; matters to TCP only");
  }
}

void look_at_roce_mtu(const HostView& host, const DeviceReport& device, const DevicePort& port,
                      CheckResult* result) {
  if (!port.active || port.mtu == 0) return;
  const std::string interface = port.networks.empty() ? "" : port.networks.front();
  std::string seen = fmt::format("{} port {}: RDMA packets of {} bytes (at most {})", device.name,
                                 port.number, port.mtu, port.max_mtu);
  if (!interface.empty()) {
    seen += fmt::format("; MTU of {}: {}", interface, interface_mtu(host, interface));
  }
  if (port.link_layer == "Ethernet" && port.mtu < std::min(port.max_mtu, kFullRocePacket) &&
      !interface.empty() && device.kind.find("iWARP") == std::string::npos) {
    result->note(seen + "; larger frames carry larger packets, if switches and peers take them",
                 {fmt::format("ip link set {} mtu {}", interface, kMtuForFullPackets)});
  } else {
    result->ok(seen);
  }
}

/// "0-3,8" -> {0,1,2,3,8}; bounded.
std::set<unsigned> cpu_list(const std::string& text) {
  constexpr std::uint64_t kMostCpus = 8192;
  std::set<unsigned> cpus;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t dash = part.find('-');
    const auto first = number_of(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *last >= kMostCpus) continue;
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu)
      cpus.insert(static_cast<unsigned>(cpu));
  }
  return cpus;
}

std::string allowed_cpus(const HostView& host, const std::string& pid) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  for (const std::string& line : lines_of(host.text("/proc/" + pid + "/status"))) {
    if (line.starts_with(kKey)) return trimmed(std::string_view(line).substr(kKey.size()));
  }
  return "";
}

bool meet(const std::set<unsigned>& a, const std::set<unsigned>& b) {
  return std::any_of(a.begin(), a.end(), [&](unsigned cpu) { return b.contains(cpu); });
}

std::vector<Process> our_processes(const HostView& host) {
  std::vector<Process> ours = processes_named(host, "nfs-rdmad");
  for (Process& mount : processes_named(host, "mount.nfs-rdma"))
    ours.push_back(std::move(mount));
  ours.push_back({"self", "this shell"});
  return ours;
}

void look_at_placement(const HostView& host, const SysDevice& device, CheckResult* result) {
  const std::string cpus =
      host.line(fmt::format("/sys/devices/system/node/node{}/cpulist", device.numa_node));
  result->ok(fmt::format("{} is on NUMA node {} (CPUs {})", device.name, device.numa_node, cpus));
  for (const Process& process : our_processes(host)) {
    const std::string allowed = allowed_cpus(host, process.pid);
    if (allowed.empty() || cpus.empty() || meet(cpu_list(allowed), cpu_list(cpus))) continue;
    const bool shell = process.pid == "self";
    result->warning(
        fmt::format("{}{} may only run on CPUs {}, none of them near {}", process.name,
                    shell ? "" : " (process " + process.pid + ")", allowed, device.name),
        {shell ? fmt::format("numactl --cpunodebind={} --membind={} COMMAND", device.numa_node,
                             device.numa_node)
               : fmt::format("taskset -a -c -p {} {}    # and CPUAffinity= of its unit", cpus,
                             process.pid)});
  }
}

}  // namespace

CheckResult check_ipoib(const HostView& host) {
  CheckResult result;
  for (const std::string& interface : host.names("/sys/class/net")) {
    if (host.line("/sys/class/net/" + interface + "/type") == kInfiniBandInterface) {
      look_at_ipoib(host, interface, &result);
    }
  }
  if (result.findings.empty()) result.skipped("no IPoIB interface on this host");
  return result;
}

CheckResult check_mtu(const HostView& host) {
  CheckResult result;
  if (host.names("/sys/class/infiniband").empty()) {
    return result.skipped("there is no RDMA device on this host");
  }
  for (const DeviceReport& device : host.rdma_host().verbs.devices) {
    for (const DevicePort& port : device.ports)
      look_at_roce_mtu(host, device, port, &result);
  }
  if (result.findings.empty()) result.skipped("no active port says its MTU");
  return result;
}

CheckResult check_numa(const HostView& host) {
  CheckResult result;
  std::size_t nodes = 0;
  for (const std::string& name : host.names("/sys/devices/system/node")) {
    if (name.starts_with("node") && number_of(std::string_view(name).substr(4))) ++nodes;
  }
  if (nodes < 2) return result.skipped("one NUMA node: every CPU is as near as the others");
  for (const SysDevice& device : sys_devices(host)) {
    if (device.software) continue;
    if (device.numa_node >= 0) {
      look_at_placement(host, device, &result);
    } else {
      result.note(
          fmt::format("{}: the firmware does not say which NUMA node it is on", device.name));
    }
  }
  if (result.findings.empty()) result.skipped("no RDMA adapter on this host");
  return result;
}

}  // namespace nfsrdma::doctor
