// SPDX-License-Identifier: Apache-2.0
// Does a packet filter of this host keep clients from a server here? On a host that serves nothing
// the answer is only told.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "client/doctor/firewall_rules.h"
#include "client/doctor/host_checks.h"
#include "client/doctor/host_ways.h"
#include "client/doctor/rdma_sysfs.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::uint16_t kRpcbindPort = 111;
constexpr std::uint16_t kRoceV2Port = 4791;

struct WantedPort {
  bool tcp;
  std::uint16_t port;
  const char* what;
  bool needed;                            // without it some clients get nowhere
  std::vector<std::string> interfaces{};  // by which it matters; empty: by all
  bool of_clients = false;                // also where nothing is served
};

/// Those of active ports of one kind: of devices in software (true), of adapters, or of all.
std::vector<std::string> interfaces_of(const HostView& host, SysDevice::Kind kind,
                                       std::optional<bool> software = {}) {
  std::vector<std::string> interfaces;
  for (const SysDevice& device : sys_devices(host)) {
    for (const SysPort& port : device.ports) {
      if (device.kind(port) != kind || !port.active()) continue;
      if (device.software != software.value_or(device.software)) continue;
      interfaces.insert(interfaces.end(), port.interfaces.begin(), port.interfaces.end());
    }
  }
  return interfaces;
}

/// A server listens with TCP for iWARP: with the engine of its own, or a device does for it.
bool serves_iwarp(const HostView& host, const LocalServer& server) {
  if (server.fabric == "auto" || server.fabric == "iwarp") return true;
  return server.fabric == "verbs" && !interfaces_of(host, SysDevice::Kind::kIwarp).empty();
}

std::vector<WantedPort> wanted_ports(const HostView& host, const LocalServer& server) {
  std::vector<WantedPort> wanted;
  const bool serves = !server.loopback_only();
  if (serves && serves_iwarp(host, server))
    wanted.push_back({true, server.rdma_port, "NFS over iWARP", true});
  if (serves && server.tcp_port != 0)
    wanted.push_back({true, server.tcp_port, "NFS over TCP", true});
  if (serves && server.wants_rpcbind) wanted.push_back({true, kRpcbindPort, "rpcbind", false});
  // Linux's status monitor tells of a client's restart by UDP alone; without that its locks stay.
  if (serves && server.tcp_port != 0 && server.nlm) {
    wanted.push_back({false, server.tcp_port, "locks of NFSv3", false});
    if (server.wants_rpcbind) wanted.push_back({false, kRpcbindPort, "rpcbind", false});
  }
  // rxe sends from any port to this one, replies too: the filter takes none for an answer.
  std::vector<std::string> rxe = interfaces_of(host, SysDevice::Kind::kRoce, true);
  std::vector<std::string> adapters = interfaces_of(host, SysDevice::Kind::kRoce, false);
  if (!rxe.empty()) {
    wanted.push_back({false, kRoceV2Port, "RoCE v2", true, std::move(rxe), true});
  } else if (serves && !adapters.empty() && (server.fabric == "auto" || server.fabric == "verbs")) {
    // The filter does not see what adapters take for themselves.
    wanted.push_back({false, kRoceV2Port, "RoCE v2", false, std::move(adapters)});
  }
  return wanted;
}

const char* protocol_of(const WantedPort& wanted) {
  return wanted.tcp ? "tcp" : "udp";
}

std::string port_text(const WantedPort& wanted) {
  return fmt::format("{}/{} ({})", wanted.port, protocol_of(wanted), wanted.what);
}

std::vector<HostWay> ways_for(const WantedPort& wanted, const HostWays& all) {
  std::vector<HostWay> ways;
  for (const HostWay& way : all.ways) {
    const auto& only = wanted.interfaces;
    if (std::find(only.begin(), only.end(), way.interface) != only.end()) ways.push_back(way);
  }
  return ways.empty() ? all.ways : ways;
}

FirewallPacket packet_to(const WantedPort& wanted, const HostWay& way) {
  return {wanted.tcp, wanted.port, way.v6, way.interface};
}

/// What becomes of packets to one port.
struct PortState {
  WantedPort port;
  std::vector<HostWay> closed{}, unsure{}, open{};

  bool closed_to(bool v6) const {
    const auto is = [v6](const HostWay& way) { return way.v6 == v6; };
    return std::any_of(closed.begin(), closed.end(), is) &&
           std::none_of(unsure.begin(), unsure.end(), is) &&
           std::none_of(open.begin(), open.end(), is);
  }
  bool all_closed() const { return unsure.empty() && open.empty(); }
  bool all_open() const { return unsure.empty() && closed.empty(); }
};

PortState state_of(const WantedPort& wanted, const Firewall& rules, const HostWays& all) {
  PortState state{wanted};
  for (const HostWay& way : ways_for(wanted, all)) {
    switch (rules.judge(packet_to(wanted, way))) {
      case Firewall::Verdict::kOpen:
        state.open.push_back(way);
        break;
      case Firewall::Verdict::kPartly:
        state.unsure.push_back(way);
        break;
      case Firewall::Verdict::kBlocked:
        state.closed.push_back(way);
        break;
    }
  }
  return state;
}

struct Filter {
  enum class Kind : std::uint8_t { kNone, kNft, kIptables, kFirewalld } kind = Kind::kNone;
  Firewall rules;
  std::string trouble;  // why nothing was read
};

/// Adds what iptables and ip6tables say. False with *trouble: nothing can be read.
bool add_iptables(const HostView& host, Firewall* rules, std::string* trouble) {
  const CommandOutput v4 = host.command({"iptables", "-S"});
  if (!v4.found) {
    *trouble = "neither nft nor iptables is installed";
    return false;
  }
  if (!v4.good()) {
    *trouble = "iptables -S: " + (v4.err.empty() ? "failed" : lines_of(v4.err).front());
    return false;
  }
  parse_iptables(v4.out, false, rules);
  if (const CommandOutput v6 = host.command({"ip6tables", "-S"}); v6.good()) {
    parse_iptables(v6.out, true, rules);
  }
  return true;
}

bool firewalld_runs(const HostView& host) {
  const CommandOutput state = host.command({"firewall-cmd", "--state"});
  return state.good() && state.out.starts_with("running");
}

/// The zone that an interface was put into; "" when it is in the default zone.
std::string zone_of(const HostView& host, const std::string& interface) {
  if (interface.empty()) return "";
  const CommandOutput zone = host.command({"firewall-cmd", "--get-zone-of-interface=" + interface});
  return zone.good() ? trimmed(zone.out) : "";
}

/// It tells ordinary users, too, where polkit lets it.
void ask_firewalld(const HostView& host, const HostWays& ways, Filter* filter) {
  std::vector<FirewalldZone> zones;
  for (const HostWay& way : ways.ways) {
    const std::string zone = zone_of(host, way.interface);
    if (zone.empty()) continue;
    const CommandOutput listed = host.command({"firewall-cmd", "--list-all", "--zone=" + zone});
    if (listed.good()) zones.push_back({way.interface, listed.out});
  }
  const CommandOutput rest = host.command({"firewall-cmd", "--list-all"});
  if (rest.good()) {
    zones.push_back({"", rest.out});
    filter->kind = Filter::Kind::kFirewalld;
    filter->rules = parse_firewalld(zones);
  }
  filter->trouble = "firewalld runs, and does not tell this user what it lets in";
}

Filter read_filter(const HostView& host, const HostWays& ways) {
  Filter filter;
  const CommandOutput nft = host.command({"nft", "-j", "list", "ruleset"});
  std::optional<Firewall> rules = nft.good() ? parse_nft(nft.out) : std::nullopt;
  if (rules && rules->filters() && !rules->opaque) {
    filter.kind = Filter::Kind::kNft;
    filter.rules = std::move(*rules);
    return filter;
  }
  // nft does not show what the old iptables modules do, and little of what the new ones do.
  Firewall more = rules ? *rules : Firewall();
  more.forget_iptables();
  if (add_iptables(host, &more, &filter.trouble)) {
    filter.kind = Filter::Kind::kIptables;
    filter.rules = std::move(more);
  } else if (rules) {
    filter.kind = Filter::Kind::kNft;
    filter.rules = std::move(*rules);
  } else if (firewalld_runs(host)) {
    ask_firewalld(host, ways, &filter);
  } else if (nft.found) {
    filter.trouble = "nft -j list ruleset: " +
                     (nft.err.empty() ? "no ruleset that can be read" : lines_of(nft.err).front());
  }
  return filter;
}

/// The zones that a port is closed in; {""} for the default zone.
std::set<std::string> zones_of(const HostView& host, const PortState& state) {
  std::set<std::string> zones;
  for (const HostWay& way : state.closed)
    zones.insert(zone_of(host, way.interface));
  return zones;
}

void open_in_firewalld(const HostView& host, const std::vector<PortState>& closed, Remedy* remedy) {
  for (const PortState& state : closed) {
    for (const std::string& zone : zones_of(host, state)) {
      remedy->push_back(fmt::format("firewall-cmd --permanent {}--add-port={}/{}",
                                    zone.empty() ? "" : "--zone=" + zone + " ", state.port.port,
                                    protocol_of(state.port)));
    }
  }
  remedy->push_back("firewall-cmd --reload");
}

void open_in_nft(const Firewall& rules, const std::vector<PortState>& closed, Remedy* remedy) {
  for (const PortState& state : closed) {
    // Each of the ways may be blocked by chains of its own, and by several.
    std::set<std::string> chains;
    for (const HostWay& way : state.closed)
      chains.merge(rules.blocked_by(packet_to(state.port, way)));
    if (chains.empty()) chains.insert("inet filter input");
    for (const std::string& chain : chains) {
      remedy->push_back(fmt::format("nft insert rule {} {} dport {} accept", chain,
                                    protocol_of(state.port), state.port.port));
    }
  }
  remedy->push_back("and keep it in /etc/nftables.conf");
}

bool in_family(const PortState& state, bool v6) {
  return std::any_of(state.closed.begin(), state.closed.end(),
                     [v6](const HostWay& way) { return way.v6 == v6; });
}

void open_in_iptables(const std::vector<PortState>& closed, Remedy* remedy) {
  for (const PortState& state : closed) {
    for (bool v6 : {false, true}) {
      if (!in_family(state, v6)) continue;
      remedy->push_back(fmt::format("{} -I INPUT -p {} --dport {} -j ACCEPT",
                                    v6 ? "ip6tables" : "iptables", protocol_of(state.port),
                                    state.port.port));
    }
  }
  remedy->push_back("and keep it with iptables-save (netfilter-persistent save)");
}

void open_in_ufw(const Firewall& rules, const std::vector<PortState>& closed, Remedy* remedy) {
  const auto in_v6 = [](const PortState& state) { return in_family(state, true); };
  if (!rules.chains.contains("ip6tables ufw6-user-input") &&
      std::any_of(closed.begin(), closed.end(), in_v6)) {
    remedy->push_back(
        "sed -i 's/^IPV6=.*/IPV6=yes/' /etc/default/ufw && ufw reload    # it shuts IPv6 off");
  }
  for (const PortState& state : closed)
    remedy->push_back(fmt::format("ufw allow {}/{}", state.port.port, protocol_of(state.port)));
}

/// What lets the blocked ports in, by the program that this host's rules come from.
Remedy remedy_for(const HostView& host, const Filter& filter,
                  const std::vector<PortState>& closed) {
  Remedy remedy;
  if (filter.rules.chains.contains("iptables ufw-user-input")) {
    open_in_ufw(filter.rules, closed, &remedy);
  } else if (firewalld_runs(host)) {
    open_in_firewalld(host, closed, &remedy);
  } else if (filter.kind == Filter::Kind::kNft) {
    open_in_nft(filter.rules, closed, &remedy);
  } else {
    open_in_iptables(closed, &remedy);
  }
  return remedy;
}

std::string names_of(const std::vector<PortState>& states) {
  std::vector<std::string> names;
  names.reserve(states.size());
  for (const PortState& state : states)
    names.push_back(port_text(state.port));
  return joined(names);
}

/// "20049/tcp (NFS over iWARP; closed by eth1)".
std::string partly_text(const PortState& state) {
  std::vector<std::string> closed;
  for (const HostWay& way : state.closed) {
    const std::string by = way.interface.empty() ? (way.v6 ? "IPv6" : "IPv4") : way.interface;
    if (std::find(closed.begin(), closed.end(), by) == closed.end()) closed.push_back(by);
  }
  return port_text(state.port) + (closed.empty() ? "" : ", closed by " + joined(closed, " and "));
}

/// Ports that are closed to all, or to all of one family that this host has addresses of.
void tell_closed(const HostView& host, const LocalServer& server, const Filter& filter,
                 const char* family, const std::vector<PortState>& closed, CheckResult* result) {
  const auto seen = [family](const std::vector<PortState>& states) {
    return fmt::format("closed to others{}{}: {}", *family == '\0' ? "" : " by ", family,
                       names_of(states));
  };
  std::vector<PortState> ours, of_servers;
  for (const PortState& state : closed)
    (server.expected() || state.port.of_clients ? ours : of_servers).push_back(state);
  if (!of_servers.empty())
    result->note(seen(of_servers) + "; no server is configured on this host");
  if (ours.empty()) return;
  const bool needed = std::any_of(ours.begin(), ours.end(),
                                  [](const PortState& state) { return state.port.needed; });
  result->add(needed ? Verdict::kProblem : Verdict::kNote, seen(ours),
              remedy_for(host, filter, ours));
}

void tell(const HostView& host, const LocalServer& server, const HostWays& ways,
          const Filter& filter, CheckResult* result) {
  std::vector<PortState> open, closed, closed_v4, closed_v6;
  std::vector<std::string> partly;
  for (const WantedPort& wanted : wanted_ports(host, server)) {
    PortState state = state_of(wanted, filter.rules, ways);
    if (state.all_open()) {
      open.push_back(std::move(state));
    } else if (state.all_closed()) {
      closed.push_back(std::move(state));
    } else if (!ways.assumed && state.closed_to(false)) {
      closed_v4.push_back(std::move(state));
    } else if (!ways.assumed && state.closed_to(true)) {
      closed_v6.push_back(std::move(state));
    } else {
      partly.push_back(partly_text(state));
    }
  }
  if (!open.empty()) result->ok("open to others: " + names_of(open));
  if (!partly.empty()) {
    result->note("open to some, by address, interface or what cannot be told: " + joined(partly),
                 {filter.kind == Filter::Kind::kNft        ? "nft list ruleset"
                  : filter.kind == Filter::Kind::kIptables ? "iptables -S"
                                                           : "firewall-cmd --list-all-zones"});
  }
  tell_closed(host, server, filter, "", closed, result);
  tell_closed(host, server, filter, "IPv4", closed_v4, result);
  tell_closed(host, server, filter, "IPv6", closed_v6, result);
}

}  // namespace

CheckResult check_firewall(const HostView& host) {
  CheckResult result;
  const LocalServer server = local_server(host);
  if (wanted_ports(host, server).empty()) {
    return result.ok("the server listens for this host alone (NFSoRDMA_LISTEN): nothing to open");
  }
  const HostWays ways = ways_to(host, server);
  const Filter filter = read_filter(host, ways);
  if (filter.kind == Filter::Kind::kNone) {
    const Remedy as_root = host.privileged ? Remedy{} : Remedy{"sudo nfs-rdma doctor"};
    return result.skipped(filter.trouble, as_root);
  }
  if (!filter.rules.filters()) return result.ok("no packet filter looks at what comes in");
  tell(host, server, ways, filter, &result);
  return result;
}

}  // namespace nfsrdma::doctor
