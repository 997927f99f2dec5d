// SPDX-License-Identifier: Apache-2.0
// A packet filter, as far as it decides about the first packet of a connection to a port of this
// host: read from `nft -j list ruleset` or `iptables -S`, and run through for a port.
//
// Three-valued: what depends on the sender's address or anything else that is not known here may
// match or not, and the answer is kPartly when that makes a difference. The interface by which a
// packet comes and its family are known: the caller asks for each of those that this host has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nfsrdma::doctor {

struct FirewallCondition {
  enum class Kind : std::uint8_t {
    kTcp,         // is it TCP?
    kUdp,         // is it UDP?
    kPorts,       // is the destination port among `ports`?
    kV4,          // is it IPv4?
    kV6,          // is it IPv6?
    kInterfaces,  // does it come by one of `names`?
    kNever,       // cannot be true of a new connection from outside
    kAlways,      // true of every one
    kMaybe,
  };
  Kind kind = Kind::kMaybe;
  bool negated = false;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> ports{};
  std::vector<std::string> names{};  // "eth0"; "eth*": all that begin so
};

/// The first packet of a connection from outside to an address of this host.
struct FirewallPacket {
  bool tcp = true;
  std::uint16_t port = 0;
  bool v6 = false;
  std::string interface {};  // "": any but lo
};

struct FirewallRule {
  enum class Action : std::uint8_t { kNone, kAccept, kBlock, kReturn, kJump, kGoto, kMaybe };
  std::vector<FirewallCondition> conditions{};
  Action action = Action::kNone;
  std::string target{};  // of kJump and kGoto
};

struct FirewallChain {
  bool on_input = false;  // the kernel shows it what comes in
  bool v4 = true, v6 = true;
  bool blocks = false;  // its policy
  std::vector<FirewallRule> rules{};
};

struct Firewall {
  std::map<std::string, FirewallChain> chains;  // nft: "family table chain"
  /// nft shows rules of iptables' own kinds by name only: iptables -S tells more.
  bool opaque = false;

  enum class Verdict : std::uint8_t { kOpen, kPartly, kBlocked };
  Verdict judge(const FirewallPacket& packet) const;
  /// The chains of input hooks that block it for certain: "inet filter input".
  std::set<std::string> blocked_by(const FirewallPacket& packet) const;
  /// Takes the tables out that iptables -S shows: "ip filter", "ip6 filter".
  void forget_iptables();
  /// Does anything look at what comes in?
  bool filters() const;
};

/// Nothing when it is not that.
std::optional<Firewall> parse_nft(std::string_view json);
/// Of one address family; add ip6tables' with `v6`.
void parse_iptables(std::string_view text, bool v6, Firewall* firewall);

/// What `firewall-cmd --list-all --zone=...` says of the zone of an interface.
struct FirewalldZone {
  std::string interface;  // "": the default zone, for all others
  std::string text;
};
/// The default zone last.
Firewall parse_firewalld(const std::vector<FirewalldZone>& zones);

}  // namespace nfsrdma::doctor
