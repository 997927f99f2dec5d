// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of a host as sysfs shows them, which needs neither verbs in user space nor
// privilege.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/doctor/host_view.h"

namespace nfsrdma::doctor {

struct SysPort {
  std::string number;
  std::string state;                          // "ACTIVE", "INIT", "DOWN", ...
  std::string physical_state;                 // "LinkUp", "Disabled", "Polling", ...
  std::string link_layer;                     // "InfiniBand", "Ethernet"
  std::string rate;                           // "100 Gb/sec (4X EDR)"
  std::map<std::string, unsigned> gid_types;  // of the GIDs that are set: "RoCE v2" -> 2
  unsigned routed_gids = 0;             // not link-local: made from an address of the interface
  std::vector<std::string> interfaces;  // behind the GIDs, sorted
  std::string default_gid_type;         // of rdma_cm, where configfs is there

  bool active() const { return state.starts_with("ACTIVE"); }
  /// Of a RoCE port: what connections are made with, "RoCE v2", "RoCE v1" or "".
  std::string connects_with() const;
};

struct SysDevice {
  enum class Kind { kInfiniBand, kRoce, kIwarp, kOther };

  std::string name;
  std::string driver;  // "mlx5_core", "rxe", "siw", ""
  bool software = false;
  bool iwarp = false;
  int numa_node = -1;
  std::vector<SysPort> ports;

  Kind kind(const SysPort& port) const;
};
const char* kind_name(SysDevice::Kind kind);

std::vector<SysDevice> sys_devices(const HostView& host);

struct DeviceAt {
  std::string name;  // "" when there is none
  bool active = false;
};
/// The device with a port on a network interface, one with an active port before others.
DeviceAt device_at(const std::vector<SysDevice>& devices, const std::string& interface);

/// "mlx5_0 port 1".
std::string port_name(const SysDevice& device, const SysPort& port);

/// A network interface that a software device could be put on: that of the default route, else the
/// first that is up; "eth0" when there is none.
std::string likely_interface(const HostView& host);

/// The state of a network interface: up, as far as the administrator goes.
bool interface_up(const HostView& host, const std::string& interface);
unsigned interface_mtu(const HostView& host, const std::string& interface);

}  // namespace nfsrdma::doctor
