// SPDX-License-Identifier: Apache-2.0
// The addresses of the server and the way to them, found by whichever check wants them first.
#include <fmt/format.h>

#include <algorithm>

#include "client/doctor/rdma_sysfs.h"
#include "client/doctor/server_visit.h"

namespace nfsrdma::doctor {

const Lookup& look_up(ServerVisit& visit) {
  if (!visit.lookup) {
    visit.lookup = visit.network.resolve(visit.settings.host, visit.patience);
    if (visit.lookup->how == Lookup::How::kFound) {
      visit.settings.addresses = visit.lookup->addresses;
    }
  }
  return *visit.lookup;
}

void tell_lookup(ServerVisit& visit, CheckResult* result) {
  const std::string& host = visit.settings.host;
  const Lookup& lookup = look_up(visit);
  const bool silent = lookup.how == Lookup::How::kTimedOut;
  visit.lookup_is_told = true;
  result->problem(
      silent ? fmt::format("'{}': the name service does not answer", host)
             : fmt::format("'{}': {}", host, lookup.error.empty() ? "no such host" : lookup.error),
      {"getent ahosts " + shell_quoted(host),
       silent ? "look at the servers in /etc/resolv.conf: resolvectl status"
              : "correct the name, or add it to DNS or /etc/hosts"});
}

bool has_address(ServerVisit& visit, CheckResult* result) {
  static_cast<void>(look_up(visit));
  if (!visit.settings.addresses.empty()) return true;
  if (visit.lookup_is_told) {
    result->skipped("no address of the server is known");
  } else {
    tell_lookup(visit, result);
  }
  return false;
}

void find_route(ServerVisit& visit) {
  if (visit.route_is_known) return;
  visit.route_is_known = true;
  for (const SocketAddress& address : visit.settings.addresses) {
    visit.route = visit.network.route(address);
    if (!visit.route) continue;
    visit.rdma_device = device_at(sys_devices(visit.host), visit.route->interface).name;
    return;
  }
}

std::string doctor_command(const ServerVisit& visit, const std::string& options) {
  const MountSettings& settings = visit.settings;
  const bool v6 = settings.host.find(':') != std::string::npos && settings.host.front() != '[';
  const std::string host = v6 ? "[" + settings.host + "]" : settings.host;
  return fmt::format("nfs-rdma doctor {}{}{}", options, options.empty() ? "" : " ",
                     visit.server.empty() ? fmt::format("{}:{}", host, settings.rdma_port)
                                          : shell_quoted(visit.server));
}

}  // namespace nfsrdma::doctor
