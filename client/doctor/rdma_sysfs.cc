// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/rdma_sysfs.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace nfsrdma::doctor {

namespace {

constexpr std::string_view kDevices = "/sys/class/infiniband/";
constexpr unsigned kInterfaceUp = 1;  // IFF_UP

/// "4: ACTIVE" -> "ACTIVE".
std::string behind_colon(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

bool empty_gid(const std::string& gid) {
  return gid.find_first_not_of("0:") == std::string::npos;
}

std::string plain_type(const std::string& type) {
  return type == "IB/RoCE v1" ? "RoCE v1" : type;
}

/// Adapters first, bridges and the like (which take the MAC address of a port of theirs) last.
int preference(const HostView& host, const std::string& interface) {
  const std::string at = "/sys/class/net/" + interface;
  if (host.exists(at + "/device")) return 0;
  return host.exists(at + "/bridge") || host.exists(at + "/bonding") ? 2 : 1;
}

/// siw's GID begins with the MAC address of its interface.
std::string interface_of_mac(const HostView& host, const std::string& gid) {
  constexpr std::size_t kMacDigits = 12;
  std::string digits;
  for (char c : gid) {
    if (c != ':') digits += c;
  }
  if (digits.size() < kMacDigits) return "";
  std::string found;
  int best = 3;
  for (const std::string& interface : host.names("/sys/class/net")) {
    std::string mac = host.line("/sys/class/net/" + interface + "/address");
    std::erase(mac, ':');
    if (interface == "lo" || mac.size() != kMacDigits || !digits.starts_with(mac)) continue;
    if (const int rank = preference(host, interface); rank < best) {
      best = rank;
      found = interface;
    }
  }
  return found;
}

void read_gids(const HostView& host, const std::string& at, bool iwarp, SysPort* port) {
  const std::string gids = at + "/gids/";
  const std::string types = at + "/gid_attrs/types/", networks = at + "/gid_attrs/ndevs/";
  std::set<std::string> interfaces;
  for (const std::string& index : host.names(at + "/gids")) {
    const std::string gid = host.line(gids + index);
    if (gid.empty() || empty_gid(gid)) continue;
    const std::string type = host.line(types + index);
    if (!type.empty()) ++port->gid_types[plain_type(type)];
    if (!gid.starts_with("fe80")) ++port->routed_gids;
    std::string interface = host.line(networks + index);
    if (interface.empty() && iwarp) interface = interface_of_mac(host, gid);
    if (!interface.empty()) interfaces.insert(interface);
  }
  port->interfaces.assign(interfaces.begin(), interfaces.end());
}

/// Interfaces of an adapter. Those of one with several ports say which is theirs, counted from 0.
std::vector<std::string> interfaces_below(const HostView& host, const std::string& device,
                                          const std::string& number) {
  const std::string at = std::string(kDevices) + device;
  std::vector<std::string> all = host.names(at + "/device/net");
  const auto port = number_of(number);
  if (host.names(at + "/ports").size() < 2 || !port) return all;
  std::vector<std::string> own;
  bool counted = false;  // a driver that does not count says 0 for all
  for (const std::string& interface : all) {
    const auto said = number_of(host.line("/sys/class/net/" + interface + "/dev_port")).value_or(0);
    counted |= said != 0;
    if (said + 1 == *port) own.push_back(interface);
  }
  return counted ? own : all;
}

/// IPoIB interfaces of other partitions are below that of the port, and not below the adapter.
void add_partitions(const HostView& host, std::vector<std::string>* interfaces) {
  const std::vector<std::string> parents = *interfaces;
  for (const std::string& interface : host.names("/sys/class/net")) {
    const std::string parent = host.line("/sys/class/net/" + interface + "/parent");
    if (!parent.empty() && std::find(parents.begin(), parents.end(), parent) != parents.end()) {
      interfaces->push_back(interface);
    }
  }
  std::sort(interfaces->begin(), interfaces->end());
}

SysPort read_port(const HostView& host, const SysDevice& device, const std::string& number) {
  const std::string at = std::string(kDevices) + device.name + "/ports/" + number;
  SysPort port;
  port.number = number;
  port.state = behind_colon(host.line(at + "/state"));
  port.physical_state = behind_colon(host.line(at + "/phys_state"));
  port.link_layer = host.line(at + "/link_layer");
  port.rate = host.line(at + "/rate");
  read_gids(host, at, device.iwarp, &port);
  port.default_gid_type = plain_type(host.line("/sys/kernel/config/rdma_cm/" + device.name +
                                               "/ports/" + number + "/default_roce_mode"));
  if (!port.interfaces.empty()) return port;
  // Without an address there is no GID that would name it. rxe says its parent, adapters have it
  // below the device.
  if (std::string parent = host.line(std::string(kDevices) + device.name + "/parent");
      !parent.empty()) {
    port.interfaces = {parent};
  } else {
    port.interfaces = interfaces_below(host, device.name, number);
    if (port.link_layer == "InfiniBand") add_partitions(host, &port.interfaces);
  }
  return port;
}

std::string driver_of(const HostView& host, const std::string& at, const std::string& name) {
  if (std::string driver = host.link_name(at + "/device/driver"); !driver.empty()) return driver;
  const std::string about = host.line(at + "/node_desc");
  if (host.exists(at + "/parent") || about == "rxe" || name.starts_with("rxe")) return "rxe";
  if (about == "Software iWARP stack" || name.starts_with("siw")) return "siw";
  return "";
}

}  // namespace

std::string SysPort::connects_with() const {
  if (!default_gid_type.empty()) return default_gid_type;
  // What rdma_cm takes by itself.
  if (gid_types.contains("RoCE v2")) return "RoCE v2";
  return gid_types.contains("RoCE v1") ? "RoCE v1" : "";
}

SysDevice::Kind SysDevice::kind(const SysPort& port) const {
  if (iwarp) return Kind::kIwarp;
  if (port.link_layer == "InfiniBand") return Kind::kInfiniBand;
  return port.link_layer == "Ethernet" ? Kind::kRoce : Kind::kOther;
}

const char* kind_name(SysDevice::Kind kind) {
  switch (kind) {
    case SysDevice::Kind::kInfiniBand:
      return "InfiniBand";
    case SysDevice::Kind::kRoce:
      return "RoCE";
    case SysDevice::Kind::kIwarp:
      return "iWARP";
    case SysDevice::Kind::kOther:
      break;
  }
  return "unknown fabric";
}

std::vector<SysDevice> sys_devices(const HostView& host) {
  std::vector<SysDevice> devices;
  for (const std::string& name : host.names("/sys/class/infiniband")) {
    const std::string at = std::string(kDevices) + name;
    SysDevice device;
    device.name = name;
    device.driver = driver_of(host, at, name);
    device.software = device.driver == "rxe" || device.driver == "siw";
    // "4: RNIC"; all others are some kind of channel adapter.
    device.iwarp = host.line(at + "/node_type").starts_with("4");
    const std::string node = host.line(at + "/device/numa_node");
    std::from_chars(node.data(), node.data() + node.size(), device.numa_node);
    for (const std::string& number : host.names(at + "/ports"))
      device.ports.push_back(read_port(host, device, number));
    devices.push_back(std::move(device));
  }
  return devices;
}

DeviceAt device_at(const std::vector<SysDevice>& devices, const std::string& interface) {
  DeviceAt found;
  for (const SysDevice& device : devices) {
    for (const SysPort& port : device.ports) {
      const auto& all = port.interfaces;
      if (std::find(all.begin(), all.end(), interface) == all.end()) continue;
      if (found.name.empty() || (!found.active && port.active())) {
        found = {device.name, port.active()};
      }
    }
  }
  return found;
}

std::string port_name(const SysDevice& device, const SysPort& port) {
  return device.name + " port " + port.number;
}

bool interface_up(const HostView& host, const std::string& interface) {
  const std::string flags = host.line("/sys/class/net/" + interface + "/flags");
  unsigned value = 0;
  if (flags.starts_with("0x")) {
    std::from_chars(flags.data() + 2, flags.data() + flags.size(), value, 16);
  }
  return (value & kInterfaceUp) != 0;
}

unsigned interface_mtu(const HostView& host, const std::string& interface) {
  return static_cast<unsigned>(
      number_of(host.line("/sys/class/net/" + interface + "/mtu")).value_or(0));
}

std::string likely_interface(const HostView& host) {
  for (const std::string& line : lines_of(host.text("/proc/net/route"))) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() > 1 && words[1] == "00000000") return words[0];
  }
  for (const std::string& interface : host.names("/sys/class/net")) {
    if (interface != "lo" && interface_up(host, interface)) return interface;
  }
  return "eth0";
}

}  // namespace nfsrdma::doctor
