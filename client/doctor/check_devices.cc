// SPDX-License-Identifier: Apache-2.0
// RDMA devices, their ports, and what connections can be made over them.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "client/doctor/host_checks.h"
#include "client/doctor/rdma_sysfs.h"

namespace nfsrdma::doctor {

namespace {

using Kind = SysDevice::Kind;

constexpr const char* kNoDevice = "there is no RDMA device on this host";

/// The RDMA driver that belongs to the network driver of an adapter.
struct RdmaDriver {
  const char* network;
  const char* rdma;
  bool always;  // every adapter of this driver can do RDMA
};
constexpr RdmaDriver kDrivers[] = {
    {"mlx5_core", "mlx5_ib", true},  {"mlx4_core", "mlx4_ib", true}, {"cxgb4", "iw_cxgb4", true},
    {"ib_mthca", "ib_mthca", true},  {"ice", "irdma", false},        {"bnxt_en", "bnxt_re", false},
    {"qede", "qedr", false},         {"mana", "mana_ib", false},     {"i40e", "irdma", false},
    {"hns3", "hns_roce_hw_v2", true}};

/// "0000:01:00" of "0000:01:00.1": the card, of which .1 is a function.
std::string_view card_of(std::string_view slot) {
  return slot.substr(0, slot.rfind('.'));
}

/// One RDMA device may stand for several functions of a card (RoCE over a bond, Chelsio's functions
/// 0 to 3): with the driver loaded, nothing is missing.
bool served_by_another_function(const HostView& host, const std::vector<std::string>& taken,
                                const std::string& slot, const RdmaDriver& driver) {
  return host.exists(std::string("/sys/module/") + driver.rdma) &&
         std::any_of(taken.begin(), taken.end(),
                     [&](const std::string& other) { return card_of(other) == card_of(slot); });
}

/// Adapters on the PCI bus that could do RDMA and have no RDMA device.
void look_for_idle_adapters(const HostView& host, CheckResult* result) {
  std::vector<std::string> taken;
  for (const std::string& device : host.names("/sys/class/infiniband"))
    taken.push_back(host.link_name("/sys/class/infiniband/" + device + "/device"));
  for (const std::string& slot : host.names("/sys/bus/pci/devices")) {
    if (std::find(taken.begin(), taken.end(), slot) != taken.end()) continue;
    const std::string at = "/sys/bus/pci/devices/" + slot;
    const std::string driver = host.link_name(at + "/driver");
    if (host.line(at + "/class").starts_with("0x0207") && driver.empty()) {
      result->warning(fmt::format("the InfiniBand adapter in PCI slot {} has no driver", slot),
                      {fmt::format("lspci -nnk -s {}", slot),
                       "and load the driver that it names (modprobe mlx5_ib for most)"});
      continue;
    }
    for (const RdmaDriver& known : kDrivers) {
      if (driver != known.network) continue;
      if (served_by_another_function(host, taken, slot, known)) continue;
      const Remedy remedy = {fmt::format("modprobe {}", known.rdma)};
      const std::string seen = fmt::format(
          "the adapter in PCI slot {} ({}) has no RDMA device; "
          "its RDMA driver is {}",
          slot, driver, known.rdma);
      known.always ? result->warning(seen, remedy) : result->note(seen, remedy);
    }
  }
}

/// Device nodes that ordinary users may not open. The error of opening a device does not always
/// tell: rdma-core looks for another node then, and reports that there is none.
std::vector<std::string> closed_nodes(const HostView& host) {
  constexpr mode_t kForAll = S_IROTH | S_IWOTH;
  std::vector<std::string> closed;
  for (const std::string& node : host.names("/dev/infiniband")) {
    if (!node.starts_with("uverbs") && node != "rdma_cm") continue;
    std::string path = "/dev/infiniband/" + node;
    struct stat st {};
    if (::stat(host.path(path).c_str(), &st) == 0 && (st.st_mode & kForAll) != kForAll) {
      closed.push_back(std::move(path));
    }
  }
  return closed;
}

/// Devices that the kernel shows to user space, which has no driver of its own for them.
std::vector<SysDevice> without_provider(const HostView& host, const std::vector<SysDevice>& devices,
                                        const VerbsHostReport& verbs) {
  std::vector<std::string> offered;
  for (const std::string& node : host.names("/sys/class/infiniband_verbs"))
    offered.push_back(host.line("/sys/class/infiniband_verbs/" + node + "/ibdev"));
  std::vector<SysDevice> found;
  for (const SysDevice& device : devices) {
    const auto is_it = [&](const DeviceReport& one) { return one.name == device.name; };
    if (std::find(offered.begin(), offered.end(), device.name) != offered.end() &&
        std::none_of(verbs.devices.begin(), verbs.devices.end(), is_it)) {
      found.push_back(device);
    }
  }
  return found;
}

void look_at_user_space(const HostView& host, const std::vector<SysDevice>& devices,
                        const RdmaHostReport& report, CheckResult* result) {
  const std::vector<SysDevice> left_out = without_provider(host, devices, report.verbs);
  for (const SysDevice& device : left_out) {
    result->problem(
        fmt::format("{}: rdma-core on this host has no driver for it{}", device.name,
                    device.driver.empty() ? "" : " (" + device.driver + " in the kernel)"),
        {"apt install ibverbs-providers    # dnf install libibverbs",
         "if that is there, it is too old for the device: take a newer one or the vendor's"});
  }
  // With no device at all for programs, the reason is told where it is known.
  if (!report.verbs.problem.empty() && (left_out.empty() || !report.verbs.devices.empty())) {
    result->problem(report.verbs.problem, report.verbs.remedies);
  }
  for (const DeviceReport& device : report.verbs.devices) {
    if (!device.problem.empty()) {
      result->problem(device.name + " " + device.problem,
                      {"udevadm trigger --subsystem-match=infiniband_verbs"});
    }
  }
  const std::vector<std::string> closed = closed_nodes(host);
  if (closed.empty()) return;
  const std::string nodes = joined(closed, " ");
  result->add(host.privileged ? Verdict::kWarning : Verdict::kProblem,
              "ordinary users may not open " + nodes,
              {fmt::format("chmod 0666 {}    # rdma-core's udev rules keep it so", nodes)});
}

Remedy port_remedy(const SysDevice& device, const SysPort& port) {
  Remedy remedy;
  // IPoIB is put upon a link; it makes none.
  if (device.kind(port) != Kind::kInfiniBand) {
    for (const std::string& interface : port.interfaces)
      remedy.push_back(fmt::format("ip link set {} up", interface));
  }
  if (port.physical_state == "Disabled") {
    remedy.push_back(std::string(remedy.empty() ? "" : "if that does not help, ") +
                     "the link is switched off at the other end or in the firmware");
  } else if (!device.software) {
    remedy.push_back("look at the cable and at the port of the switch");
  }
  return remedy;
}

Remedy subnet_manager(const SysDevice& device, const SysPort& port) {
  return {
      "run a subnet manager on one machine of the fabric, or switch it on in an InfiniBand switch:",
      "apt install opensm    # dnf install opensm",
      // Its unit does nothing, and says so nowhere, where the module is not loaded.
      "modprobe ib_umad && systemctl enable --now opensm",
      fmt::format("sminfo -C {} -P {}    # says which subnet manager the port sees", device.name,
                  port.number)};
}

void look_at_port(const SysDevice& device, const SysPort& port, bool another_is_active,
                  CheckResult* result) {
  const std::string name = port_name(device, port);
  if (port.active()) {
    result->ok(fmt::format("{}: ACTIVE", name));
  } else if ((port.state == "INIT" || port.state == "ARMED") && port.link_layer == "InfiniBand") {
    result->problem(fmt::format("{}: {}: the link is up, and no subnet manager has configured it",
                                name, port.state),
                    subnet_manager(device, port));
  } else {
    const std::string seen =
        fmt::format("{}: {}{}", name, port.state.empty() ? "no state" : port.state,
                    port.physical_state.empty() ? "" : " (" + port.physical_state + ")");
    result->add(another_is_active ? Verdict::kWarning : Verdict::kProblem, seen,
                port_remedy(device, port));
  }
}

void look_at_layer(const HostView& host, const SysDevice& device, const SysPort& port,
                   CheckResult* result) {
  const Kind kind = device.kind(port);
  const std::string seen =
      fmt::format("{}: {}{}{}{}", port_name(device, port), kind_name(kind),
                  device.driver.empty() ? "" : " (" + device.driver + ")",
                  port.rate.empty() || device.software ? "" : ", " + port.rate,
                  port.interfaces.empty() ? "" : ", on " + joined(port.interfaces));
  if (kind == Kind::kOther) {
    result->warning(seen + fmt::format(": link layer '{}'", port.link_layer),
                    {fmt::format("rdma link show {}/{}", device.name, port.number)});
  } else if (port.active() && port.interfaces.empty()) {
    // The connection manager finds devices by IP addresses.
    result->problem(seen + ", without a network interface: no IP address leads to it",
                    kind == Kind::kInfiniBand
                        ? Remedy{"modprobe ib_ipoib",
                                 "ip link set ib0 up && ip address add ADDRESS/PREFIX dev ib0"}
                        : Remedy{"ip address add ADDRESS/PREFIX dev INTERFACE    # the adapter's"});
  } else {
    const auto up = [&](const std::string& i) { return interface_up(host, i); };
    if (port.interfaces.empty() ||
        std::any_of(port.interfaces.begin(), port.interfaces.end(), up)) {
      result->ok(seen);
    } else {
      result->warning(seen + ", which is down",
                      {fmt::format("ip link set {} up", port.interfaces.front())});
    }
  }
}

std::string types_text(const SysPort& port) {
  std::vector<std::string> types;
  for (const auto& [type, count] : port.gid_types)
    types.push_back(fmt::format("{} {}", count, type));
  return types.empty() ? "no GIDs" : joined(types);
}

void look_at_gids(const SysDevice& device, const SysPort& port, CheckResult* result) {
  const std::string seen = fmt::format("{}: {}", port_name(device, port), types_text(port));
  const std::string interface = port.interfaces.empty() ? "INTERFACE" : port.interfaces.front();
  const Remedy give_address = {fmt::format("ip address add ADDRESS/PREFIX dev {}", interface)};
  if (port.gid_types.empty()) {
    result->problem(seen + ": nothing can be connected over it", give_address);
  } else if (!port.gid_types.contains("RoCE v2")) {
    result->warning(seen + ": RoCE v1 does not cross routers, and most peers use v2 only",
                    {"use an adapter, driver or firmware that can RoCE v2, or make the other end "
                     "use v1, there:",
                     "modprobe rdma_cm && mkdir -p /sys/kernel/config/rdma_cm/DEVICE",
                     "echo 'IB/RoCE v1' > "
                     "/sys/kernel/config/rdma_cm/DEVICE/ports/1/default_roce_mode"});
  } else if (port.default_gid_type == "RoCE v1") {
    result->warning(seen + "; connections are made with v1 (default_roce_mode)",
                    {fmt::format("echo 'RoCE v2' > "
                                 "/sys/kernel/config/rdma_cm/{}/ports/{}/default_roce_mode",
                                 device.name, port.number)});
  } else if (port.routed_gids == 0) {
    result->warning(seen + ", link-local ones only: the interface has no IP address", give_address);
  } else {
    result->ok(seen);
  }
}

/// Would modprobe find it?
bool module_there(const HostView& host, const std::string& folder, const std::string& module) {
  const std::string release = "/lib/modules/" + host.kernel_release;
  const std::string base = release + "/kernel/drivers/infiniband/sw/" + folder + "/" + module;
  for (const char* ending : {".ko", ".ko.xz", ".ko.zst", ".ko.gz"}) {
    if (host.exists(base + ending)) return true;
  }
  const std::string name = "/" + module + ".ko";
  return host.text(release + "/modules.builtin").find(name) != std::string::npos ||
         host.text(release + "/modules.dep").find(name) != std::string::npos;
}

struct SoftwareDriver {
  const char* type;  // of `rdma link add`
  const char* module;
  const char* folder;  // of the kernel's tree
  const char* fabric;
};
constexpr SoftwareDriver kSoftware[] = {{"siw", "siw", "siw", "iWARP"},
                                        {"rxe", "rdma_rxe", "rxe", "RoCE"}};

void look_at_software(const HostView& host, const std::vector<SysDevice>& devices,
                      const SoftwareDriver& driver, CheckResult* result) {
  std::vector<std::string> made;
  for (const SysDevice& device : devices) {
    if (device.driver == driver.type) made.push_back(device.name);
  }
  const std::string add = fmt::format("rdma link add {}0 type {} netdev {}", driver.type,
                                      driver.type, likely_interface(host));
  if (!made.empty()) {
    result->ok(fmt::format("{} ({} in software): {}", driver.type, driver.fabric, joined(made)));
  } else if (host.exists(std::string("/sys/module/") + driver.module)) {
    result->warning(fmt::format("{} is loaded, and no device was made with it", driver.module),
                    {add});
  } else if (module_there(host, driver.folder, driver.module)) {
    result->note(
        fmt::format("{} ({} in software) is there and not in use", driver.module, driver.fabric),
        {fmt::format("modprobe {} && {}", driver.module, add)});
  } else if (!host.exists("/lib/modules/" + host.kernel_release)) {
    result->skipped(fmt::format("{}: there is no /lib/modules/{}, as in containers", driver.module,
                                host.kernel_release));
  } else {
    result->note(
        fmt::format("this kernel has no {} ({} in software); the iwarp engine of nfs-rdma "
                    "needs none",
                    driver.module, driver.fabric));
  }
}

}  // namespace

CheckResult check_devices(const HostView& host) {
  CheckResult result;
  const std::vector<SysDevice> devices = sys_devices(host);
  for (const SysDevice& device : devices) {
    std::vector<std::string> ports;
    for (const SysPort& port : device.ports)
      ports.emplace_back(kind_name(device.kind(port)));
    result.ok(fmt::format("{}: {}{}", device.name,
                          device.driver.empty() ? "" : device.driver + ", ",
                          ports.empty() ? "no ports" : joined(ports)));
  }
  if (devices.empty()) {
    result.note(
        std::string(kNoDevice) +
        "; connections go over the iwarp engine of nfs-rdma, which needs none, or over TCP");
  } else {
    look_at_user_space(host, devices, host.rdma_host(), &result);
  }
  look_for_idle_adapters(host, &result);
  return result;
}

CheckResult check_ports(const HostView& host) {
  CheckResult result;
  const std::vector<SysDevice> devices = sys_devices(host);
  bool any_active = false;
  for (const SysDevice& device : devices) {
    for (const SysPort& port : device.ports)
      any_active |= port.active();
  }
  for (const SysDevice& device : devices) {
    for (const SysPort& port : device.ports)
      look_at_port(device, port, any_active, &result);
  }
  if (devices.empty()) result.skipped(kNoDevice);
  return result;
}

CheckResult check_link_layer(const HostView& host) {
  CheckResult result;
  for (const SysDevice& device : sys_devices(host)) {
    for (const SysPort& port : device.ports)
      look_at_layer(host, device, port, &result);
  }
  if (result.findings.empty()) result.skipped(kNoDevice);
  return result;
}

CheckResult check_gids(const HostView& host) {
  CheckResult result;
  for (const SysDevice& device : sys_devices(host)) {
    for (const SysPort& port : device.ports) {
      if (device.kind(port) == Kind::kRoce && port.active()) look_at_gids(device, port, &result);
    }
  }
  if (result.findings.empty()) result.skipped("no active RoCE port on this host");
  return result;
}

CheckResult check_software_devices(const HostView& host) {
  CheckResult result;
  const std::vector<SysDevice> devices = sys_devices(host);
  const auto hardware = [](const SysDevice& device) { return !device.software; };
  const bool any_hardware = std::any_of(devices.begin(), devices.end(), hardware);
  const bool any_software = !std::all_of(devices.begin(), devices.end(), hardware);
  if (any_hardware && !any_software) {
    return result.skipped("this host has RDMA adapters; software devices would only slow it down");
  }
  for (const SoftwareDriver& driver : kSoftware)
    look_at_software(host, devices, driver, &result);
  if (!host.exists("/usr/sbin/rdma") && host.program("rdma").empty()) {
    result.note("the program rdma, which makes software devices, is not installed",
                {"apt install iproute2    # dnf install iproute"});
  }
  return result;
}

}  // namespace nfsrdma::doctor
