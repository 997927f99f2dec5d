// SPDX-License-Identifier: Apache-2.0
// iptables -S and ip6tables -S. What is not known of a rule makes it one that may match.
#include <array>

#include "client/doctor/firewall_rules.h"
#include "client/doctor/host_view.h"

namespace nfsrdma::doctor {

namespace {

using Condition = FirewallCondition;
using Rule = FirewallRule;

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Words of a line; those in double quotes (comments) may have blanks in them.
std::vector<std::string> quoted_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '\\' && i + 1 < line.size()) {
      word += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) words.push_back(std::move(word));
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(std::move(word));
  return words;
}

/// "22", "1:1023", "22,80,6000:6007".
Condition ports(std::string_view text, bool negated) {
  Condition condition{Condition::Kind::kPorts, negated};
  for (const std::string& part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    const auto first = number_of(part.substr(0, colon));
    const auto last = colon == std::string::npos ? first : number_of(part.substr(colon + 1));
    if (!first || !last || *first > 65535 || *last > 65535) return {Condition::Kind::kMaybe};
    condition.ports.emplace_back(*first, *last);
  }
  return condition;
}

Condition state(std::string_view text, bool negated) {
  for (const std::string& part : split(text, ',')) {
    if (part == "NEW") return {Condition::Kind::kAlways, negated};
  }
  return {Condition::Kind::kNever, negated};
}

Condition interface(const std::string& value, bool negated) {
  Condition one{Condition::Kind::kInterfaces, negated};
  one.names = {value};
  if (value.ends_with('+')) one.names.front().back() = '*';
  return one;
}

/// Of addrtype and pkttype: our packets go to this host, and to it alone.
Condition sent_to(std::string_view types, bool negated) {
  for (const std::string& type : split(types, ',')) {
    if (type == "LOCAL" || type == "unicast" || type == "host") {
      return {Condition::Kind::kAlways, negated};
    }
  }
  return {Condition::Kind::kNever, negated};
}

/// One option with its value; nothing when it says nothing about whom the rule matches.
std::optional<Condition> condition(const std::string& option, const std::string& value,
                                   bool negated) {
  if (option == "-p") {
    if (value == "tcp" || value == "6") return Condition{Condition::Kind::kTcp, negated};
    if (value == "udp" || value == "17") return Condition{Condition::Kind::kUdp, negated};
    return value == "all" ? std::nullopt
                          : std::optional(Condition{Condition::Kind::kNever, negated});
  }
  if (option == "--dport" || option == "--dports") return ports(value, negated);
  if (option == "--ctstate" || option == "--state") return state(value, negated);
  if (option == "-i") return interface(value, negated);
  if (option == "--dst-type" || option == "--pkt-type") return sent_to(value, negated);
  // Nothing of a first packet; and no router writes the old routing header of IPv6.
  if (option == "--ctstatus" || option == "--rt-type") {
    return Condition{Condition::Kind::kNever, negated};
  }
  if (option == "--rt-segsleft") return std::nullopt;
  if (option == "-m" || option == "--comment" || option == "--reject-with") return std::nullopt;
  return Condition{Condition::Kind::kMaybe};
}

void set_action(const std::string& target, Rule::Action by_name, Rule* rule) {
  static constexpr std::array kIgnored = {"LOG", "NFLOG", "TRACE", "MARK", "CONNMARK", "AUDIT"};
  if (target == "ACCEPT") {
    rule->action = Rule::Action::kAccept;
  } else if (target == "DROP" || target == "REJECT") {
    rule->action = Rule::Action::kBlock;
  } else if (target == "RETURN") {
    rule->action = Rule::Action::kReturn;
  } else {
    rule->action = by_name;
    rule->target = target;
    for (const char* ignored : kIgnored) {
      if (target == ignored) rule->action = Rule::Action::kNone;
    }
  }
}

/// Words behind "-A CHAIN".
Rule parse_rule(const std::vector<std::string>& words, const std::string& prefix) {
  Rule rule;
  bool negated = false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "!") {
      negated = true;
      continue;
    }
    const std::string value =
        i + 1 < words.size() && !words[i + 1].starts_with('-') ? words[++i] : "";
    const std::string& option = value.empty() ? words[i] : words[i - 1];
    if (option == "-j" || option == "-g") {
      set_action(value, option == "-j" ? Rule::Action::kJump : Rule::Action::kGoto, &rule);
      rule.target = prefix + rule.target;
    } else if (auto one = condition(option, value, negated)) {
      rule.conditions.push_back(std::move(*one));
    }
    negated = false;
  }
  return rule;
}

}  // namespace

void parse_iptables(std::string_view text, bool v6, Firewall* firewall) {
  const std::string prefix = v6 ? "ip6tables " : "iptables ";
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> words = quoted_words(line);
    if (words.size() < 2) continue;
    FirewallChain& chain = firewall->chains[prefix + words[1]];
    chain.v4 = !v6;
    chain.v6 = v6;
    chain.on_input = words[1] == "INPUT";
    if (words[0] == "-P" && words.size() > 2) chain.blocks = words[2] == "DROP";
    if (words[0] == "-A") chain.rules.push_back(parse_rule(words, prefix));
  }
}

}  // namespace nfsrdma::doctor
