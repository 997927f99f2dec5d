// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/firewall_rules.h"

#include <algorithm>

namespace nfsrdma::doctor {

namespace {

using Condition = FirewallCondition;
using Rule = FirewallRule;

constexpr int kMostJumps = 16;  // as deep as nft lets chains go
constexpr unsigned kMostSteps = 1'000'000;

enum class Truth : std::uint8_t { kNo, kMaybe, kYes };

Truth truth(bool value) {
  return value ? Truth::kYes : Truth::kNo;
}

using Packet = FirewallPacket;

bool matches_name(const std::string& pattern, const std::string& name) {
  if (pattern.ends_with('*')) {
    return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  }
  return pattern == name;
}

Truth comes_by(const std::vector<std::string>& names, const Packet& packet) {
  const auto is = [](const std::string& wanted) {
    return [&wanted](const std::string& pattern) { return matches_name(pattern, wanted); };
  };
  if (!packet.interface.empty()) {
    return truth(std::any_of(names.begin(), names.end(), is(packet.interface)));
  }
  // Whichever it is, it is not lo.
  const auto loopback = [](const std::string& name) { return name == "lo"; };
  if (std::all_of(names.begin(), names.end(), loopback)) return Truth::kNo;
  return std::find(names.begin(), names.end(), "*") == names.end() ? Truth::kMaybe : Truth::kYes;
}

Truth negated(Truth value) {
  if (value == Truth::kMaybe) return value;
  return value == Truth::kYes ? Truth::kNo : Truth::kYes;
}

Truth holds(const Condition& condition, const Packet& packet) {
  Truth value = Truth::kMaybe;
  switch (condition.kind) {
    case Condition::Kind::kTcp:
      value = truth(packet.tcp);
      break;
    case Condition::Kind::kUdp:
      value = truth(!packet.tcp);
      break;
    case Condition::Kind::kPorts:
      value =
          truth(std::any_of(condition.ports.begin(), condition.ports.end(), [&](const auto& range) {
            return range.first <= packet.port && packet.port <= range.second;
          }));
      break;
    case Condition::Kind::kV4:
      value = truth(!packet.v6);
      break;
    case Condition::Kind::kV6:
      value = truth(packet.v6);
      break;
    case Condition::Kind::kInterfaces:
      value = comes_by(condition.names, packet);
      break;
    case Condition::Kind::kNever:
      value = Truth::kNo;
      break;
    case Condition::Kind::kAlways:
      value = Truth::kYes;
      break;
    case Condition::Kind::kMaybe:
      return Truth::kMaybe;
  }
  return condition.negated ? negated(value) : value;
}

Truth matches(const Rule& rule, const Packet& packet) {
  Truth all = Truth::kYes;
  for (const Condition& condition : rule.conditions)
    all = std::min(all, holds(condition, packet));
  return all;
}

/// What a chain makes of a packet: it ends there, or goes on behind the jump. What may have
/// happened on the way is kept beside that.
struct Walk {
  enum class End : std::uint8_t { kAccept, kBlock, kThrough };
  bool maybe_accepted = false, maybe_blocked = false;
};

class Walker {
 public:
  Walker(const Firewall& firewall, const Packet& packet) : firewall_(firewall), packet_(packet) {}

  Walk::End walk(const FirewallChain& chain, int depth) {
    bool maybe_left = false;  // by a rule that may have sent the packet back to the caller
    for (const Rule& rule : chain.rules) {
      if (++steps_ > kMostSteps) {
        seen_.maybe_accepted = seen_.maybe_blocked = true;
        return Walk::End::kThrough;
      }
      const Truth match = matches(rule, packet_);
      if (match == Truth::kNo) continue;
      const std::optional<Walk::End> end = apply(chain, rule, depth);
      if (!end) continue;
      const bool through = *end == Walk::End::kThrough;
      if (match == Truth::kYes && (through || !maybe_left)) return *end;
      remember(*end);
      // What comes is the end of some packets; others are back at the caller already.
      if (match == Truth::kYes) return Walk::End::kThrough;
      maybe_left |= through;
    }
    return Walk::End::kThrough;
  }

  const Walk& seen() const { return seen_; }
  void remember(Walk::End end) {
    if (end == Walk::End::kAccept) seen_.maybe_accepted = true;
    if (end == Walk::End::kBlock) seen_.maybe_blocked = true;
  }

 private:
  /// How a rule that matches ends its chain; nothing: it does not.
  std::optional<Walk::End> apply(const FirewallChain& chain, const Rule& rule, int depth) {
    switch (rule.action) {
      case Rule::Action::kAccept:
        return Walk::End::kAccept;
      case Rule::Action::kBlock:
        return Walk::End::kBlock;
      case Rule::Action::kReturn:
        return Walk::End::kThrough;
      case Rule::Action::kMaybe:
        seen_.maybe_blocked = seen_.maybe_accepted = true;
        return std::nullopt;
      case Rule::Action::kNone:
        return std::nullopt;
      case Rule::Action::kJump:
      case Rule::Action::kGoto:
        break;
    }
    const auto target = firewall_.chains.find(rule.target);
    if (target == firewall_.chains.end() || depth >= kMostJumps || &target->second == &chain) {
      seen_.maybe_blocked = seen_.maybe_accepted = true;
      return std::nullopt;
    }
    const Walk::End end = walk(target->second, depth + 1);
    if (end == Walk::End::kThrough && rule.action == Rule::Action::kJump) return std::nullopt;
    return end;
  }

  const Firewall& firewall_;
  const Packet& packet_;
  Walk seen_;
  unsigned steps_ = 0;
};

Firewall::Verdict judge_chain(const Firewall& firewall, const FirewallChain& chain,
                              const Packet& packet) {
  Walker walker(firewall, packet);
  Walk::End end = walker.walk(chain, 0);
  if (end == Walk::End::kThrough) end = chain.blocks ? Walk::End::kBlock : Walk::End::kAccept;
  const bool blocked = end == Walk::End::kBlock;
  if (blocked ? walker.seen().maybe_accepted : walker.seen().maybe_blocked) {
    return Firewall::Verdict::kPartly;
  }
  return blocked ? Firewall::Verdict::kBlocked : Firewall::Verdict::kOpen;
}

}  // namespace

Firewall::Verdict Firewall::judge(const FirewallPacket& packet) const {
  // A packet has to get past every chain of its family.
  Verdict worst = Verdict::kOpen;
  for (const auto& [name, chain] : chains) {
    if (!chain.on_input || !(packet.v6 ? chain.v6 : chain.v4)) continue;
    worst = std::max(worst, judge_chain(*this, chain, packet));
  }
  return worst;
}

std::set<std::string> Firewall::blocked_by(const FirewallPacket& packet) const {
  std::set<std::string> names;
  for (const auto& [name, chain] : chains) {
    if (!chain.on_input || !(packet.v6 ? chain.v6 : chain.v4)) continue;
    if (judge_chain(*this, chain, packet) == Verdict::kBlocked) names.insert(name);
  }
  return names;
}

void Firewall::forget_iptables() {
  std::erase_if(chains, [](const auto& named) {
    return named.first.starts_with("ip filter ") || named.first.starts_with("ip6 filter ");
  });
  opaque = false;
}

bool Firewall::filters() const {
  return std::any_of(chains.begin(), chains.end(), [](const auto& named) {
    return named.second.on_input && (named.second.blocks || !named.second.rules.empty());
  });
}

}  // namespace nfsrdma::doctor
