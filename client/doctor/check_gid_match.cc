// SPDX-License-Identifier: Apache-2.0
// Do the GIDs of this end's RoCE ports go with those of the other end? From here one sees this end,
// whether the route crosses a router, and, where it was given, the report of the other end.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "client/doctor/rdma_sysfs.h"
#include "client/doctor/server_visit.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma::doctor {

namespace {

struct Roce {
  std::string at;  // "rxe0 port 1"
  bool v1 = false, v2 = false;
  std::string connects_with{};           // "RoCE v1", "RoCE v2"; "" unknown
  std::vector<std::string> addresses{};  // of its interfaces, where they are known
};

std::vector<Roce> ports_here(const ServerVisit& visit) {
  std::vector<Roce> ports;
  for (const SysDevice& device : sys_devices(visit.host)) {
    if (!visit.rdma_device.empty() && device.name != visit.rdma_device) continue;
    for (const SysPort& port : device.ports) {
      if (device.kind(port) != SysDevice::Kind::kRoce || !port.active()) continue;
      ports.push_back({port_name(device, port), port.gid_types.contains("RoCE v1"),
                       port.gid_types.contains("RoCE v2"), port.connects_with()});
    }
  }
  return ports;
}

/// Of the document that `nfs-rdma doctor --json` makes.
std::vector<Roce> ports_there(const JsonValue& report) {
  std::vector<Roce> ports;
  for (const JsonValue& port : report["roce_ports"].items()) {
    Roce there{port["port"].text()};
    for (const JsonValue& type : port["gid_types"].items()) {
      there.v1 |= type.text() == "RoCE v1";
      there.v2 |= type.text() == "RoCE v2";
    }
    there.connects_with = port["default_roce_mode"].text();
    for (const JsonValue& address : port["addresses"].items())
      there.addresses.push_back(address.text());
    ports.push_back(std::move(there));
  }
  return ports;
}

/// Those with an address that the server is called by, where any has; else all.
std::vector<Roce> in_question(const ServerVisit& visit, std::vector<Roce> there) {
  const auto called = [&](const std::string& address) {
    const auto& all = visit.settings.addresses;
    return std::any_of(all.begin(), all.end(),
                       [&](const SocketAddress& one) { return one.host_text() == address; });
  };
  std::vector<Roce> chosen;
  std::copy_if(there.begin(), there.end(), std::back_inserter(chosen), [&](const Roce& port) {
    return std::any_of(port.addresses.begin(), port.addresses.end(), called);
  });
  return chosen.empty() ? there : chosen;
}

const char* versions(const Roce& port) {
  if (port.v1 && port.v2) return "RoCE v1 and v2";
  if (port.v2) return "RoCE v2";
  return port.v1 ? "RoCE v1" : "no RoCE GIDs";
}

bool in_common(const Roce& here, const Roce& there) {
  return (here.v2 && there.v2) || (here.v1 && there.v1);
}

Remedy same_type() {
  return {
      "give both ends a GID of the same type: an IP address on the interface, and on the end "
      "that prefers v1:",
      "modprobe rdma_cm && mkdir -p /sys/kernel/config/rdma_cm/DEVICE",
      "echo 'RoCE v2' > /sys/kernel/config/rdma_cm/DEVICE/ports/1/default_roce_mode"};
}

/// `without`: the verdict when they have nothing in common.
void compare(const Roce& here, const Roce& there, Verdict without, CheckResult* result) {
  const std::string seen = fmt::format("{} here has {}, {} there {}", here.at, versions(here),
                                       there.at, versions(there));
  if (!in_common(here, there)) {
    result->add(without, seen + ": nothing in common", same_type());
  } else if (!here.connects_with.empty() && !there.connects_with.empty() &&
             here.connects_with != there.connects_with) {
    result->warning(fmt::format("{}; connections are made with {} here and with {} there "
                                "(default_roce_mode)",
                                seen, here.connects_with, there.connects_with),
                    same_type());
  } else {
    result->ok(seen);
  }
}

/// One port that it can talk to is enough for a port of this host.
void compare_with_all(const Roce& here, const std::vector<Roce>& there, CheckResult* result) {
  const bool any = std::any_of(there.begin(), there.end(),
                               [&](const Roce& theirs) { return in_common(here, theirs); });
  for (const Roce& theirs : there)
    compare(here, theirs, any ? Verdict::kNote : Verdict::kProblem, result);
}

}  // namespace

CheckResult check_gid_match(ServerVisit& visit) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  find_route(visit);
  const std::vector<Roce> here = ports_here(visit);
  if (here.empty()) return result.skipped("no active RoCE port leads there");
  for (const Roce& port : here) {
    if (visit.route && visit.route->by_gateway && !port.v2) {
      result.problem(fmt::format("{} has {} only, and a router is on the way: RoCE v1 does not "
                                 "cross it",
                                 port.at, versions(port)),
                     {"use RoCE v2 at both ends, or an address in the same network"});
    }
  }
  if (visit.other_end.empty()) {
    for (const Roce& port : here)
      result.ok(fmt::format("{} here has {}", port.at, versions(port)));
    return result.note("what the other end has cannot be seen from here",
                       {"there: nfs-rdma doctor --json > there.json",
                        "here:  " + doctor_command(visit, "--other-end there.json")});
  }
  const std::optional<JsonValue> report = JsonValue::parse(visit.other_end);
  const std::vector<Roce> there =
      report ? in_question(visit, ports_there(*report)) : std::vector<Roce>();
  if (there.empty()) {
    return result.problem("the other end reports no active RoCE port",
                          {"there: nfs-rdma doctor    # says what its devices lack"});
  }
  for (const Roce& mine : here)
    compare_with_all(mine, there, &result);
  return result;
}

}  // namespace nfsrdma::doctor
