// SPDX-License-Identifier: Apache-2.0
// firewall-cmd --list-all: the zones of this host's interfaces, for those who may not read the
// rules themselves. Rich rules may let more in.
#include "client/doctor/firewall_rules.h"
#include "client/doctor/host_view.h"

namespace nfsrdma::doctor {

namespace {

using Condition = FirewallCondition;
using Rule = FirewallRule;

struct Service {
  const char* name;
  const char* ports;
};
constexpr Service kServices[] = {
    {"nfs", "2049/tcp"},
    {"nfs3", "2049/tcp 2049/udp"},
    {"rpc-bind", "111/tcp 111/udp"},
    {"nfs-rdma", "20049/tcp 4791/udp 2049/tcp 2049/udp"},  // config/files/nfs-rdma.xml
};

/// "20049/tcp", "4000-4100/udp".
void accept(const std::string& word, FirewallChain* chain) {
  const std::size_t slash = word.find('/');
  if (slash == std::string::npos) return;
  const std::string range = word.substr(0, slash), protocol = word.substr(slash + 1);
  const std::size_t dash = range.find('-');
  const auto first = number_of(range.substr(0, dash));
  const auto last = dash == std::string::npos ? first : number_of(range.substr(dash + 1));
  if (!first || !last || *first > 65535 || *last > 65535) return;
  Rule rule;
  rule.conditions.push_back({protocol == "tcp"   ? Condition::Kind::kTcp
                             : protocol == "udp" ? Condition::Kind::kUdp
                                                 : Condition::Kind::kNever});
  Condition ports{Condition::Kind::kPorts};
  ports.ports.emplace_back(*first, *last);
  rule.conditions.push_back(std::move(ports));
  rule.action = Rule::Action::kAccept;
  chain->rules.push_back(std::move(rule));
}

void accept_all(std::string_view words, FirewallChain* chain) {
  for (const std::string& word : words_of(words))
    accept(word, chain);
}

void accept_services(std::string_view names, FirewallChain* chain) {
  for (const std::string& name : words_of(names)) {
    for (const Service& service : kServices) {
      if (name == service.name) accept_all(service.ports, chain);
    }
  }
}

FirewallChain parse_zone(std::string_view text) {
  FirewallChain chain;
  chain.blocks = true;
  bool rich = false;
  for (const std::string& line : lines_of(text)) {
    const std::string bare = trimmed(line);
    if (rich && !bare.empty()) {
      chain.rules.push_back({{{Condition::Kind::kMaybe}}, Rule::Action::kMaybe});
    } else if (bare.starts_with("target:")) {
      chain.blocks = trimmed(bare.substr(7)) != "ACCEPT";
    } else if (bare.starts_with("services:")) {
      accept_services(bare.substr(9), &chain);
    } else if (bare.starts_with("ports:")) {
      accept_all(bare.substr(6), &chain);
    } else if (bare.starts_with("rich rules:")) {
      rich = true;
    }
  }
  Rule last;
  last.action = chain.blocks ? Rule::Action::kBlock : Rule::Action::kAccept;
  chain.rules.push_back(std::move(last));
  return chain;
}

}  // namespace

Firewall parse_firewalld(const std::vector<FirewalldZone>& zones) {
  Firewall firewall;
  FirewallChain input;
  input.on_input = input.blocks = true;
  for (const FirewalldZone& zone : zones) {
    const std::string name = "firewalld zone of " + zone.interface;
    Rule rule;
    rule.action = Rule::Action::kGoto;
    rule.target = name;
    if (!zone.interface.empty()) {
      rule.conditions.push_back({Condition::Kind::kInterfaces, false, {}, {zone.interface}});
    }
    input.rules.push_back(std::move(rule));
    firewall.chains[name] = parse_zone(zone.text);
  }
  firewall.chains["firewalld"] = std::move(input);
  return firewall;
}

}  // namespace nfsrdma::doctor
