// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor: packet filters. The rulesets are what nft(8) 1.0.6 and iptables(8) 1.8.9 print.
#include "client/doctor/firewall_rules.h"

#include "tests/unit/client/doctor_fixture.h"
#include "tests/unit/client/doctor_rulesets.h"

namespace nfsrdma::doctor {
namespace {

using Verdict_ = Firewall::Verdict;

/// A ruleset with one table and the chain "input" of the given policy.
std::string ruleset(const std::string& policy, const std::vector<std::string>& rules,
                    const std::string& more = "") {
  std::string text =
      R"({"nftables": [{"metainfo": {"version": "1.0.6"}}, {"chain": {"family": "inet", "table": "f",
      "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": ")" +
      policy + "\"}}" + more;
  for (const std::string& rule : rules) {
    text +=
        R"(, {"rule": {"family": "inet", "table": "f", "chain": "input", "handle": 5, "expr": [)" +
        rule + "]}}";
  }
  return text + "]}";
}

std::string match(const std::string& left, const std::string& right, const std::string& op = "==") {
  return R"({"match": {"op": ")" + op + R"(", "left": )" + left + R"(, "right": )" + right + "}}";
}
const std::string kTcpPort = R"({"payload": {"protocol": "tcp", "field": "dport"}})";
const std::string kUdpPort = R"({"payload": {"protocol": "udp", "field": "dport"}})";
const std::string kSource = R"({"payload": {"protocol": "ip", "field": "saddr"}})";
const std::string kState = R"({"ct": {"key": "state"}})";
const std::string kAccept = R"({"accept": null})";
const std::string kDrop = R"({"drop": null})";

/// By any interface; a rule of a test means both families, if it does not name one.
Verdict_ judge(const Firewall& firewall, bool tcp, std::uint16_t port,
               const std::string& interface = "") {
  const Verdict_ v4 = firewall.judge({tcp, port, false, interface});
  return v4 == firewall.judge({tcp, port, true, interface}) ? v4 : Verdict_::kPartly;
}

Verdict_ judge(const std::string& json, bool tcp, std::uint16_t port,
               const std::string& interface = "") {
  const std::optional<Firewall> firewall = parse_nft(json);
  EXPECT_TRUE(firewall.has_value());
  return firewall ? judge(*firewall, tcp, port, interface) : Verdict_::kPartly;
}

std::string interfaces(const std::string& right, const std::string& op = "==") {
  return match(R"({"meta": {"key": "iifname"}})", right, op);
}

TEST(DoctorFirewall, PolicyDecidesWhereNoRuleDoes) {
  EXPECT_EQ(judge(ruleset("accept", {}), true, 20049), Verdict_::kOpen);
  EXPECT_EQ(judge(ruleset("drop", {}), true, 20049), Verdict_::kBlocked);
}

TEST(DoctorFirewall, PortsOneByOneInSetsAndInRanges) {
  const std::string rules =
      ruleset("drop", {match(kTcpPort, "20049") + "," + kAccept,
                       match(kTcpPort, R"({"set": [22, {"range": [100, 200]}]})") + "," + kAccept});
  EXPECT_EQ(judge(rules, true, 20049), Verdict_::kOpen);
  EXPECT_EQ(judge(rules, false, 20049), Verdict_::kBlocked);
  EXPECT_EQ(judge(rules, true, 111), Verdict_::kOpen);
  EXPECT_EQ(judge(rules, true, 99), Verdict_::kBlocked);
  EXPECT_EQ(judge(rules, true, 2049), Verdict_::kBlocked);
}

TEST(DoctorFirewall, NamedSetsAndEitherProtocol) {
  const std::string set =
      R"(, {"set": {"family": "inet", "name": "s", "table": "f", "type": "inet_service", "handle": 7,
         "flags": ["interval"], "elem": [{"range": [100, 200]}, 20049]}})";
  const std::string th = R"({"payload": {"protocol": "th", "field": "dport"}})";
  const std::string rules =
      ruleset("drop",
              {match(R"({"meta": {"key": "l4proto"}})", R"({"set": ["tcp", "udp"]})") + "," +
               match(th, R"("@s")") + "," + kAccept},
              set);
  EXPECT_EQ(judge(rules, true, 20049), Verdict_::kOpen);
  EXPECT_EQ(judge(rules, false, 111), Verdict_::kOpen);
  EXPECT_EQ(judge(rules, true, 2049), Verdict_::kBlocked);
}

TEST(DoctorFirewall, EstablishedConnectionsAndLoopbackSayNothingAboutNewOnes) {
  const std::string rules =
      ruleset("drop", {match(kState, R"(["established", "related"])", "in") + "," + kAccept,
                       match(R"({"meta": {"key": "iifname"}})", R"("lo")") + "," + kAccept});
  EXPECT_EQ(judge(rules, true, 20049), Verdict_::kBlocked);
}

TEST(DoctorFirewall, VerdictMapOfStates) {
  const std::string map =
      R"({"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": [["invalid", {"drop": null}],
         ["established", {"accept": null}], ["new", {"accept": null}]]}}})";
  EXPECT_EQ(judge(ruleset("drop", {map}), true, 20049), Verdict_::kOpen);
}

TEST(DoctorFirewall, AddressesMakeItOpenToSome) {
  const std::string only_ours =
      ruleset("drop", {match(kSource, R"({"prefix": {"addr": "10.0.0.0", "len": 8}})") + "," +
                       match(kUdpPort, "4791") + "," + kAccept});
  EXPECT_EQ(judge(only_ours, false, 4791), Verdict_::kPartly);
  EXPECT_EQ(judge(only_ours, true, 4791), Verdict_::kBlocked);
  const std::string not_these =
      ruleset("accept", {match(kSource, R"("192.0.2.66")") + "," + kDrop});
  EXPECT_EQ(judge(not_these, true, 20049), Verdict_::kPartly);
}

TEST(DoctorFirewall, JumpsGoInAndComeBack) {
  const std::string chain =
      R"(, {"chain": {"family": "inet", "table": "f", "name": "nfs", "handle": 2}},
         {"rule": {"family": "inet", "table": "f", "chain": "nfs", "handle": 9, "expr": [)" +
      match(kTcpPort, "20049") + "," + kAccept + "]}}";
  const std::string rules = ruleset(
      "drop", {R"({"jump": {"target": "nfs"}})", match(kTcpPort, "2049") + "," + kAccept}, chain);
  EXPECT_EQ(judge(rules, true, 20049), Verdict_::kOpen);
  EXPECT_EQ(judge(rules, true, 2049), Verdict_::kOpen);
  EXPECT_EQ(judge(rules, true, 111), Verdict_::kBlocked);
  const std::string gone = ruleset("drop", {R"({"goto": {"target": "nfs"}})", kAccept}, chain);
  EXPECT_EQ(judge(gone, true, 111), Verdict_::kBlocked);
}

TEST(DoctorFirewall, ChainsThatJumpInCirclesEnd) {
  const std::string chains =
      R"(, {"chain": {"family": "inet", "table": "f", "name": "a", "handle": 2}},
         {"chain": {"family": "inet", "table": "f", "name": "b", "handle": 3}},
         {"rule": {"family": "inet", "table": "f", "chain": "a", "handle": 9, "expr": [{"jump": {"target": "b"}}]}},
         {"rule": {"family": "inet", "table": "f", "chain": "b", "handle": 9, "expr": [{"jump": {"target": "a"}}]}})";
  EXPECT_EQ(judge(ruleset("drop", {R"({"jump": {"target": "a"}})"}, chains), true, 1),
            Verdict_::kPartly);
}

TEST(DoctorFirewall, RejectBlocksAndReturnLeaves) {
  EXPECT_EQ(
      judge(ruleset("accept", {R"({"reject": {"type": "icmpx", "expr": "admin-prohibited"}})"}),
            true, 20049),
      Verdict_::kBlocked);
  EXPECT_EQ(judge(ruleset("drop", {R"({"return": null})", kAccept}), true, 20049),
            Verdict_::kBlocked);
}

TEST(DoctorFirewall, OtherHooksDoNotCount) {
  const std::string rules =
      R"({"nftables": [{"chain": {"family": "inet", "table": "f", "name": "out", "handle": 1,
      "type": "filter", "hook": "output", "prio": 0, "policy": "drop"}}]})";
  EXPECT_EQ(judge(rules, true, 20049), Verdict_::kOpen);
  EXPECT_FALSE(parse_nft(rules)->filters());
}

TEST(DoctorFirewall, GarbageIsNoRuleset) {
  for (const char* text : {"", "{}", "[]", "{\"nftables\": 3}", "table inet f {"})
    EXPECT_FALSE(parse_nft(text).has_value()) << text;
}

Firewall iptables(const char* text) {
  Firewall firewall;
  parse_iptables(text, false, &firewall);
  return firewall;
}

TEST(DoctorFirewall, IptablesRules) {
  const char* const rules =
      "-P INPUT DROP\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n-N nfs\n"
      "-A INPUT -i lo -j ACCEPT\n"
      "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
      "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n"
      "-A INPUT -p tcp -m multiport --dports 2049,20000:20049 -j nfs\n"
      "-A INPUT -s 10.0.0.0/8 -p udp -m udp --dport 4791 -j ACCEPT\n"
      "-A nfs -m comment --comment \"all -j DROP \\\"them\\\"\" -j ACCEPT\n";
  Firewall firewall = iptables(rules);
  parse_iptables(rules, true, &firewall);
  EXPECT_EQ(judge(firewall, true, 22), Verdict_::kOpen);
  EXPECT_EQ(judge(firewall, true, 2049), Verdict_::kOpen);
  EXPECT_EQ(judge(firewall, true, 20049), Verdict_::kOpen);
  EXPECT_EQ(judge(firewall, true, 111), Verdict_::kBlocked);
  EXPECT_EQ(judge(firewall, false, 20049), Verdict_::kBlocked);
  EXPECT_EQ(judge(firewall, false, 4791), Verdict_::kPartly);
  EXPECT_TRUE(firewall.filters());
}

TEST(DoctorFirewall, IptablesNegation) {
  Firewall firewall = iptables("-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp ! --dport 22 -j DROP\n");
  parse_iptables("-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp ! --dport 22 -j DROP\n", true, &firewall);
  EXPECT_EQ(judge(firewall, true, 22), Verdict_::kOpen);
  EXPECT_EQ(judge(firewall, true, 20049), Verdict_::kBlocked);
}

TEST(DoctorFirewall, FamiliesAreJudgedEachForItself) {
  const Firewall firewall = iptables("-P INPUT DROP\n");
  EXPECT_EQ(firewall.judge({true, 20049, false}), Verdict_::kBlocked);
  EXPECT_EQ(firewall.judge({true, 20049, true}), Verdict_::kOpen);
  const std::string v6_alone =
      ruleset("accept", {match(R"({"meta": {"key": "nfproto"}})", R"("ipv6")") + "," + kDrop,
                         match(kSource, R"("192.0.2.66")") + "," + kDrop});
  const auto rules = parse_nft(v6_alone);
  ASSERT_TRUE(rules.has_value());
  EXPECT_EQ(rules->judge({true, 20049, true}), Verdict_::kBlocked);
  EXPECT_EQ(rules->judge({true, 20049, false}), Verdict_::kPartly);  // by the sender's address
}

TEST(DoctorFirewall, AddressOfIpv4SaysNothingAboutIpv6) {
  const auto rules =
      parse_nft(ruleset("accept", {match(kSource, R"("192.0.2.66")") + "," + kDrop}));
  ASSERT_TRUE(rules.has_value());
  EXPECT_EQ(rules->judge({true, 20049, true}), Verdict_::kOpen);
}

TEST(DoctorFirewall, InterfacesAreJudgedEachForItself) {
  for (const std::string& names :
       {std::string(R"("eth1")"), std::string(R"({"set": ["ib0", "eth1"]})"),
        std::string(R"("eth1*")")}) {
    const std::string rules = ruleset("drop", {interfaces(names) + "," + kAccept});
    EXPECT_EQ(judge(rules, true, 20049, "eth1"), Verdict_::kOpen) << names;
    EXPECT_EQ(judge(rules, true, 20049, "eth0"), Verdict_::kBlocked) << names;
    EXPECT_EQ(judge(rules, true, 20049), Verdict_::kPartly) << names;
  }
  const std::string but = ruleset("accept", {interfaces(R"("lo")", "!=") + "," + kDrop});
  EXPECT_EQ(judge(but, true, 20049), Verdict_::kBlocked);
  const std::string set =
      R"(, {"set": {"family": "inet", "name": "ours", "table": "f", "type": "ifname", "handle": 7,
         "elem": ["eth1", "ib0"]}})";
  const std::string named = ruleset("drop", {interfaces(R"("@ours")") + "," + kAccept}, set);
  EXPECT_EQ(judge(named, true, 20049, "ib0"), Verdict_::kOpen);
  EXPECT_EQ(judge(named, true, 20049, "eth0"), Verdict_::kBlocked);
  const Firewall old =
      iptables("-P INPUT DROP\n-A INPUT -i ib+ -j ACCEPT\n-A INPUT ! -i eth+ -p udp -j ACCEPT\n");
  EXPECT_EQ(old.judge({true, 20049, false, "ib0"}), Verdict_::kOpen);
  EXPECT_EQ(old.judge({true, 20049, false, "eth0"}), Verdict_::kBlocked);
  EXPECT_EQ(old.judge({false, 4791, false, "wan0"}), Verdict_::kOpen);
  EXPECT_EQ(old.judge({false, 4791, false, "eth0"}), Verdict_::kBlocked);
}

TEST(DoctorFirewall, RewrittenConnectionsAreNotOurs) {
  const std::string rules =
      ruleset("drop", {match(R"({"ct": {"key": "status"}})", R"("dnat")", "in") + "," + kAccept});
  EXPECT_EQ(judge(rules, true, 20049), Verdict_::kBlocked);
  EXPECT_EQ(judge(ruleset("drop", {match(R"({"ct": {"key": "mark"}})", "7") + "," + kAccept}), true,
                  20049),
            Verdict_::kPartly);
}

TEST(DoctorFirewall, AddressesOfThisHostAreLocal) {
  const std::string fib = R"({"fib": {"result": "type", "flags": ["daddr"]}})";
  EXPECT_EQ(judge(ruleset("accept", {match(fib, R"("local")") + "," + kDrop}), true, 1),
            Verdict_::kBlocked);
  EXPECT_EQ(judge(ruleset("accept", {match(fib, R"("local")", "!=") + "," + kDrop}), true, 1),
            Verdict_::kOpen);
  EXPECT_EQ(judge(ruleset("accept", {match(fib, R"("multicast")") + "," + kDrop}), true, 1),
            Verdict_::kOpen);
  const char* const source = R"({"fib": {"result": "type", "flags": "saddr"}})";
  EXPECT_EQ(judge(ruleset("accept", {match(source, R"("local")") + "," + kDrop}), true, 1),
            Verdict_::kPartly);
}

// Those who were sent back go on behind the jump; the others end in the chain.
TEST(DoctorFirewall, ReturnThatMayMatchIsNotForgotten) {
  const std::string chain =
      R"(, {"chain": {"family": "inet", "table": "f", "name": "trusted", "handle": 2}},
         {"rule": {"family": "inet", "table": "f", "chain": "trusted", "handle": 8, "expr": [)" +
      match(kSource, R"({"prefix": {"addr": "10.0.0.0", "len": 8}})") +
      R"(, {"return": null}]}},
         {"rule": {"family": "inet", "table": "f", "chain": "trusted", "handle": 9, "expr": [)" +
      kDrop + "]}}";
  const std::string jump = R"({"jump": {"target": "trusted"}})";
  const auto firewall = parse_nft(
      ruleset("drop", {jump, match(kTcpPort, R"({"set": [2049, 20049]})") + "," + kAccept}, chain));
  ASSERT_TRUE(firewall.has_value());
  EXPECT_EQ(firewall->judge({true, 20049, false}), Verdict_::kPartly);
  EXPECT_EQ(firewall->judge({true, 20049, true}), Verdict_::kBlocked);  // no 10/8 there
  EXPECT_EQ(firewall->judge({true, 111, false}), Verdict_::kBlocked);   // either way
  // In the first chain itself they meet the policy.
  const std::string leaves =
      match(kTcpPort, "20049") + "," + match(kSource, R"("192.0.2.66")") + R"(, {"return": null})";
  const auto base = parse_nft(ruleset("accept", {leaves, kDrop}));
  ASSERT_TRUE(base.has_value());
  EXPECT_EQ(base->judge({true, 20049, false}), Verdict_::kPartly);
  EXPECT_EQ(base->judge({true, 2049, false}), Verdict_::kBlocked);
}

/// firewalld with one more port open.
std::string firewalld_with(const std::string& port) {
  std::string rules = kFirewalld;
  const std::string ssh = R"("right": 22})";
  const std::size_t at = rules.find(ssh);
  EXPECT_NE(at, std::string::npos);
  return rules.replace(at, ssh.size(), R"("right": {"set": [22, )" + port + "]}}");
}

TEST(DoctorFirewall, RulesOfFirewalld) {
  for (const char* interface : {"", "eth0", "eth7"}) {
    EXPECT_EQ(judge(kFirewalld, true, 22, interface), Verdict_::kOpen) << interface;
    EXPECT_EQ(judge(kFirewalld, true, 20049, interface), Verdict_::kBlocked) << interface;
    EXPECT_EQ(judge(kFirewalld, true, 2049, interface), Verdict_::kBlocked) << interface;
    EXPECT_EQ(judge(kFirewalld, false, 4791, interface), Verdict_::kBlocked) << interface;
    EXPECT_EQ(judge(firewalld_with("20049"), true, 20049, interface), Verdict_::kOpen);
  }
}

TEST(DoctorFirewall, RulesOfUfw) {
  Firewall firewall;
  parse_iptables(kUfwV4, false, &firewall);
  parse_iptables(kUfwV6, true, &firewall);
  for (bool v6 : {false, true}) {
    EXPECT_EQ(firewall.judge({true, 20049, v6, "eth0"}), Verdict_::kBlocked) << v6;
    EXPECT_EQ(firewall.judge({true, 111, v6, "eth0"}), Verdict_::kBlocked) << v6;
    EXPECT_EQ(firewall.judge({false, 4791, v6, "eth0"}), Verdict_::kBlocked) << v6;
  }
  EXPECT_EQ(firewall.judge({true, 22, false, "eth0"}), Verdict_::kOpen);
  parse_iptables("-A ufw6-user-input -p tcp -m tcp --dport 20049 -j ACCEPT\n", true, &firewall);
  EXPECT_EQ(firewall.judge({true, 20049, true, "eth0"}), Verdict_::kOpen);
  Firewall without;
  parse_iptables(kUfwV4, false, &without);
  parse_iptables(kUfwNoV6, true, &without);
  EXPECT_EQ(without.judge({true, 22, false, "eth0"}), Verdict_::kOpen);
  EXPECT_EQ(without.judge({true, 22, true, "eth0"}), Verdict_::kBlocked);
}

TEST(DoctorFirewall, UfwsDetourForWhatIsNotLocalLetsOursThrough) {
  const Firewall firewall = iptables(
      "-P INPUT DROP\n-A INPUT -j not-local\n-A INPUT -p tcp --dport 20049 -j ACCEPT\n"
      "-A not-local -m addrtype --dst-type LOCAL -j RETURN\n"
      "-A not-local -m addrtype --dst-type MULTICAST -j RETURN\n"
      "-A not-local -m addrtype --dst-type BROADCAST -j ACCEPT\n-A not-local -j DROP\n");
  EXPECT_EQ(firewall.judge({true, 20049, false}), Verdict_::kOpen);
  EXPECT_EQ(firewall.judge({true, 2049, false}), Verdict_::kBlocked);
}

// --- the check ---

/// The usual guards against floods, and what is in force up to an amount.
TEST(DoctorFirewall, RatesAndAmountsMayMatch) {
  const std::string fresh = match(kState, R"(["new"])", "in");
  const std::string rate = R"({"limit": {"rate": 100, "per": "second", "inv": true}})";
  const std::string source = R"({"payload": {"protocol": "ip", "field": "saddr"}})";
  for (const std::string& statement :
       {R"({"set": {"op": "add", "elem": )" + source + R"(, "set": "@flood", "stmt": [)" + rate +
            "]}}",
        R"({"meter": {"name": "flood", "key": )" + source + R"(, "stmt": )" + rate + "}}",
        std::string(R"({"quota": {"val": 10, "val_unit": "mbytes", "inv": true}})"), rate}) {
    const std::string guard = fresh + "," + statement + "," + kDrop;
    EXPECT_EQ(judge(ruleset("accept", {guard}), true, 20049), Verdict_::kPartly) << statement;
  }
  // One that only notes whom it has seen drops them all.
  const std::string note = R"({"set": {"op": "add", "elem": )" + source + R"(, "set": "@seen"}})";
  EXPECT_EQ(judge(ruleset("accept", {note + "," + kDrop}), true, 20049), Verdict_::kBlocked);
}

using FirewallCheck = DoctorTest;
constexpr const char* kNft = "nft -j list ruleset";

TEST_F(FirewallCheck, NoFilterIsOk) {
  command(kNft, R"({"nftables": [{"metainfo": {"version": "1.0.6"}}]})");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kOk, "no packet filter"));
}

TEST_F(FirewallCheck, ClosedPortsAreAProblemForAServerOnly) {
  command(kNft, ruleset("drop", {match(kTcpPort, "2049") + "," + kAccept}));
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kNote, "no server is configured"));
  server_configured();
  const CheckResult result = check_firewall(host_);
  EXPECT_TRUE(says(result, Verdict::kOk, "open to others: 2049/tcp"));
  EXPECT_TRUE(says(result, Verdict::kProblem, "20049/tcp (NFS over iWARP)",
                   "nft insert rule inet f input tcp dport 20049 accept"));
}

TEST_F(FirewallCheck, FirewalldHasItsOwnRemedyWithTheZone) {
  server_configured();
  command(kNft, kFirewalld);
  command("firewall-cmd --state", "running\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp",
                   "firewall-cmd --permanent --add-port=20049/tcp"));
  addresses_ = {{"eth0", address("192.0.2.9")}};
  command("firewall-cmd --get-zone-of-interface=eth0", "internal\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp",
                   "firewall-cmd --permanent --zone=internal --add-port=20049/tcp"));
  command(kNft, firewalld_with("20049, 2049"));
  const CheckResult open = check_firewall(host_);
  EXPECT_TRUE(says(open, Verdict::kOk, "open to others: 20049/tcp"));
  EXPECT_EQ(open.verdict(), Verdict::kNote);  // rpcbind
}

TEST_F(FirewallCheck, UfwHasItsOwnRemedy) {
  server_configured();
  command("iptables -S", kUfwV4);
  command("ip6tables -S", kUfwNoV6);
  addresses_ = {{"eth0", address("192.0.2.9")}};
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp",
                   "ufw allow 20049/tcp\nufw allow 2049/tcp"));
  EXPECT_FALSE(says(check_firewall(host_), Verdict::kProblem, "", "IPV6=yes"));
  addresses_.push_back({"eth0", address("2001:db8::9")});
  EXPECT_TRUE(
      says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp", "IPV6=yes"));
}

TEST_F(FirewallCheck, FamilyThatIsBlockedIsAProblemWhereThisHostHasAddressesOfIt) {
  server_configured();
  command("iptables -S", "-P INPUT DROP\n");
  command("ip6tables -S", "-P INPUT ACCEPT\n");
  // Before it has any address it is told only.
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kNote, "closed by IPv4"));
  addresses_ = {{"lo", address("127.0.0.1")},
                {"lo", address("::1")},
                {"eth0", address("192.0.2.9")},
                {"eth0", address("fe80::9")}};
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp"));
  addresses_.push_back({"eth0", address("2001:db8::9")});
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem,
                   "closed to others by IPv4: 20049/tcp (NFS over iWARP), 2049/tcp",
                   "iptables -I INPUT -p tcp --dport 20049 -j ACCEPT"));
  EXPECT_FALSE(says(check_firewall(host_), Verdict::kProblem, "", "ip6tables"));
  command("iptables -S", "-P INPUT ACCEPT\n");
  command("ip6tables -S", "-P INPUT DROP\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others by IPv6: 20049/tcp",
                   "ip6tables -I INPUT -p tcp --dport 20049 -j ACCEPT"));
  // Its addresses of IPv6 are link-local ones only.
  addresses_.pop_back();
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kOk, "open to others: 20049/tcp"));
}

TEST_F(FirewallCheck, InterfaceThatIsClosedIsNamedBesideOneThatIsOpen) {
  server_configured();
  command(kNft, ruleset("drop", {interfaces(R"("ib0")") + "," + kAccept}));
  addresses_ = {{"eth0", address("192.0.2.9")}, {"ib0", address("198.51.100.9")}};
  EXPECT_TRUE(
      says(check_firewall(host_), Verdict::kNote, "20049/tcp (NFS over iWARP), closed by eth0"));
  addresses_.erase(addresses_.begin());
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kOk);
}

TEST_F(FirewallCheck, BridgeOfContainersDoesNotCountBesideAnAdapter) {
  server_configured();
  command(kNft, ruleset("drop", {interfaces(R"("docker0")") + "," + kAccept}));
  addresses_ = {{"vlan7", address("192.0.2.9")}, {"docker0", address("172.17.0.1")}};
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kNote);
  directory("/sys/class/net/eth0/device");
  link("/sys/class/net/vlan7/lower_eth0", "../eth0");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp"));
}

TEST_F(FirewallCheck, PortsAreThoseOfTheFabricsThatAreServed) {
  server_configured();
  command(kNft, ruleset("drop", {}));
  const auto with = [&](const std::string& configuration) {
    file("/etc/rdma/rdma.conf", configuration);
    return check_firewall(host_);
  };
  EXPECT_TRUE(says(with("NFSoRDMA_FABRIC=iwarp\n"), Verdict::kProblem, "20049/tcp"));
  EXPECT_FALSE(says(with("NFSoRDMA_FABRIC=none\n"), Verdict::kProblem, "20049/tcp"));
  EXPECT_TRUE(says(with("NFSoRDMA_FABRIC=none\n"), Verdict::kProblem, "2049/tcp"));
  EXPECT_FALSE(says(with("NFSoRDMA_FABRIC=verbs\n"), Verdict::kProblem, "20049/tcp"));
  // A filter does not see what an adapter takes for itself.
  port({});
  const CheckResult roce = with("NFSoRDMA_FABRIC=verbs\nNFSoRDMA_TCP_PORT=off\n");
  EXPECT_FALSE(says(roce, Verdict::kProblem, "20049/tcp"));
  EXPECT_TRUE(says(roce, Verdict::kNote, "4791/udp (RoCE v2)"));
  EXPECT_FALSE(says(with("NFSoRDMA_FABRIC=iwarp\n"), Verdict::kProblem, "4791"));
  port({.device = "rxe0"});
  EXPECT_TRUE(says(with("NFSoRDMA_FABRIC=verbs\n"), Verdict::kProblem, "4791/udp (RoCE v2)"));
  port({.device = "rxe0", .state = "1: DOWN"});
  port({.state = "1: DOWN"});
  EXPECT_FALSE(says(with("NFSoRDMA_FABRIC=auto\n"), Verdict::kProblem, "4791"));
  port({.device = "siw0", .gid_types = {"IB/RoCE v1"}, .node_type = "4: RNIC"});
  EXPECT_TRUE(says(with("NFSoRDMA_FABRIC=verbs\n"), Verdict::kProblem, "20049/tcp"));
  EXPECT_FALSE(says(with("NFSoRDMA_TCP_PORT=off\nNFSoRDMA_RPCBIND=no\n"), Verdict::kProblem,
                    "2049/tcp (NFS over TCP)"));
  EXPECT_FALSE(says(check_firewall(host_), Verdict::kProblem, "111/tcp"));
}

TEST_F(FirewallCheck, RocesPortMattersOnTheInterfacesOfItsDevices) {
  server_configured();
  port({.device = "rxe0", .interface = "eth1"});
  addresses_ = {{"eth0", address("192.0.2.9")}, {"eth1", address("198.51.100.9")}};
  command(kNft, ruleset("accept",
                        {interfaces(R"("eth0")") + "," + match(kUdpPort, "4791") + "," + kDrop}));
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kOk, "4791/udp (RoCE v2)"));
  port({.device = "rxe0", .interface = "eth0"});
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 4791/udp"));
}

TEST_F(FirewallCheck, AClientWithRxeNeedsItsPortAndNoOther) {
  port({.device = "rxe0"});
  command(kNft, ruleset("drop", {}));
  const CheckResult client = check_firewall(host_);
  EXPECT_TRUE(says(client, Verdict::kProblem, "closed to others: 4791/udp", "udp dport 4791"));
  EXPECT_FALSE(says(client, Verdict::kProblem, "2049"));
  EXPECT_TRUE(says(client, Verdict::kNote, "no server is configured"));
  // Nor does a server for this host alone.
  server_configured();
  file("/etc/rdma/rdma.conf", "NFSoRDMA_LISTEN=127.0.0.1\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 4791/udp"));
}

TEST_F(FirewallCheck, InterfacesWithACommentAreInterfaces) {
  server_configured();
  addresses_ = {{"eth0", address("192.0.2.9")}};
  const char* const kCommented = R"({"set": [{"elem": {"val": "eth0", "comment": "lan"}}]})";
  command(kNft, ruleset("drop", {interfaces(kCommented) + "," + kAccept}));
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kOk);
  const char* const kOther = R"({"set": [{"elem": {"val": "eth7", "comment": "dmz"}}]})";
  command(kNft, ruleset("drop", {interfaces(kOther) + "," + kAccept}));
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kProblem);
}

TEST_F(FirewallCheck, ServerForThisHostAloneNeedsNothing) {
  server_configured();
  command(kNft, ruleset("drop", {}));
  file("/etc/rdma/rdma.conf", "NFSoRDMA_LISTEN=\"127.0.0.1 ::1\"\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kOk, "for this host alone"));
  // What the process was started with counts.
  process("50", "nfs-rdmad", {"--listen", "192.0.2.9", "--fabric=none"});
  const CheckResult running = check_firewall(host_);
  EXPECT_TRUE(says(running, Verdict::kProblem, "2049/tcp (NFS over TCP)"));
  EXPECT_FALSE(says(running, Verdict::kProblem, "iWARP"));
}

TEST_F(FirewallCheck, AddressesThatTheServerListensOnCount) {
  server_configured();
  command(kNft, ruleset("drop", {interfaces(R"("ib0")") + "," + kAccept}));
  addresses_ = {{"eth0", address("192.0.2.9")}, {"ib0", address("198.51.100.9")}};
  file("/etc/rdma/rdma.conf", "NFSoRDMA_LISTEN=198.51.100.9\n");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kOk);
  file("/etc/rdma/rdma.conf", "NFSoRDMA_LISTEN=192.0.2.9\n");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kProblem);
}

TEST_F(FirewallCheck, RpcbindAndRoceAloneAreNotNeeded) {
  server_configured();
  command(kNft, ruleset("drop", {match(kTcpPort, R"({"set": [2049, 20049]})") + "," + kAccept}));
  const CheckResult without = check_firewall(host_);
  EXPECT_EQ(without.verdict(), Verdict::kNote);
  EXPECT_FALSE(says(without, Verdict::kNote, "4791"));  // nobody speaks RoCE here
  port({.device = "rxe0"});                             // with rxe, RoCE's port is
  EXPECT_TRUE(
      says(check_firewall(host_), Verdict::kProblem, "4791/udp (RoCE v2)", "udp dport 4791"));
}

/// By which Linux's status monitor tells that a client with locks was restarted.
TEST_F(FirewallCheck, UdpMattersForLocksOfVersion3) {
  server_configured();
  command(kNft,
          ruleset("drop", {match(kTcpPort, R"({"set": [111, 2049, 20049]})") + "," + kAccept}));
  const CheckResult closed = check_firewall(host_);
  EXPECT_EQ(closed.verdict(), Verdict::kNote);
  EXPECT_TRUE(says(closed, Verdict::kNote, "2049/udp (locks of NFSv3), 111/udp (rpcbind)",
                   "nft insert rule inet f input udp dport 2049 accept\n"
                   "nft insert rule inet f input udp dport 111 accept"));
  file("/etc/rdma/rdma.conf", "NFSoRDMA_NLM=no\n");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kOk);
}

TEST_F(FirewallCheck, EachChainThatBlocksIsOpened) {
  server_configured();
  std::string chains;
  for (const char* family : {"ip", "ip6"}) {
    chains += std::string(chains.empty() ? "" : ",") + R"({"chain": {"family": ")" + family +
              R"(", "table": "filter", "name": "in", "handle": 1, "type": "filter",
                 "hook": "input", "prio": 0, "policy": "drop"}})";
  }
  command(kNft, R"({"nftables": [)" + chains + "]}");
  addresses_ = {{"eth0", address("192.0.2.9")}, {"eth0", address("2001:db8::9")}};
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "closed to others: 20049/tcp",
                   "nft insert rule ip filter in tcp dport 20049 accept\n"
                   "nft insert rule ip6 filter in tcp dport 20049 accept\n"));
}

TEST_F(FirewallCheck, IptablesWhereNftIsMissingOrEmpty) {
  server_configured();
  command("iptables -S", "-P INPUT DROP\n");
  command("ip6tables -S", "-P INPUT DROP\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "20049/tcp",
                   "iptables -I INPUT -p tcp --dport 20049 -j ACCEPT"));
  command(kNft, R"({"nftables": []})");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kProblem);
}

TEST_F(FirewallCheck, IptablesTellsWhatNftShowsByNameOnly) {
  server_configured();
  command(kNft, R"({"nftables": [
    {"chain": {"family": "ip", "table": "filter", "name": "INPUT", "handle": 1, "type": "filter",
      "hook": "input", "prio": 0, "policy": "drop"}},
    {"rule": {"family": "ip", "table": "filter", "chain": "INPUT", "handle": 2, "expr": [
      {"xt": {"type": "match", "name": "conntrack"}}, {"accept": null}]}}]})");
  // Alone it cannot tell whether a new connection is among those.
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kNote, "open to some"));
  const std::string rules =
      "-P INPUT DROP\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
      "-A INPUT -p tcp -m tcp --dport 2049 -j ACCEPT\n";
  command("iptables -S", rules);
  command("ip6tables -S", rules);
  const CheckResult result = check_firewall(host_);
  EXPECT_TRUE(says(result, Verdict::kOk, "open to others: 2049/tcp"));
  EXPECT_TRUE(says(result, Verdict::kProblem, "closed to others: 20049/tcp"));
}

TEST_F(FirewallCheck, FirewalldTellsOfTheZonesOfTheInterfaces) {
  server_configured();
  addresses_ = {{"eth0", address("192.0.2.9")}};
  command("firewall-cmd --state", "running\n");
  command("firewall-cmd --list-all", "public\n  target: default\n  services: ssh\n");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kProblem);
  command("firewall-cmd --get-zone-of-interface=eth0", "trusted\n");
  command("firewall-cmd --list-all --zone=trusted", "trusted\n  target: ACCEPT\n");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kOk);
  // An interface in no zone is in the default one.
  addresses_.push_back({"eth1", address("198.51.100.9")});
  EXPECT_TRUE(
      says(check_firewall(host_), Verdict::kNote, "20049/tcp (NFS over iWARP), closed by eth1"));
}

TEST_F(FirewallCheck, FirewalldTellsWhoMayNotReadTheRules) {
  server_configured();
  command(kNft, "", 1, "Operation not permitted\n");
  command("firewall-cmd --state", "running\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kSkipped, "does not tell this user"));
  command("firewall-cmd --list-all",
          "public (active)\n  target: default\n  interfaces: eth0\n  services: ssh nfs\n"
          "  ports: 100-120/tcp 4791/udp\n  rich rules: \n");
  const CheckResult result = check_firewall(host_);
  EXPECT_TRUE(says(result, Verdict::kOk, "2049/tcp (NFS over TCP), 111/tcp (rpcbind)"));
  EXPECT_TRUE(says(result, Verdict::kProblem, "closed to others: 20049/tcp (NFS over iWARP)",
                   "firewall-cmd --permanent --add-port=20049/tcp"));
  command("firewall-cmd --list-all", "trusted\n  target: ACCEPT\n  services: \n  ports: \n");
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kOk);
  command("firewall-cmd --list-all",
          "public\n  target: default\n  services: nfs-rdma\n  rich rules: \n"
          "\trule family=\"ipv4\" source address=\"10.0.0.0/8\" accept\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kOk, "20049/tcp (NFS over iWARP), 2049/tcp"));
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kNote, "open to some", "--list-all-zones"));
}

TEST_F(FirewallCheck, WhoMayNotLookIsTold) {
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kSkipped, "neither nft nor iptables"));
  command(kNft, "", 1, "Operation not permitted (you must be root)\nnetlink: ...\n");
  EXPECT_TRUE(
      says(check_firewall(host_), Verdict::kSkipped, "you must be root", "sudo nfs-rdma doctor"));
}

}  // namespace
}  // namespace nfsrdma::doctor
