// SPDX-License-Identifier: Apache-2.0
// Does a packet filter of this host keep clients from a server here? On a host that serves nothing
// the answer is only told.
#include <fmt/format.h>

#include "client/doctor/firewall_rules.h"
#include "client/doctor/host_checks.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::uint16_t kRpcbindPort = 111;
constexpr std::uint16_t kRoceV2Port = 4791;

struct WantedPort {
  bool tcp;
  std::uint16_t port;
  const char* what;
  bool needed;  // without it some clients get nowhere
};

std::vector<WantedPort> wanted_ports(const HostView& host, const LocalServer& server) {
  std::vector<WantedPort> wanted = {{true, server.rdma_port, "NFS over iWARP", true}};
  if (server.tcp_port != 0) wanted.push_back({true, server.tcp_port, "NFS over TCP", true});
  wanted.push_back({true, kRpcbindPort, "rpcbind", false});
  const bool devices = !host.names("/sys/class/infiniband").empty();
  wanted.push_back({false, kRoceV2Port, "RoCE v2", devices});
  return wanted;
}

std::string port_text(const WantedPort& wanted) {
  return fmt::format("{}/{} ({})", wanted.port, wanted.tcp ? "tcp" : "udp", wanted.what);
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

Filter read_filter(const HostView& host) {
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
    // It tells ordinary users, too, where polkit lets it.
    const CommandOutput zone = host.command({"firewall-cmd", "--list-all"});
    filter.kind = zone.good() ? Filter::Kind::kFirewalld : Filter::Kind::kNone;
    filter.rules = parse_firewalld(zone.out);
    filter.trouble = "firewalld runs, and does not tell this user what it lets in";
  } else if (nft.found) {
    filter.trouble = "nft -j list ruleset: " +
                     (nft.err.empty() ? "no ruleset that can be read" : lines_of(nft.err).front());
  }
  return filter;
}

/// What lets the blocked ports in, by the program that this host's rules come from.
Remedy remedy_for(const std::vector<WantedPort>& blocked, Filter::Kind kind, bool firewalld) {
  Remedy remedy;
  for (const WantedPort& wanted : blocked) {
    const char* protocol = wanted.tcp ? "tcp" : "udp";
    if (firewalld) {
      remedy.push_back(
          fmt::format("firewall-cmd --permanent --add-port={}/{}", wanted.port, protocol));
    } else if (kind == Filter::Kind::kNft) {
      remedy.push_back(fmt::format("nft insert rule inet filter input {} dport {} accept", protocol,
                                   wanted.port));
    } else {
      remedy.push_back(
          fmt::format("iptables -I INPUT -p {} --dport {} -j ACCEPT", protocol, wanted.port));
    }
  }
  if (firewalld) {
    remedy.push_back("firewall-cmd --reload");
  } else {
    remedy.push_back(kind == Filter::Kind::kNft
                         ? "with the table and chain of this host ('nft list chains'); keep it in "
                           "/etc/nftables.conf"
                         : "keep it with iptables-save (netfilter-persistent save)");
  }
  return remedy;
}

std::string names_of(const std::vector<WantedPort>& ports) {
  std::vector<std::string> names;
  for (const WantedPort& port : ports)
    names.push_back(port_text(port));
  return joined(names);
}

void tell(const HostView& host, const LocalServer& server, const Filter& filter,
          CheckResult* result) {
  std::vector<WantedPort> open, partly, blocked;
  bool needed = false;
  for (const WantedPort& wanted : wanted_ports(host, server)) {
    switch (filter.rules.judge(wanted.tcp, wanted.port)) {
      case Firewall::Verdict::kOpen:
        open.push_back(wanted);
        break;
      case Firewall::Verdict::kPartly:
        partly.push_back(wanted);
        break;
      case Firewall::Verdict::kBlocked:
        blocked.push_back(wanted);
        needed |= wanted.needed;
        break;
    }
  }
  if (!open.empty()) result->ok("open to others: " + names_of(open));
  if (!partly.empty()) {
    result->note("open to some, by address, interface or what cannot be told: " + names_of(partly),
                 {filter.kind == Filter::Kind::kNft        ? "nft list ruleset"
                  : filter.kind == Filter::Kind::kIptables ? "iptables -S"
                                                           : "firewall-cmd --list-all-zones"});
  }
  if (blocked.empty()) return;
  const Remedy remedy = remedy_for(blocked, filter.kind, firewalld_runs(host));
  const std::string seen = "closed to others: " + names_of(blocked);
  if (!server.expected()) {
    result->note(seen + "; no server is configured on this host");
  } else if (needed) {
    result->problem(seen, remedy);
  } else {
    result->note(seen, remedy);
  }
}

}  // namespace

CheckResult check_firewall(const HostView& host) {
  CheckResult result;
  const Filter filter = read_filter(host);
  if (filter.kind == Filter::Kind::kNone) {
    const Remedy as_root = host.privileged ? Remedy{} : Remedy{"sudo nfs-rdma doctor"};
    return result.skipped(filter.trouble, as_root);
  }
  if (!filter.rules.filters()) return result.ok("no packet filter looks at what comes in");
  tell(host, local_server(host), filter, &result);
  return result;
}

}  // namespace nfsrdma::doctor
