// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor: packet filters. The rulesets are what nft(8) 1.0.6 and iptables(8) 1.8.9 print.
#include "client/doctor/firewall_rules.h"
#include "tests/unit/client/doctor_fixture.h"

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

Verdict_ judge(const std::string& json, bool tcp, std::uint16_t port) {
  const std::optional<Firewall> firewall = parse_nft(json);
  EXPECT_TRUE(firewall.has_value());
  return firewall ? firewall->judge(tcp, port) : Verdict_::kPartly;
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
  EXPECT_EQ(firewall.judge(true, 22), Verdict_::kOpen);
  EXPECT_EQ(firewall.judge(true, 2049), Verdict_::kOpen);
  EXPECT_EQ(firewall.judge(true, 20049), Verdict_::kOpen);
  EXPECT_EQ(firewall.judge(true, 111), Verdict_::kBlocked);
  EXPECT_EQ(firewall.judge(false, 20049), Verdict_::kBlocked);
  EXPECT_EQ(firewall.judge(false, 4791), Verdict_::kPartly);
  EXPECT_TRUE(firewall.filters());
}

TEST(DoctorFirewall, IptablesNegation) {
  Firewall firewall = iptables("-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp ! --dport 22 -j DROP\n");
  parse_iptables("-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp ! --dport 22 -j DROP\n", true, &firewall);
  EXPECT_EQ(firewall.judge(true, 22), Verdict_::kOpen);
  EXPECT_EQ(firewall.judge(true, 20049), Verdict_::kBlocked);
}

TEST(DoctorFirewall, BlockedInOneFamilyIsOpenToSome) {
  EXPECT_EQ(iptables("-P INPUT DROP\n").judge(true, 20049), Verdict_::kPartly);
}

// --- the check ---

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
                   "nft insert rule inet filter input tcp dport 20049 accept"));
}

TEST_F(FirewallCheck, FirewalldHasItsOwnRemedy) {
  server_configured();
  command(kNft, ruleset("drop", {}));
  command("firewall-cmd --state", "running\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kProblem, "20049/tcp",
                   "firewall-cmd --permanent --add-port=20049/tcp"));
}

TEST_F(FirewallCheck, RpcbindAndRoceAloneAreNotNeeded) {
  server_configured();
  command(kNft, ruleset("drop", {match(kTcpPort, R"({"set": [2049, 20049]})") + "," + kAccept}));
  EXPECT_EQ(check_firewall(host_).verdict(), Verdict::kNote);
  port({});  // with a device, RoCE's port is
  EXPECT_TRUE(
      says(check_firewall(host_), Verdict::kProblem, "4791/udp (RoCE v2)", "udp dport 4791"));
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

TEST_F(FirewallCheck, FirewalldTellsWhoMayNotReadTheRules) {
  server_configured();
  command(kNft, "", 1, "Operation not permitted\n");
  command("firewall-cmd --state", "running\n");
  EXPECT_TRUE(says(check_firewall(host_), Verdict::kSkipped, "does not tell this user"));
  command("firewall-cmd --list-all",
          "public (active)\n  target: default\n  interfaces: eth0\n  services: ssh nfs\n"
          "  ports: 100-120/tcp 4791/udp\n  rich rules: \n");
  const CheckResult result = check_firewall(host_);
  EXPECT_TRUE(says(result, Verdict::kOk, "2049/tcp (NFS over TCP), 111/tcp (rpcbind), 4791/udp"));
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
