// SPDX-License-Identifier: Apache-2.0
// nft -j list ruleset (libnftables-json(5)). What is not known of a rule makes it one that may
// match.
#include "client/doctor/firewall_rules.h"
#include "client/doctor/host_view.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma::doctor {

namespace {

using Condition = FirewallCondition;
using Rule = FirewallRule;
using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;
using Kind = JsonValue::Kind;

bool is_there(const JsonValue& value) {
  return value.kind() != Kind::kNull;
}

/// "family table name": sets and chains have names in their table.
std::string full_name(const JsonValue& object, const std::string& name) {
  return object["family"].text() + " " + object["table"].text() + " " + name;
}

class Parser {
 public:
  Firewall run(const JsonValue& objects) {
    // Sets come behind the rules that use them at times.
    for (const JsonValue& object : objects.items()) {
      if (const JsonValue& set = object["set"]; is_there(set)) take_set(set);
    }
    for (const JsonValue& object : objects.items()) {
      if (const JsonValue& chain = object["chain"]; is_there(chain)) take_chain(chain);
    }
    for (const JsonValue& object : objects.items()) {
      if (const JsonValue& rule = object["rule"]; is_there(rule)) take_rule(rule);
    }
    return std::move(firewall_);
  }

 private:
  void take_set(const JsonValue& set) {
    Ports ports;
    bool good = true;
    for (const JsonValue& element : set["elem"].items())
      good &= add_ports(element, &ports);
    const std::string name = full_name(set, set["name"].text());
    names_[name] = words(set["elem"]);
    if (good) sets_[name] = std::move(ports);
  }

  void take_chain(const JsonValue& chain) {
    FirewallChain made;
    const std::string& family = chain["family"].text();
    made.v4 = family != "ip6";
    made.v6 = family != "ip";
    // Families bridge, arp and netdev see other things; NAT does not filter.
    const bool ours = family == "ip" || family == "ip6" || family == "inet";
    made.on_input = ours && chain["hook"].text() == "input" && chain["type"].text() != "nat";
    made.blocks = chain["policy"].text() == "drop";
    firewall_.chains[full_name(chain, chain["name"].text())] = std::move(made);
  }

  void take_rule(const JsonValue& rule) {
    const auto chain = firewall_.chains.find(full_name(rule, rule["chain"].text()));
    if (chain == firewall_.chains.end()) return;
    Rule made;
    for (const JsonValue& statement : rule["expr"].items()) {
      if (const JsonValue& map = statement["vmap"]; is_there(map)) {
        add_map(rule, map, made, &chain->second);
        return;
      }
      take_statement(rule, statement, &made);
    }
    chain->second.rules.push_back(std::move(made));
  }

  void take_statement(const JsonValue& rule, const JsonValue& statement, Rule* made) {
    if (const JsonValue& match = statement["match"]; is_there(match)) {
      add_conditions(rule, match["left"], match["op"].text(), match["right"], &made->conditions);
    } else if (const JsonValue& foreign = statement["xt"]; is_there(foreign)) {
      take_foreign(foreign, made);
    } else if (is_there(statement["limit"]) || is_there(statement["ct count"]) ||
               is_there(statement["quota"]) || is_there(statement["meter"]) ||
               is_there(statement["set"]["stmt"])) {
      made->conditions.push_back({Condition::Kind::kMaybe});
    } else if (auto action = action_of(rule, statement, &made->target)) {
      made->action = *action;
    }
    // Counters, logs and marks change nothing.
  }

  /// Of iptables: only its name is said.
  void take_foreign(const JsonValue& foreign, Rule* made) {
    const std::string& name = foreign["name"].text();
    if (name == "comment") return;
    firewall_.opaque = true;
    if (name == "REJECT") {
      made->action = Rule::Action::kBlock;
    } else if (foreign["type"].text() == "match") {
      made->conditions.push_back({Condition::Kind::kMaybe});
    }
  }

  /// {"accept": null}: a member that is null is another object than the one that stands for none.
  static bool says(const JsonValue& statement, const char* word) {
    return &statement[word] != &statement[" no such member"];
  }

  std::optional<Rule::Action> action_of(const JsonValue& rule, const JsonValue& statement,
                                        std::string* target) const {
    if (says(statement, "accept")) return Rule::Action::kAccept;
    if (says(statement, "drop") || says(statement, "reject")) return Rule::Action::kBlock;
    if (says(statement, "return")) return Rule::Action::kReturn;
    if (says(statement, "queue")) return Rule::Action::kMaybe;
    for (const char* word : {"jump", "goto"}) {
      const JsonValue& jump = statement[word];
      if (!is_there(jump)) continue;
      *target = full_name(rule, jump["target"].text());
      return word[0] == 'j' ? Rule::Action::kJump : Rule::Action::kGoto;
    }
    return std::nullopt;
  }

  /// A verdict map: one rule for each element.
  void add_map(const JsonValue& rule, const JsonValue& map, const Rule& so_far,
               FirewallChain* chain) {
    const JsonValue& data = map["data"];
    if (data.kind() == Kind::kString) {  // a named map
      Rule unknown = so_far;
      unknown.conditions.push_back({Condition::Kind::kMaybe});
      unknown.action = Rule::Action::kMaybe;
      chain->rules.push_back(std::move(unknown));
      return;
    }
    for (const JsonValue& pair : data["set"].items()) {
      if (pair.items().size() != 2) continue;
      Rule made = so_far;
      add_conditions(rule, map["key"], "==", pair.items()[0], &made.conditions);
      if (auto action = action_of(rule, pair.items()[1], &made.target)) made.action = *action;
      chain->rules.push_back(std::move(made));
    }
  }

  static bool add_ports(const JsonValue& value, Ports* ports) {
    constexpr double kMost = 65535;
    if (value.kind() == Kind::kNumber && value.number() >= 0 && value.number() <= kMost) {
      const auto port = static_cast<std::uint16_t>(value.count());
      ports->emplace_back(port, port);
      return true;
    }
    const std::vector<JsonValue>& range = value["range"].items();
    if (range.size() == 2 && range[0].number() <= kMost && range[1].number() <= kMost) {
      ports->emplace_back(static_cast<std::uint16_t>(range[0].count()),
                          static_cast<std::uint16_t>(range[1].count()));
      return true;
    }
    if (is_there(value["elem"])) return add_ports(value["elem"]["val"], ports);
    return false;
  }

  Condition ports_of(const JsonValue& rule, const JsonValue& right, bool negated) const {
    Condition condition{Condition::Kind::kPorts, negated};
    if (right.text().starts_with('@')) {
      const auto set = sets_.find(full_name(rule, right.text().substr(1)));
      if (set == sets_.end()) return {Condition::Kind::kMaybe};
      condition.ports = set->second;
      return condition;
    }
    const JsonValue& set = right["set"];
    bool good = true;
    if (is_there(set)) {
      for (const JsonValue& element : set.items())
        good &= add_ports(element, &condition.ports);
    } else {
      good = add_ports(right, &condition.ports);
    }
    return good ? condition : Condition{Condition::Kind::kMaybe};
  }

  /// Words of a value: "new", ["new", "untracked"], {"set": [...]}.
  static std::vector<std::string> words(const JsonValue& value) {
    if (value.kind() == Kind::kString) return {value.text()};
    std::vector<std::string> all;
    const JsonValue& list = is_there(value["set"]) ? value["set"] : value;
    for (const JsonValue& item : list.items()) {
      // One with a comment, a counter or a time-out stands inside of an object.
      const JsonValue& inner = item["elem"]["val"];
      all.push_back(is_there(inner) ? inner.text() : item.text());
    }
    return all;
  }
  static bool among(const std::vector<std::string>& all, std::string_view word) {
    for (const std::string& one : all) {
      if (one == word) return true;
    }
    return false;
  }

  static Condition protocol(const std::vector<std::string>& names, bool negated) {
    const bool tcp = among(names, "tcp") || among(names, "6");
    const bool udp = among(names, "udp") || among(names, "17");
    if (tcp && udp) return {Condition::Kind::kAlways, negated};
    if (tcp) return {Condition::Kind::kTcp, negated};
    return {udp ? Condition::Kind::kUdp : Condition::Kind::kNever, negated};
  }

  /// Of connection tracking: a first packet is new, goes the original way and was not rewritten
  /// (one that was goes to another port than ours).
  static Condition tracking(const std::string& key, const std::vector<std::string>& values,
                            bool negated) {
    if (key != "state" && key != "direction" && key != "status") return {Condition::Kind::kMaybe};
    const bool fresh = key != "status" && among(values, key == "state" ? "new" : "original");
    return {fresh ? Condition::Kind::kAlways : Condition::Kind::kNever, negated};
  }

  Condition interfaces(const JsonValue& rule, const JsonValue& right, bool negated) const {
    Condition condition{Condition::Kind::kInterfaces, negated};
    condition.names = words(right);
    if (right.text().starts_with('@')) {
      const auto set = names_.find(full_name(rule, right.text().substr(1)));
      if (set == names_.end()) return {Condition::Kind::kMaybe};
      condition.names = set->second;
    }
    // What is no name cannot be told.
    if (among(condition.names, "")) return {Condition::Kind::kMaybe};
    return condition;
  }

  /// "fib daddr type local": our packets go to an address of this host.
  static Condition address_type(const JsonValue& fib, const std::vector<std::string>& types,
                                bool negated) {
    const std::vector<std::string> flags = words(fib["flags"]);
    if (!among(flags, "daddr")) return {Condition::Kind::kMaybe};
    return {among(types, "local") ? Condition::Kind::kAlways : Condition::Kind::kNever, negated};
  }

  void add_conditions(const JsonValue& rule, const JsonValue& left, const std::string& op,
                      const JsonValue& right, std::vector<Condition>* conditions) const {
    const bool negated = op == "!=";
    const JsonValue& payload = left["payload"];
    const std::string& of = payload["protocol"].text();
    const std::string& field = payload["field"].text();
    const std::string& meta = left["meta"]["key"].text();
    if (op != "==" && op != "!=" && op != "in") {
      conditions->push_back({Condition::Kind::kMaybe});
    } else if (field == "dport" && (of == "tcp" || of == "udp" || of == "th")) {
      if (of != "th") {
        conditions->push_back({of == "tcp" ? Condition::Kind::kTcp : Condition::Kind::kUdp});
      }
      conditions->push_back(ports_of(rule, right, negated));
    } else if (meta == "l4proto" || (field == "protocol" && of == "ip") ||
               (field == "nexthdr" && of == "ip6")) {
      conditions->push_back(protocol(words(right), negated));
    } else if (is_there(left["ct"])) {
      conditions->push_back(tracking(left["ct"]["key"].text(), words(right), negated));
    } else if (meta == "iif" || meta == "iifname") {
      conditions->push_back(interfaces(rule, right, negated));
    } else if (meta == "nfproto") {
      const bool v4 = among(words(right), "ipv4"), v6 = among(words(right), "ipv6");
      conditions->push_back({v4 && v6 ? Condition::Kind::kAlways
                             : v4     ? Condition::Kind::kV4
                                      : Condition::Kind::kV6,
                             negated});
    } else if (meta == "pkttype") {
      conditions->push_back({among(words(right), "host") || among(words(right), "unicast")
                                 ? Condition::Kind::kAlways
                                 : Condition::Kind::kNever,
                             negated});
    } else if (left["fib"]["result"].text() == "type") {
      conditions->push_back(address_type(left["fib"], words(right), negated));
    } else if (of == "ip" || of == "ip6") {
      // An address: of one family, and of whom is not known.
      conditions->push_back({of == "ip" ? Condition::Kind::kV4 : Condition::Kind::kV6});
      conditions->push_back({Condition::Kind::kMaybe});
    } else if (of == "icmp" || of == "icmpv6" || of == "sctp" || of == "esp" || of == "ah") {
      conditions->push_back({Condition::Kind::kNever});
    } else {
      conditions->push_back({Condition::Kind::kMaybe});
    }
  }

  Firewall firewall_;
  std::map<std::string, Ports> sets_;
  std::map<std::string, std::vector<std::string>> names_;  // of sets of words
};

}  // namespace

std::optional<Firewall> parse_nft(std::string_view json) {
  const std::optional<JsonValue> document = JsonValue::parse(json);
  if (!document || (*document)["nftables"].kind() != Kind::kArray) return std::nullopt;
  return Parser().run((*document)["nftables"]);
}

}  // namespace nfsrdma::doctor
