// SPDX-License-Identifier: Apache-2.0
// The way to a server: its name, the route, its TCP ports.
#include <fmt/format.h>

#include <algorithm>

#include "client/doctor/rdma_sysfs.h"
#include "client/doctor/server_visit.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::uint16_t kRpcbindPort = 111;
constexpr std::size_t kMostReversed = 4;  // addresses whose names are asked for

/// rxe and siw over a VLAN, bridge or bond sit on the interface below.
void look_at_device(const ServerVisit& visit, const std::string& interface, CheckResult* result) {
  const std::vector<SysDevice> devices = sys_devices(visit.host);
  const DeviceAt device = device_at(devices, interface);
  if (!device.name.empty()) {
    device.active ? result->ok(fmt::format("RDMA device {} is on {}", device.name, interface))
                  : result->warning(fmt::format("RDMA device {} is on {}, without an active port",
                                                device.name, interface),
                                    {fmt::format("ip link set {} up", interface)});
  } else if (interface == "lo") {
    result->note("the server is on this host, by lo, on which no RDMA device is");
  } else if (devices.empty()) {
    result->note("no RDMA device: the iwarp engine of nfs-rdma goes over " + interface);
  } else {
    std::vector<std::string> names;
    for (const SysDevice& other : devices) {
      for (const SysPort& port : other.ports)
        names.push_back(other.name + " on " +
                        (port.interfaces.empty() ? "no interface" : joined(port.interfaces)));
    }
    result->warning(
        fmt::format(
            "no RDMA device belongs to {}, by which the server is reached (this host has {})",
            interface, joined(names)),
        {"use the address that the server has in the network of the RDMA device",
         fmt::format("ip route get {}    # says which interface is taken",
                     visit.settings.addresses.front().host_text())});
  }
}

/// `closed`: the verdict when it is not open.
void tell_reached(const char* what, std::uint16_t port, const Reached& reached, Verdict closed,
                  CheckResult* result) {
  const std::string seen = fmt::format("TCP port {} ({})", port, what);
  switch (reached.how) {
    case Reached::How::kOpen:
      result->ok(seen + ": open");
      return;
    case Reached::How::kRefused:
      result->add(closed,
                  seen +
                      ": refused: the host is there, and nobody listens on that port or a firewall "
                      "rejects it",
                  closed == Verdict::kNote
                      ? Remedy{}
                      : Remedy{"on the server: systemctl status nfs-rdma; nfs-rdma doctor",
                               "or give the port that it has: nfs-rdma doctor HOST:PORT"});
      return;
    case Reached::How::kTimedOut:
      result->add(closed, seen + ": no answer at all: a firewall drops it, or the host is down",
                  closed == Verdict::kNote
                      ? Remedy{}
                      : Remedy{"on the server: nfs-rdma doctor    # looks at its firewall",
                               fmt::format("firewall-cmd --permanent --add-port={}/tcp && "
                                           "firewall-cmd --reload",
                                           port)});
      return;
    case Reached::How::kUnreachable:
      result->add(closed, fmt::format("{}: {}", seen, reached.error),
                  {fmt::format("a firewall rejects it, or there is no way: ip route get ADDRESS")});
      return;
  }
}

/// The best of all addresses, as a mount would find it; those that are worse are told.
Reached reach_any(ServerVisit& visit, std::uint16_t port, CheckResult* result) {
  std::optional<Reached> best;
  std::vector<std::string> worse;
  for (SocketAddress address : visit.settings.addresses) {
    address.set_port(port);
    Reached reached = visit.network.reach(address, visit.patience);
    if (reached.how != Reached::How::kOpen) worse.push_back(address.host_text());
    if (!best || reached.how < best->how) best = std::move(reached);
    if (best->how == Reached::How::kOpen) break;
  }
  if (best->how == Reached::How::kOpen && !worse.empty()) {
    result->note(
        fmt::format("TCP port {} is not open at {}, which is tried first", port, joined(worse)));
  }
  return *best;
}

}  // namespace

bool ServerVisit::wants(TransportKind kind) const {
  if (kind == TransportKind::kTcp) return settings.proto != ProtoChoice::kRdma;
  if (settings.proto == ProtoChoice::kTcp) return false;
  return settings.fabric == FabricChoice::kAuto ||
         (settings.fabric == FabricChoice::kVerbs) == (kind == TransportKind::kVerbs);
}

CheckResult check_dns(ServerVisit& visit) {
  CheckResult result;
  const MountSettings& settings = visit.settings;
  if (look_up(visit); settings.addresses.empty()) {
    tell_lookup(visit, &result);
    return result;
  }
  std::vector<std::string> texts;
  for (const SocketAddress& address : settings.addresses)
    texts.push_back(address.host_text());
  const bool numeric = texts.size() == 1 && texts.front() == settings.host;
  if (!numeric) result.ok(fmt::format("{}: {}", settings.host, joined(texts)));
  for (std::size_t i = 0; i < settings.addresses.size() && i < kMostReversed; ++i) {
    const std::string name = visit.network.reverse(settings.addresses[i], visit.patience);
    if (name.empty()) {
      result.note(texts[i] + " has no name: exports by host name or with Kerberos need one");
    } else {
      result.ok(fmt::format("{}: {}", texts[i], name));
    }
  }
  return result;
}

CheckResult check_route(ServerVisit& visit) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  find_route(visit);
  bool looked = false;
  for (const SocketAddress& address : visit.settings.addresses) {
    const std::optional<Route> route = visit.network.route(address);
    if (!route) {
      result.add(visit.settings.addresses.size() == 1 ? Verdict::kProblem : Verdict::kWarning,
                 "no route to " + address.host_text(),
                 {"ip route    # and add one, or the address of this host in that network"});
      continue;
    }
    const unsigned mtu = interface_mtu(visit.host, route->interface);
    result.ok(fmt::format("{} by {}{}, from {}{}", address.host_text(), route->interface,
                          route->by_gateway ? ", through a gateway" : "", route->local.host_text(),
                          mtu == 0 ? "" : fmt::format(", MTU {}", mtu)));
    if (!looked) look_at_device(visit, route->interface, &result);
    looked = true;
  }
  return result;
}

CheckResult check_reach(ServerVisit& visit) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  const bool rdma = visit.wants(TransportKind::kIwarp);
  const bool tcp = visit.wants(TransportKind::kTcp);
  const auto reach = [&](std::uint16_t port) { return reach_any(visit, port, &result); };
  const Verdict bad = visit.transport_is_judged ? Verdict::kWarning : Verdict::kProblem;
  if (rdma) {
    // Not with a bare connection: one that is closed without a word ends siw's listener
    // (Linux 6.1). Where iWARP's own got no answer there is none to be ended.
    Reached reached = null_of(visit, TransportKind::kIwarp).reached;
    if (reached.how == Reached::How::kTimedOut) reached = reach(visit.settings.rdma_port);
    // Nobody listens with TCP where a server has RoCE or InfiniBand alone.
    const bool other = null_of(visit, TransportKind::kVerbs).answered;
    tell_reached("iWARP", visit.settings.rdma_port, reached, other ? Verdict::kNote : bad, &result);
  }
  if (tcp) {
    tell_reached("NFS over TCP", visit.settings.tcp_port, reach(visit.settings.tcp_port),
                 rdma ? Verdict::kNote : bad, &result);
  }
  tell_reached("rpcbind", kRpcbindPort, reach(kRpcbindPort), Verdict::kNote, &result);
  return result;
}

}  // namespace nfsrdma::doctor
