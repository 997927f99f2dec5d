// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor SERVER: the way there, over a made-up network, and each check alone.
#include "tests/unit/client/doctor_server_fixture.h"

namespace nfsrdma::doctor {
namespace {

using Server = ServerTest;

// --- DNS ---

TEST_F(Server, NameWithAddressesAndNames) {
  network_.lookup.addresses = {address("2001:db8::1"), address("192.0.2.1")};
  network_.names["192.0.2.1"] = "server.example.org";
  const CheckResult result = check_dns(visit_);
  EXPECT_EQ(result.verdict(), Verdict::kNote);
  EXPECT_TRUE(says(result, Verdict::kOk, "server.example.org: 2001:db8::1, 192.0.2.1"));
  EXPECT_TRUE(says(result, Verdict::kOk, "192.0.2.1: server.example.org"));
  EXPECT_TRUE(says(result, Verdict::kNote, "2001:db8::1 has no name"));
  EXPECT_EQ(visit_.settings.addresses.size(), 2u);
}

TEST_F(Server, NameThatIsUnknown) {
  network_.lookup = {Lookup::How::kUnknown, {}, "Name or service not known"};
  EXPECT_TRUE(says(check_dns(visit_), Verdict::kProblem, "Name or service not known",
                   "getent ahosts server.example.org"));
}

TEST_F(Server, NameServiceThatIsSilent) {
  network_.lookup = {Lookup::How::kTimedOut};
  EXPECT_TRUE(says(check_dns(visit_), Verdict::kProblem, "does not answer", "/etc/resolv.conf"));
}

TEST_F(Server, WithoutAddressTheRestIsSkipped) {
  network_.lookup = {Lookup::How::kUnknown};
  for (const CheckResult& result : run_checks(host_, &visit_, {}, {})) {
    const CheckRow* row = find_row(result.id);
    if (row->of_server == nullptr || result.id == "dns") continue;
    EXPECT_EQ(result.verdict(), Verdict::kSkipped) << result.id;
  }
  EXPECT_EQ(network_.null_calls, 0);
}

// --- each check alone ---

std::vector<std::string> rows_that_talk() {
  std::vector<std::string> ids;
  for (const CheckRow& row : check_rows()) {
    // Those find their answers without talking to the server.
    const std::string id = row.id;
    if (row.of_server == nullptr || id == "dns" || id == "route" || id == "gid-match") continue;
    ids.push_back(id);
  }
  return ids;
}

TEST_F(Server, DeadServerIsAProblemOfEveryCheckThatTalksToItWhenItRunsAlone) {
  for (bool has_path : {false, true}) {
    for (const std::string& id : rows_that_talk()) {
      network_.lookups = 0;
      ServerVisit visit{.host = host_, .network = network_, .settings = {}, .has_path = has_path};
      visit.settings.host = "server.example.org";
      for (TransportKind kind : kTransports) {
        silent(kind, "TCP connect: Connection refused");
        network_.nulls[kind].reached = {Reached::How::kRefused};
      }
      const auto results = run_checks(host_, &visit, {id}, {});
      ASSERT_EQ(results.size(), 1u) << id;
      EXPECT_EQ(results[0].verdict(), Verdict::kProblem) << id;
      EXPECT_EQ(network_.lookups, 1) << id;
    }
  }
  EXPECT_TRUE(network_.paths.empty());
}

TEST_F(Server, DeadServerIsAProblemAloneWhereThereIsNoDeviceToo) {
  silent(TransportKind::kIwarp, "TCP connect: Connection refused");
  silent(TransportKind::kTcp, "TCP connect: Connection refused");
  cannot(TransportKind::kVerbs, "verbs: no RDMA device");
  for (const char* id : {"null-verbs", "data-verbs"}) {
    ServerVisit visit{.host = host_, .network = network_, .settings = {}};
    EXPECT_EQ(run_checks(host_, &visit, {id}, {})[0].verdict(), Verdict::kProblem) << id;
  }
}

TEST_F(Server, DeadServerIsAProblemOfTransportAloneWhereAllRun) {
  for (TransportKind kind : kTransports)
    silent(kind, "TCP connect: Connection refused");
  for (const CheckResult& result : run_checks(host_, &visit_, {}, {})) {
    if (find_row(result.id)->of_server == nullptr) continue;
    EXPECT_EQ(result.verdict() == Verdict::kProblem,
              result.id == "transport" || result.id == "route")
        << result.id;
  }
}

TEST_F(Server, UnknownNameIsAProblemOfEveryCheckWhenItRunsAlone) {
  network_.lookup = {Lookup::How::kUnknown};
  for (const CheckRow& row : check_rows()) {
    if (row.of_server == nullptr) continue;
    ServerVisit visit{.host = host_, .network = network_, .settings = {}};
    EXPECT_EQ(run_checks(host_, &visit, {row.id}, {})[0].verdict(), Verdict::kProblem) << row.id;
  }
}

TEST_F(Server, DataAloneIsWrittenAndReadAndSkewAloneTakesOneOfThem) {
  for (TransportKind kind : kTransports) {
    answers(kind);
    network_.data[kind] = good_data(kind);
  }
  for (const char* id : {"data-iwarp", "data-verbs", "data-tcp", "skew"}) {
    network_.paths.clear();
    ServerVisit visit{.host = host_, .network = network_, .settings = {}, .has_path = true};
    EXPECT_EQ(run_checks(host_, &visit, {id}, {})[0].verdict(), Verdict::kOk) << id;
    EXPECT_EQ(network_.paths.size(), 1u) << id;
  }
}

TEST_F(Server, GidMatchAloneFindsTheRoute) {
  port({.gid_types = {"IB/RoCE v1"}});
  network_.way = Route{address("192.0.2.9"), "eth0", true};
  EXPECT_TRUE(says(run_checks(host_, &visit_, {"gid-match"}, {})[0], Verdict::kProblem,
                   "a router is on the way"));
}

// --- route ---

TEST_F(Server, RouteOverTheInterfaceOfTheDevice) {
  port({});
  interface("eth0", true, 9000);
  network_.way = Route{address("192.0.2.9"), "eth0", false};
  resolved();
  const CheckResult result = check_route(visit_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "192.0.2.1 by eth0, from 192.0.2.9, MTU 9000"));
  EXPECT_TRUE(says(result, Verdict::kOk, "RDMA device mlx5_0 is on eth0"));
  EXPECT_EQ(visit_.rdma_device, "mlx5_0");
}

TEST_F(Server, RouteOverAnotherInterfaceThanTheDevices) {
  port({});
  network_.way = Route{address("198.51.100.9"), "eth1", true};
  resolved();
  const CheckResult result = check_route(visit_);
  EXPECT_TRUE(says(result, Verdict::kOk, "by eth1, through a gateway"));
  EXPECT_TRUE(
      says(result, Verdict::kWarning, "no RDMA device belongs to eth1", "ip route get 192.0.2.1"));
  EXPECT_TRUE(says(result, Verdict::kWarning, "mlx5_0 on eth0"));
}

TEST_F(Server, RouteOverADeviceWithoutActivePort) {
  port({.state = "1: DOWN"});
  network_.way = Route{address("192.0.2.9"), "eth0", false};
  resolved();
  EXPECT_TRUE(says(check_route(visit_), Verdict::kWarning, "without an active port"));
}

TEST_F(Server, SiwIsFoundByTheMacAddressInItsGid) {
  interface("eth5", true, 1500, "1", "02:11:22:33:44:55");
  port({.device = "siw0",
        .interface = "",
        .gid_types = {"IB/RoCE v1"},
        .gid = "0211:2233:4455:0000:0000:0000:0000:0000",
        .node_type = "4: RNIC"});
  network_.way = Route{address("192.0.2.9"), "eth5", false};
  resolved();
  EXPECT_TRUE(says(check_route(visit_), Verdict::kOk, "RDMA device siw0 is on eth5"));
}

TEST_F(Server, NoRouteIsAProblem) {
  resolved();
  EXPECT_TRUE(says(check_route(visit_), Verdict::kProblem, "no route to 192.0.2.1", "ip route"));
}

TEST_F(Server, NoRouteToOneOfTwoAddressesIsAWarning) {
  network_.lookup.addresses = {address("2001:db8::1"), address("192.0.2.1")};
  resolved();
  EXPECT_EQ(check_route(visit_).verdict(), Verdict::kWarning);
}

// --- GIDs ---

TEST_F(Server, GidsThatMatchThoseOfTheOtherEnd) {
  port({});
  visit_.other_end = R"({"roce_ports": [{"port": "rxe0 port 1", "gid_types": ["RoCE v2"]}]})";
  EXPECT_TRUE(says(check_gid_match(visit_), Verdict::kOk,
                   "mlx5_0 port 1 here has RoCE v1 and v2, rxe0 port 1 there RoCE v2"));
}

TEST_F(Server, GidsThatHaveNothingInCommonAreAProblem) {
  port({.gid_types = {"RoCE v2"}});
  visit_.other_end = R"({"roce_ports": [{"port": "mlx4_0 port 1", "gid_types": ["RoCE v1"]}]})";
  EXPECT_TRUE(
      says(check_gid_match(visit_), Verdict::kProblem, "nothing in common", "default_roce_mode"));
}

TEST_F(Server, OnePortThatMatchesIsEnoughForAPortOfThisHost) {
  port({.gid_types = {"RoCE v2"}});
  visit_.other_end = R"({"roce_ports": [{"port": "a port 1", "gid_types": ["RoCE v1"]},
                                        {"port": "b port 1", "gid_types": ["RoCE v2"]}]})";
  const CheckResult result = check_gid_match(visit_);
  EXPECT_EQ(result.verdict(), Verdict::kNote);
  EXPECT_TRUE(says(result, Verdict::kOk, "b port 1 there RoCE v2"));
  EXPECT_TRUE(says(result, Verdict::kNote, "a port 1 there RoCE v1: nothing in common"));
}

TEST_F(Server, PortWithTheAddressThatTheServerIsCalledByIsTheOneThatCounts) {
  port({.gid_types = {"RoCE v2"}});
  resolved();
  visit_.other_end = R"({"roce_ports": [
    {"port": "a port 1", "gid_types": ["RoCE v1"], "addresses": ["192.0.2.1"]},
    {"port": "b port 1", "gid_types": ["RoCE v2"], "addresses": ["198.51.100.1"]}]})";
  const CheckResult result = check_gid_match(visit_);
  EXPECT_TRUE(says(result, Verdict::kProblem, "a port 1 there RoCE v1: nothing in common"));
  EXPECT_FALSE(says(result, Verdict::kOk, "b port 1"));
}

TEST_F(Server, EndsThatConnectWithDifferentVersionsAreAWarning) {
  port({});
  visit_.other_end = R"({"roce_ports": [{"port": "a port 1", "default_roce_mode": "RoCE v1",
                                         "gid_types": ["RoCE v1", "RoCE v2"]}]})";
  EXPECT_TRUE(says(check_gid_match(visit_), Verdict::kWarning,
                   "connections are made with RoCE v2 here and with RoCE v1 there",
                   "default_roce_mode"));
  file("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "IB/RoCE v1\n");
  EXPECT_TRUE(says(check_gid_match(visit_), Verdict::kOk, "a port 1 there RoCE v1 and v2"));
}

TEST_F(Server, ReportOfTheOtherEndIsWhatTheDoctorWritesThere) {
  port({});
  const CheckRow* row = find_row("gids");
  ASSERT_NE(row, nullptr);
  visit_.other_end = "{}";
  EXPECT_TRUE(says(check_gid_match(visit_), Verdict::kProblem, "no active RoCE port"));
}

TEST_F(Server, RoceV1BehindAGatewayIsAProblem) {
  port({.gid_types = {"IB/RoCE v1"}});
  network_.way = Route{address("192.0.2.9"), "eth0", true};
  resolved();
  static_cast<void>(check_route(visit_));
  EXPECT_TRUE(says(check_gid_match(visit_), Verdict::kProblem, "a router is on the way"));
}

TEST_F(Server, WithoutReportOfTheOtherEndItSaysHowToGetOne) {
  port({});
  EXPECT_TRUE(says(check_gid_match(visit_), Verdict::kNote, "cannot be seen", "--other-end"));
}

TEST_F(Server, WithoutRoceThereIsNothingToMatch) {
  port({.device = "siw0", .node_type = "4: RNIC"});
  EXPECT_EQ(check_gid_match(visit_).verdict(), Verdict::kSkipped);
}

// --- ports ---

TEST_F(Server, OpenPortsAreOk) {
  answers(TransportKind::kIwarp);
  network_.reached[2049] = {Reached::How::kOpen};
  network_.reached[111] = {Reached::How::kOpen};
  resolved();
  EXPECT_EQ(check_reach(visit_).verdict(), Verdict::kOk);
}

// A bare connection to it would end siw's listener.
TEST_F(Server, RdmaPortIsNotTouchedButByItsProtocol) {
  answers(TransportKind::kIwarp);
  resolved();
  static_cast<void>(check_reach(visit_));
  EXPECT_FALSE(network_.reached.contains(20049));
  EXPECT_TRUE(network_.reached.contains(2049));
}

TEST_F(Server, RefusedAndDroppedAreToldApart) {
  network_.nulls[TransportKind::kIwarp].reached = {Reached::How::kRefused};
  network_.reached[2049] = {Reached::How::kTimedOut};
  network_.reached[111] = {Reached::How::kTimedOut};
  resolved();
  const CheckResult result = check_reach(visit_);
  EXPECT_TRUE(
      says(result, Verdict::kWarning, "20049 (iWARP): refused: the host is there", "HOST:PORT"));
  EXPECT_TRUE(says(result, Verdict::kNote, "2049 (NFS over TCP): no answer at all: a firewall"));
}

TEST_F(Server, RefusalIsANoteWhereADeviceAnswers) {
  network_.nulls[TransportKind::kIwarp].reached = {Reached::How::kRefused};
  answers(TransportKind::kVerbs);
  network_.reached[2049] = {Reached::How::kOpen};
  network_.reached[111] = {Reached::How::kOpen};
  resolved();
  EXPECT_EQ(check_reach(visit_).verdict(), Verdict::kNote);
}

TEST_F(Server, DroppedRdmaPortIsAWarningWithTheFirewallsRemedy) {
  network_.nulls[TransportKind::kIwarp].reached = {Reached::How::kTimedOut};
  resolved();
  EXPECT_TRUE(says(check_reach(visit_), Verdict::kWarning, "a firewall drops it",
                   "firewall-cmd --permanent --add-port=20049/tcp"));
}

TEST_F(Server, SilenceBehindAConnectionIsNoFirewall) {
  network_.nulls[TransportKind::kIwarp].reached = {Reached::How::kTimedOut};
  network_.reached[20049] = {Reached::How::kOpen};
  resolved();
  EXPECT_TRUE(says(check_reach(visit_), Verdict::kOk, "TCP port 20049 (iWARP): open"));
}

TEST_F(Server, UnreachableIsToldWithItsReason) {
  network_.nulls[TransportKind::kIwarp].reached = {Reached::How::kUnreachable, "No route to host"};
  resolved();
  EXPECT_TRUE(says(check_reach(visit_), Verdict::kWarning, "No route to host"));
}

TEST_F(Server, SecondAddressCountsWhereTheFirstRefuses) {
  network_.lookup.addresses = {address("::1"), address("127.0.0.1")};
  network_.reached_at["[::1]:2049"] = {Reached::How::kRefused};
  network_.reached_at["127.0.0.1:2049"] = {Reached::How::kOpen};
  resolved();
  const CheckResult result = check_reach(visit_);
  EXPECT_TRUE(says(result, Verdict::kOk, "TCP port 2049 (NFS over TCP): open"));
  EXPECT_TRUE(says(result, Verdict::kNote, "2049 is not open at ::1"));
}

TEST_F(Server, OnlyWhatWasAskedForIsReached) {
  visit_.settings.proto = ProtoChoice::kTcp;
  network_.reached[2049] = {Reached::How::kOpen};
  network_.reached[111] = {Reached::How::kOpen};
  resolved();
  const CheckResult result = check_reach(visit_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_FALSE(says(result, Verdict::kOk, "20049"));
  EXPECT_EQ(network_.null_calls, 0);
}

// --- SERVER on the command line ---

struct Spelling {
  const char* text;
  const char* host;
  const char* path;
  std::uint16_t port;
};

TEST(DoctorServerWord, Spellings) {
  for (const Spelling& s : {Spelling{"server", "server", "/", 20049},
                            {"server:2050", "server", "/", 2050},
                            {"server:/srv/a%b", "server", "/srv/a%b", 20049},
                            {"server:2050:/srv", "server", "/srv", 2050},
                            {"2001:db8::1", "2001:db8::1", "/", 20049},
                            {"[2001:db8::1]:2050", "2001:db8::1", "/", 2050},
                            {"nfs://server:2050/srv/data", "server", "/srv/data", 2050}}) {
    MountSettings settings;
    bool has_path = false;
    std::string error;
    ASSERT_TRUE(parse_server(s.text, &settings, &has_path, &error)) << s.text << ": " << error;
    EXPECT_EQ(settings.host, s.host) << s.text;
    EXPECT_EQ(settings.path, s.path) << s.text;
    EXPECT_EQ(settings.rdma_port, s.port) << s.text;
    EXPECT_EQ(has_path, std::string(s.path) != "/") << s.text;
  }
}

TEST(DoctorServerWord, Nonsense) {
  for (const char* text : {"", "server:port", "/srv/data", "nfs://", "server:70000", "a/b"}) {
    MountSettings settings;
    bool has_path = false;
    std::string error;
    EXPECT_FALSE(parse_server(text, &settings, &has_path, &error)) << text;
    EXPECT_FALSE(error.empty()) << text;
  }
}

// --- the real network, on loopback ---

TEST(DoctorNetwork, PortsOfThisHost) {
  const auto network = real_network();
  SocketAddress at = address("127.0.0.1", 0);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, at.data(), at.length()), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  at = SocketAddress::local_of(listener).value();
  EXPECT_EQ(network->reach(at, std::chrono::seconds(60)).how, Reached::How::kOpen);
  ::close(listener);
  EXPECT_EQ(network->reach(at, std::chrono::seconds(60)).how, Reached::How::kRefused);
}

TEST(DoctorNetwork, NumbersAreNames) {
  const auto network = real_network();
  const Lookup v4 = network->resolve("127.0.0.1", std::chrono::seconds(60));
  ASSERT_EQ(v4.how, Lookup::How::kFound);
  EXPECT_EQ(v4.addresses.front().host_text(), "127.0.0.1");
  EXPECT_EQ(network->resolve("[::1]", std::chrono::seconds(60)).addresses.size(), 1u);
}

TEST(DoctorNetwork, RouteToThisHostGoesByLoopback) {
  const auto network = real_network();
  const std::optional<Route> route = network->route(address("127.0.0.1"));
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->interface, "lo");
  EXPECT_FALSE(route->by_gateway);
  EXPECT_EQ(route->local.host_text(), "127.0.0.1");
}

}  // namespace
}  // namespace nfsrdma::doctor
