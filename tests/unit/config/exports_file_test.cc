// SPDX-License-Identifier: Apache-2.0
#include "config/exports_file.h"

#include <gmock/gmock.h>

namespace nfsrdma {
namespace {

using testing::HasSubstr;

ParsedExports good(std::string_view text) {
  ParsedExports parsed = parse_exports(text, "exports");
  for (const ConfigProblem& problem : parsed.problems)
    ADD_FAILURE() << problem.text();
  return parsed;
}

SocketAddress host(const char* text) {
  return SocketAddress::parse(text, 700).value();
}

TEST(ExportsFile, DefaultsAreThoseOfExports5) {
  ParsedExports parsed = good("/a *\n");
  ASSERT_EQ(parsed.entries.size(), 1u);
  ASSERT_EQ(parsed.entries[0].clients.size(), 1u);
  const ExportOptions& o = parsed.entries[0].clients[0].options;
  EXPECT_TRUE(o.read_only);
  EXPECT_TRUE(o.sync);
  EXPECT_TRUE(o.secure);
  EXPECT_TRUE(o.root_squash);
  EXPECT_FALSE(o.all_squash);
  EXPECT_FALSE(o.crossmnt);
  EXPECT_FALSE(o.subtree_check);
  EXPECT_EQ(o.anon_uid, 65534u);
  EXPECT_EQ(o.anon_gid, 65534u);
}

TEST(ExportsFile, EveryOptionSetsItsField) {
  const ExportOptions o = good(
                              "/a *(rw,async,insecure,no_root_squash,all_squash,anonuid=7,"
                              "anongid=8,fsid=12,crossmnt,subtree_check,nohide,no_wdelay,"
                              "mountpoint=/m,sec=sys,no_auth_nlm)\n")
                              .entries[0]
                              .clients[0]
                              .options;
  EXPECT_FALSE(o.read_only);
  EXPECT_FALSE(o.sync);
  EXPECT_FALSE(o.secure);
  EXPECT_FALSE(o.root_squash);
  EXPECT_TRUE(o.all_squash);
  EXPECT_EQ(o.anon_uid, 7u);
  EXPECT_EQ(o.anon_gid, 8u);
  EXPECT_EQ(o.fsid, "12");
  EXPECT_TRUE(o.crossmnt);
  EXPECT_TRUE(o.subtree_check);
  EXPECT_TRUE(o.nohide);
  EXPECT_FALSE(o.write_delay);
  EXPECT_TRUE(o.need_mountpoint);
  EXPECT_EQ(o.mountpoint_path, "/m");
  EXPECT_TRUE(o.insecure_locks);
}

TEST(ExportsFile, LaterOptionsWin) {
  const ExportOptions o =
      good("/a *(rw,no_root_squash,ro,root_squash)\n").entries[0].clients[0].options;
  EXPECT_TRUE(o.read_only);
  EXPECT_TRUE(o.root_squash);
}

TEST(ExportsFile, NegativeAnonymousIdsWrap) {
  EXPECT_EQ(good("/a *(anonuid=-2)\n").entries[0].clients[0].options.anon_uid, 0xfffffffeu);
}

TEST(ExportsFile, FsidRootIsZero) {
  EXPECT_EQ(good("/a *(fsid=root)\n").entries[0].clients[0].options.fsid, "0");
}

TEST(ExportsFile, ClientsOfALineHaveOptionsOfTheirOwn) {
  ParsedExports parsed =
      good("/a 192.0.2.0/24(rw) *.example.org 2001:db8::1(rw,async) *(all_squash)\n");
  const auto& clients = parsed.entries[0].clients;
  ASSERT_EQ(clients.size(), 4u);
  EXPECT_EQ(clients[0].kind, ExportClient::Kind::kNetwork);
  EXPECT_FALSE(clients[0].options.read_only);
  EXPECT_EQ(clients[1].kind, ExportClient::Kind::kWildcard);
  EXPECT_TRUE(clients[1].options.read_only);
  EXPECT_EQ(clients[2].kind, ExportClient::Kind::kNetwork);
  EXPECT_EQ(clients[2].prefix, 128);
  EXPECT_EQ(clients[3].kind, ExportClient::Kind::kEveryone);
}

TEST(ExportsFile, DefaultOptionListsCountForTheClientsBehindThem) {
  const auto clients = good("/a first -rw,insecure second third(ro)\n").entries[0].clients;
  EXPECT_TRUE(clients[0].options.read_only);
  EXPECT_FALSE(clients[1].options.read_only);
  EXPECT_TRUE(clients[2].options.read_only);
  EXPECT_FALSE(clients[2].options.secure);
}

TEST(ExportsFile, PathsMayBeQuotedOrEscaped) {
  EXPECT_EQ(good("\"/a b\" *\n").entries[0].path, "/a b");
  EXPECT_EQ(good("/a\\040b *\n").entries[0].path, "/a b");
  EXPECT_EQ(good("/a\\043b# *\n").entries[0].path, "/a#b#");
}

TEST(ExportsFile, TrailingSlashesAreTakenOff) {
  EXPECT_EQ(good("/a/// *\n").entries[0].path, "/a");
  EXPECT_EQ(good("/ *\n").entries[0].path, "/");
}

TEST(ExportsFile, LinesContinueAfterABackslash) {
  ParsedExports parsed = good("/a one(rw) \\\n  two(rw)\\\n\tthree\n/b *\n");
  ASSERT_EQ(parsed.entries.size(), 2u);
  EXPECT_EQ(parsed.entries[0].clients.size(), 3u);
  EXPECT_EQ(parsed.entries[0].clients[1].line, 2u);
  EXPECT_EQ(parsed.entries[1].line, 4u);
}

TEST(ExportsFile, CommentsEndWithTheirLine) {
  ParsedExports parsed = good("# all \\\n/a * # and \\\n/b *\n");
  ASSERT_EQ(parsed.entries.size(), 2u);
  EXPECT_EQ(parsed.entries[0].clients.size(), 1u);
}

TEST(ExportsFile, APathAloneIsForEveryoneAndNoticed) {
  ParsedExports parsed = good("/a\n");
  ASSERT_EQ(parsed.entries[0].clients.size(), 1u);
  EXPECT_EQ(parsed.entries[0].clients[0].kind, ExportClient::Kind::kEveryone);
  EXPECT_EQ(parsed.notices.size(), 1u);
}

TEST(ExportsFile, ABlankBeforeTheParenthesisIsNoticed) {
  ParsedExports parsed = good("/a host (rw)\n");
  ASSERT_EQ(parsed.entries[0].clients.size(), 2u);
  EXPECT_TRUE(parsed.entries[0].clients[0].options.read_only);
  EXPECT_FALSE(parsed.entries[0].clients[1].options.read_only);
  ASSERT_EQ(parsed.notices.size(), 1u);
  EXPECT_EQ(parsed.notices[0].column, 9u);
}

TEST(ExportsFile, HostNamesAreLowered) {
  EXPECT_EQ(good("/a Build.Example.ORG\n").entries[0].clients[0].text, "build.example.org");
}

TEST(ExportsFile, AReferralNamesPathsAndTheirHosts) {
  const ExportOptions o =
      good("/a *(rw,refer=/x//y/@one.example.org+192.0.2.1:/@[2001:db8::1]+[fe80::1%eth0],sync)\n")
          .entries[0]
          .clients[0]
          .options;
  EXPECT_TRUE(o.referral);
  ASSERT_EQ(o.locations.size(), 2u);
  EXPECT_EQ(o.locations[0], (FsLocation{"/x/y", {"one.example.org", "192.0.2.1"}}));
  EXPECT_EQ(o.locations[1], (FsLocation{"/", {"2001:db8::1", "fe80::1%eth0"}}));
}

TEST(ExportsFile, ReplicasAreNoReferral) {
  const ExportOptions o = good("/a *(replicas=/x@h)\n").entries[0].clients[0].options;
  EXPECT_FALSE(o.referral);
  ASSERT_EQ(o.locations.size(), 1u);
  EXPECT_EQ(o.locations[0], (FsLocation{"/x", {"h"}}));
}

TEST(ExportsFile, OfReferralAndReplicasTheLaterCounts) {
  const ExportOptions refer =
      good("/a *(replicas=/x@h,refer=/y@i)\n").entries[0].clients[0].options;
  EXPECT_TRUE(refer.referral);
  ASSERT_EQ(refer.locations.size(), 1u);
  EXPECT_EQ(refer.locations[0].path, "/y");
  EXPECT_FALSE(good("/a *(refer=/y@i,replicas=/x@h)\n").entries[0].clients[0].options.referral);
}

TEST(ExportsFile, ReferralsAreOfOneClient) {
  const auto clients = good("/a 192.0.2.0/24(refer=/x@h) *(rw)\n").entries[0].clients;
  EXPECT_TRUE(clients[0].options.referral);
  EXPECT_FALSE(clients[1].options.referral);
  EXPECT_TRUE(clients[1].options.locations.empty());
}

TEST(ExportsFile, AReferralHasABoundedNumberOfHosts) {
  std::string hosts = "/x@h";
  for (int i = 1; i < 64; ++i)
    hosts += "+h";
  EXPECT_TRUE(parse_exports("/a *(refer=" + hosts + ")\n", "exports").ok());
  const ParsedExports more = parse_exports("/a *(refer=" + hosts + ":/y@h)\n", "exports");
  ASSERT_EQ(more.problems.size(), 1u);
  EXPECT_THAT(more.problems[0].message, HasSubstr("expected at most 64 hosts"));
}

struct BadExport {
  const char* text;
  unsigned line;
  unsigned column;
  const char* says;
};
class ExportsErrors : public testing::TestWithParam<BadExport> {};

TEST_P(ExportsErrors, NameLineColumnAndWhatWasExpected) {
  ParsedExports parsed = parse_exports(GetParam().text, "exports");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.problems[0].line, GetParam().line);
  EXPECT_EQ(parsed.problems[0].column, GetParam().column);
  EXPECT_THAT(parsed.problems[0].message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ExportsErrors,
    testing::Values(BadExport{"a *(rw)\n", 1, 1, "no absolute path"},
                    BadExport{"\n\n  \"/a *(rw)\n", 3, 3, "no closing '\"'"},
                    BadExport{"/a *(rww)\n", 1, 6, "did you mean rw?"},
                    BadExport{"/a *(ro,root_sqash)\n", 1, 9, "did you mean root_squash?"},
                    BadExport{"/a *(frobnicate)\n", 1, 6, "unknown option 'frobnicate'"},
                    BadExport{"/a *(rw=1)\n", 1, 6, "takes no value"},
                    BadExport{"/a *(anonuid)\n", 1, 6, "needs a value"},
                    BadExport{"/a *(anonuid=nobody)\n", 1, 6, "expected a user id"},
                    BadExport{"/a *(anongid=4294967296)\n", 1, 6, "expected a group id"},
                    BadExport{"/a *(fsid=zero)\n", 1, 6, "a number, root, or a UUID"},
                    BadExport{"/a *(sec=krb5)\n", 1, 6, "expected sys"},
                    BadExport{"/a *(refer)\n", 1, 6, "needs a value"},
                    BadExport{"/a *(refer=/x)\n", 1, 6, "PATH@HOST"},
                    BadExport{"/a *(refer=x@y)\n", 1, 6, "an absolute path"},
                    BadExport{"/a *(refer=@y)\n", 1, 6, "an absolute path"},
                    BadExport{"/a *(refer=/x/../y@z)\n", 1, 6, "without . and .."},
                    BadExport{"/a *(refer=/x@)\n", 1, 6, "a host name or address"},
                    BadExport{"/a *(refer=/x@y+)\n", 1, 6, "a host name or address"},
                    BadExport{"/a *(refer=/x@y:)\n", 1, 6, "an absolute path"},
                    BadExport{"/a *(refer=/x@y@z)\n", 1, 6, "a host name or address"},
                    BadExport{"/a *(refer=/x@2001:db8::1)\n", 1, 6, "addresses in brackets"},
                    BadExport{"/a *(refer=/x@[2001:db8::1)\n", 1, 6, "a ']'"},
                    BadExport{"/a *(refer=/x@[y])\n", 1, 6, "an IPv6 address in the brackets"},
                    BadExport{"/a *(replicas=/x@y z)\n", 1, 19, "a blank inside"},
                    BadExport{"/a *(pnfs)\n", 1, 6, "pNFS is not served"},
                    BadExport{"/a *(rw\n", 1, 5, "no closing ')'"},
                    BadExport{"/a *(rw, sync)\n", 1, 9, "a blank inside of an option list"},
                    BadExport{"/a *(rw)sync\n", 1, 9, "after ')'"},
                    BadExport{"/a @trusted(rw)\n", 1, 4, "netgroup '@trusted' is not supported"},
                    BadExport{"/a gss/krb5(rw)\n", 1, 4, "not supported"},
                    BadExport{"/a 192.0.2.1/33\n", 1, 4, "expected /0 to /32"},
                    BadExport{"/a 192.0.2.1/255.0.255.0\n", 1, 4, "contiguous netmask"},
                    BadExport{"/a 2001:db8::/129\n", 1, 4, "expected /0 to /128"},
                    BadExport{"/a 2001:db8::x\n", 1, 4, "no IPv4 or IPv6 address"},
                    BadExport{"/a host/24\n", 1, 4, "no IPv4 or IPv6 address"},
                    BadExport{"/a ho=st\n", 1, 4, "no host name has"},
                    BadExport{"/a * *\n", 1, 6, "named twice"},
                    BadExport{"/a\\9 *\n", 1, 3, "three octal digits"},
                    BadExport{"/a\\777 *\n", 1, 3, "up to \\377"},
                    BadExport{"/a -rw,nonsense *\n", 1, 8, "unknown option"},
                    BadExport{"/a one \\\n  two(rw,x)\n", 2, 10, "unknown option 'x'"}));

TEST(ExportsFile, EveryWrongLineIsReported) {
  ParsedExports parsed = parse_exports("a *\n/b *(x)\n/c *\n", "exports");
  EXPECT_EQ(parsed.problems.size(), 2u);
}

struct Match {
  const char* client;
  const char* peer;
  bool matches;
};
class NetworkMatching : public testing::TestWithParam<Match> {};

TEST_P(NetworkMatching, ByPrefix) {
  const auto parsed = good(std::string("/a ") + GetParam().client + "\n");
  EXPECT_EQ(parsed.entries[0].clients[0].matches_address(host(GetParam().peer)),
            GetParam().matches);
}

INSTANTIATE_TEST_SUITE_P(
    Table, NetworkMatching,
    testing::Values(
        Match{"192.0.2.0/24", "192.0.2.255", true}, Match{"192.0.2.0/24", "192.0.3.0", false},
        Match{"192.0.2.77/24", "192.0.2.1", true},
        Match{"192.0.2.0/255.255.255.0", "192.0.2.9", true},
        Match{"192.0.2.128/25", "192.0.2.127", false}, Match{"192.0.2.128/25", "192.0.2.128", true},
        Match{"192.0.2.1", "192.0.2.1", true}, Match{"192.0.2.1", "192.0.2.2", false},
        Match{"0.0.0.0/0", "203.0.113.7", true}, Match{"0.0.0.0/0", "2001:db8::1", false},
        Match{"192.0.2.0/24", "::ffff:192.0.2.5", true},
        Match{"2001:db8::/33", "2001:db8:7fff::1", true},
        Match{"2001:db8::/33", "2001:db8:8000::1", false},
        Match{"2001:db8::1", "2001:db8::1", true}, Match{"::/0", "192.0.2.1", true},
        Match{"*", "192.0.2.1", true}, Match{"host", "192.0.2.1", false}));

struct WildcardCase {
  const char* pattern;
  const char* name;
  bool matches;
};
class Wildcards : public testing::TestWithParam<WildcardCase> {};

TEST_P(Wildcards, Match) {
  EXPECT_EQ(wildcard_matches(GetParam().pattern, GetParam().name), GetParam().matches);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Wildcards,
    testing::Values(WildcardCase{"*.example.org", "a.example.org", true},
                    WildcardCase{"*.example.org", "a.b.example.org", true},
                    WildcardCase{"*.example.org", "example.org", false},
                    WildcardCase{"*.example.org", "a.example.org.evil", false},
                    WildcardCase{"node?", "node1", true}, WildcardCase{"node?", "node", false},
                    WildcardCase{"node[0-3]", "node2", true},
                    WildcardCase{"node[0-3]", "node4", false},
                    WildcardCase{"node[!0-3]", "node4", true},
                    WildcardCase{"node[^0-3]", "node2", false},
                    WildcardCase{"a*b*c", "axxbyyc", true}, WildcardCase{"a*b*c", "axxbyy", false},
                    WildcardCase{"[", "[", true}, WildcardCase{"*", "", true},
                    WildcardCase{"", "a", false}, WildcardCase{"**a", "bba", true}));

TEST(ExportArgument, WithoutOptionsIsReadOnlyForEveryone) {
  ParsedExports parsed = parse_export_argument("/srv/data");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.entries[0].path, "/srv/data");
  ASSERT_EQ(parsed.entries[0].clients.size(), 1u);
  EXPECT_EQ(parsed.entries[0].clients[0].kind, ExportClient::Kind::kEveryone);
  EXPECT_TRUE(parsed.entries[0].clients[0].options.read_only);
  EXPECT_TRUE(parsed.entries[0].clients[0].options.root_squash);
}

TEST(ExportArgument, OptionsStandBehindTheLastColon) {
  ParsedExports parsed = parse_export_argument("dir:rw,insecure");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.entries[0].path, "dir");
  EXPECT_FALSE(parsed.entries[0].clients[0].options.read_only);
  EXPECT_FALSE(parsed.entries[0].clients[0].options.secure);
}

TEST(ExportArgument, ADirectoryWithAColonEndsInOne) {
  ParsedExports parsed = parse_export_argument("/a:b:");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.entries[0].path, "/a:b");
}

TEST(ExportArgument, AReferralHasColonsOfItsOwn) {
  for (const char* text : {"/a:b:refer=/x@h:/y@[2001:db8::1],rw", "/a:b:rw,refer=/x@h:/y@i"}) {
    const ParsedExports parsed = parse_export_argument(text);
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    EXPECT_EQ(parsed.entries[0].path, "/a:b");
    const ExportOptions& options = parsed.entries[0].clients[0].options;
    EXPECT_TRUE(options.referral);
    EXPECT_FALSE(options.read_only);
    EXPECT_EQ(options.locations.size(), 2u);
  }
}

TEST(ExportArgument, WrongOptionsAreProblems) {
  ParsedExports parsed = parse_export_argument("/a:rww");
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_THAT(parsed.problems[0].text(),
              HasSubstr("-e /a:rww: unknown option 'rww', did you mean"));
}

TEST(ExportArgument, NoDirectoryIsAProblem) {
  EXPECT_FALSE(parse_export_argument("").ok());
  EXPECT_FALSE(parse_export_argument(":rw").ok());
}

}  // namespace
}  // namespace nfsrdma
