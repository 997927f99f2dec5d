// SPDX-License-Identifier: Apache-2.0
#include "server/export_table.h"

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

/// 192.0.2.1 is a.example.org, both ways; nothing else has a name.
class FewNames final : public HostNames {
 public:
  explicit FewNames(int* questions) : questions_(questions) {}
  std::vector<std::string> names_of(const SocketAddress& peer) override {
    ++*questions_;
    if (peer.host_text() == "192.0.2.1") return {"a.example.org"};
    return {};
  }
  std::vector<SocketAddress> addresses_of(const std::string& host) override {
    ++*questions_;
    if (host == "a.example.org") return {SocketAddress::parse("192.0.2.1", 0).value()};
    return {};
  }
  bool in_netgroup(const std::string& group, const std::string& host) override {
    ++*questions_;
    return (group == "full" && host == "a.example.org") || (group == "short" && host == "a");
  }

 private:
  int* questions_;
};

SocketAddress peer(const char* host, std::uint16_t port = 700) {
  return SocketAddress::parse(host, port).value();
}

class Exports : public ::testing::Test {
 protected:
  /// Exports the temporary directory to `clients` (exports(5) syntax).
  void load(const std::string& clients) {
    const ParsedExports parsed = parse_exports(home.path() + " " + clients + "\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    table.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  ExportAccess access(const SocketAddress& who) {
    ExportAccess out;
    EXPECT_EQ(table.access(*table.current().exports.at(0), who, true, &out),
              ExportTable::Verdict::kKnown);
    return out;
  }
  ExportAccess access(StubConnection& connection) {
    ExportAccess out;
    table.access(*table.current().exports.at(0), connection, true, &out);
    return out;
  }
  TemporaryDirectory home;
  int questions = 0;
  ExportTable table{std::make_unique<FewNames>(&questions)};
};

TEST_F(Exports, NetworksMatchByPrefix) {
  load("192.0.2.0/24(rw)");
  EXPECT_TRUE(access(peer("192.0.2.200")).allowed);
  EXPECT_FALSE(access(peer("192.0.3.1")).allowed);
}

TEST_F(Exports, V6NetworksMatch) {
  load("2001:db8::/32(rw)");
  EXPECT_TRUE(access(peer("2001:db8:1::1")).allowed);
  EXPECT_FALSE(access(peer("2001:db9::1")).allowed);
}

TEST_F(Exports, NetworksOfV6HaveNoV4AddressInThem) {
  load("::/0(rw)");
  EXPECT_TRUE(access(peer("2001:db8:1::1")).allowed);
  EXPECT_FALSE(access(peer("192.0.2.5")).allowed);
  EXPECT_FALSE(access(peer("::ffff:192.0.2.5")).allowed);
}

TEST_F(Exports, V4MappedAddressesMatchV4Networks) {
  load("192.0.2.0/24(rw)");
  EXPECT_TRUE(access(peer("::ffff:192.0.2.5")).allowed);
}

TEST_F(Exports, EveryoneIsTheLastResort) {
  load("*(ro) 192.0.2.0/24(rw)");
  EXPECT_FALSE(access(peer("192.0.2.5")).read_only);
  EXPECT_TRUE(access(peer("198.51.100.1")).read_only);
}

TEST_F(Exports, ASingleHostBeatsItsNetwork) {
  load("192.0.2.0/24(rw) 192.0.2.9(ro)");
  EXPECT_TRUE(access(peer("192.0.2.9")).read_only);
  EXPECT_FALSE(access(peer("192.0.2.10")).read_only);
}

TEST_F(Exports, OfNetworksTheFirstInTheFileDecides) {
  load("192.0.2.0/24(rw) 192.0.0.0/16(ro)");
  EXPECT_FALSE(access(peer("192.0.2.9")).read_only);
  EXPECT_TRUE(access(peer("192.0.3.9")).read_only);
  load("192.0.0.0/16(ro) 192.0.2.0/24(rw)");
  EXPECT_TRUE(access(peer("192.0.2.9")).read_only);
}

TEST_F(Exports, ANetgroupHasItsMembersByFullAndByShortName) {
  for (const char* group : {"@full", "@short"}) {
    load(std::string(group) + "(rw)");
    EXPECT_TRUE(access(peer("192.0.2.1")).allowed) << group;
    EXPECT_FALSE(access(peer("192.0.2.2")).allowed) << group;
  }
  load("@other(rw)");
  EXPECT_FALSE(access(peer("192.0.2.1")).allowed);
}

TEST_F(Exports, WildcardsBeatNetgroupsAndThoseEveryone) {
  load("*(ro,anonuid=1) @full(ro,anonuid=2) *.example.org(ro,anonuid=3)");
  EXPECT_EQ(access(peer("192.0.2.1")).squash.anon_uid, 3u);
  load("*(ro,anonuid=1) @full(ro,anonuid=2)");
  EXPECT_EQ(access(peer("192.0.2.1")).squash.anon_uid, 2u);
  EXPECT_EQ(access(peer("192.0.2.2")).squash.anon_uid, 1u);
}

TEST_F(Exports, NetgroupsAreNotAskedForOnALoopThreadAndThenKept) {
  load("@short(rw)");
  const Export& entry = *table.current().exports[0];
  ExportAccess out;
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kWouldBlock);
  EXPECT_EQ(questions, 0);
  access(peer("192.0.2.1"));
  const int asked = questions;
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kKnown);
  EXPECT_TRUE(out.allowed);
  EXPECT_EQ(questions, asked);
}

TEST_F(Exports, FlavorsOfSecArriveInTheAccess) {
  load("*(sec=none,rw)");
  EXPECT_FALSE(access(peer("192.0.2.5")).serves_sys);
  EXPECT_TRUE(access(peer("192.0.2.5")).serves_none);
  EXPECT_FALSE(access(peer("192.0.2.5")).none_read_only);
  load("*(rw)");
  EXPECT_TRUE(access(peer("192.0.2.5")).serves_sys);
  EXPECT_TRUE(access(peer("192.0.2.5")).serves_none);
}

TEST_F(Exports, HostNamesMatchTheirAddresses) {
  load("a.example.org(rw)");
  EXPECT_TRUE(access(peer("192.0.2.1")).allowed);
  EXPECT_FALSE(access(peer("192.0.2.2")).allowed);
}

TEST_F(Exports, WildcardsMatchNames) {
  load("*.example.org(rw)");
  EXPECT_TRUE(access(peer("192.0.2.1")).allowed);
  EXPECT_FALSE(access(peer("192.0.2.2")).allowed);
}

TEST_F(Exports, NetworksBeatWildcards) {
  load("*.example.org(rw) 192.0.2.0/24(ro)");
  EXPECT_TRUE(access(peer("192.0.2.1")).read_only);
}

TEST_F(Exports, NamesAreNotAskedForOnALoopThread) {
  load("a.example.org(rw)");
  const Export& entry = *table.current().exports[0];
  ExportAccess out;
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kWouldBlock);
  EXPECT_EQ(questions, 0);
  access(peer("192.0.2.1"));
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kKnown);
  EXPECT_TRUE(out.allowed);
}

TEST_F(Exports, AddressesNeverNeedTheNameService) {
  load("192.0.2.0/24(rw) *(ro)");
  access(peer("198.51.100.1"));
  EXPECT_EQ(questions, 0);
}

TEST_F(Exports, SecureRefusesHighPortsOverTcpOnly) {
  load("*(rw)");
  StubConnection low(peer("192.0.2.5", 1023), TransportKind::kTcp);
  StubConnection high(peer("192.0.2.5", 1024), TransportKind::kTcp);
  StubConnection rdma(peer("192.0.2.5", 40000), TransportKind::kIwarp);
  EXPECT_TRUE(access(low).allowed);
  EXPECT_FALSE(access(high).allowed);
  EXPECT_TRUE(access(rdma).allowed);
}

TEST_F(Exports, InsecureLetsHighPortsIn) {
  load("*(rw,insecure)");
  StubConnection high(peer("192.0.2.5", 40000), TransportKind::kTcp);
  EXPECT_TRUE(access(high).allowed);
}

TEST_F(Exports, AReloadCountsForKnownConnections) {
  load("*(rw)");
  StubConnection connection(peer("192.0.2.5"));
  EXPECT_FALSE(access(connection).read_only);
  load("*(ro)");
  EXPECT_TRUE(access(connection).read_only);
}

TEST_F(Exports, WhatExportsThatWereReplacedSaidIsNotRemembered) {
  load("*(rw)");
  StubConnection connection(peer("192.0.2.5"));
  const Export& old = *table.current().exports.at(0);
  load("*(ro)");
  // A call that began before the reload asks only now.
  ExportAccess got;
  EXPECT_EQ(table.access(old, connection, true, &got), ExportTable::Verdict::kKnown);
  EXPECT_FALSE(got.read_only);
  EXPECT_TRUE(access(connection).read_only);
}

TEST_F(Exports, SquashOptionsArriveInTheAccess) {
  load("*(rw,all_squash,anonuid=5,anongid=6,async)");
  const ExportAccess got = access(peer("192.0.2.5"));
  EXPECT_TRUE(got.squash.all_squash);
  EXPECT_EQ(got.squash.anon_uid, 5u);
  EXPECT_EQ(got.squash.anon_gid, 6u);
  EXPECT_FALSE(got.sync);
}

TEST_F(Exports, IdsComeFromThePathAndStay) {
  load("*(rw)");
  const std::uint64_t first = table.current().exports[0]->id;
  load("*(ro)");
  EXPECT_EQ(table.current().exports[0]->id, first);
}

TEST_F(Exports, FsidDecidesTheId) {
  load("*(rw,fsid=12)");
  const std::uint64_t with = table.current().exports[0]->id;
  load("*(rw)");
  EXPECT_NE(table.current().exports[0]->id, with);
}

TEST_F(Exports, AMissingDirectoryIsReportedAndTheOthersServed) {
  const ParsedExports parsed =
      parse_exports("/nonexistent *(ro)\n" + home.path() + " *(ro)\n", "file");
  ConfigProblems problems;
  table.reload(parsed.entries, &problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].line, 1u);
  EXPECT_EQ(table.current().exports.size(), 1u);
}

TEST_F(Exports, TheLongestPathIsFound) {
  const std::string below = home.path() + "/a";
  std::filesystem::create_directory(below);
  const ParsedExports parsed = parse_exports(home.path() + " *(ro)\n" + below + " *(rw)\n", "file");
  ConfigProblems problems;
  table.reload(parsed.entries, &problems);
  std::string_view rest;
  // `rest` points into the path that was asked for.
  const std::string inside = below + "/b/c";
  const std::string beside = home.path() + "/ab";
  EXPECT_EQ(table.current().find_path(inside, &rest)->path, below);
  EXPECT_EQ(rest, "b/c");
  EXPECT_EQ(table.current().find_path(beside, &rest)->path, home.path());
  EXPECT_EQ(rest, "ab");
  EXPECT_EQ(table.current().find_path("/elsewhere", &rest), nullptr);
}

}  // namespace
}  // namespace nfsrdma::test
