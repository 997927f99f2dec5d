// SPDX-License-Identifier: Apache-2.0
#include "config/exports_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/export_text.h"

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

TEST(ExportsFile, FsidsAreNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(good("/a *(fsid=00)\n").entries[0].clients[0].options.fsid, "0");
  EXPECT_EQ(good("/a *(fsid=05)\n").entries[0].clients[0].options.fsid, "5");
  // But UUIDs, also one that could be taken for a number, stay what they are.
  const std::string uuid = std::string(31, '0') + "5";
  EXPECT_EQ(good("/a *(fsid=" + uuid + ")\n").entries[0].clients[0].options.fsid, uuid);
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

TEST(ExportsFile, PathsInOptionsMayBeQuotedOrEscaped) {
  for (const char* client :
       {"*(rw,mp=/a\\040b)", "*(rw,mp=\"/a b\")", "*(rw,\"mp=/a b\")", "\"*(rw,mp=/a b)\"",
        "\"*\"(mp=/a\" \"b,rw)", "-rw,mp=\"/a b\" *", "-rw,mp=/a\\040b *"}) {
    const auto clients = good("/x " + std::string(client) + " second\n").entries[0].clients;
    ASSERT_EQ(clients.size(), 2u) << client;
    EXPECT_EQ(clients[0].options.mountpoint_path, "/a b") << client;
    EXPECT_FALSE(clients[0].options.read_only) << client;
  }
  const auto option = [](const char* text) { return good(text).entries[0].clients[0].options; };
  EXPECT_EQ(option("/x *(refer=/a\\040b@h)\n").locations.at(0).path, "/a b");
  EXPECT_EQ(option("/x *(mp=/a\\054b\\051)\n").mountpoint_path, "/a,b)");
  EXPECT_EQ(option("/x *(mp=\"/a # \")\n").mountpoint_path, "/a # ");
}

TEST(ExportsFile, TrailingSlashesAreTakenOff) {
  EXPECT_EQ(good("/a/// *\n").entries[0].path, "/a");
  EXPECT_EQ(good("/ *\n").entries[0].path, "/");
}

TEST(ExportsFile, PathsAreTakenInNormalForm) {
  for (const char* path : {"/x/b", "/x//b", "/x/b/", "/x/./b/.", "//x/b//", "/x/a/../b", "/../x/b",
                           "/x/b/c/d/../.."}) {
    EXPECT_EQ(good(std::string(path) + " *\n").entries.at(0).path, "/x/b") << path;
  }
  EXPECT_EQ(normal_path("/.."), "/");
  EXPECT_EQ(normal_path("/..x/...//"), "/..x/...");
  EXPECT_EQ(normal_path("x/../y"), "x/../y");
  // Two ways to write it, one export.
  const ParsedExports both = good("/x/b 192.0.2.1\n/x/a/../b 192.0.2.2\n");
  ASSERT_EQ(both.entries.size(), 1u);
  EXPECT_EQ(both.entries[0].clients.size(), 2u);
  ASSERT_EQ(both.notices.size(), 1u);
  EXPECT_EQ(both.notices[0].text(), "exports:2:1: '/x/a/../b' is taken for /x/b");
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
      good(
          "/a "
          "*(rw,refer=/x//y/@one.example.org+192.0.2.1.8.1:/@[2001:db8::1]+[fe80::1%eth0],sync)\n")
          .entries[0]
          .clients[0]
          .options;
  EXPECT_TRUE(o.referral);
  ASSERT_EQ(o.locations.size(), 2u);
  EXPECT_EQ(o.locations[0], (FsLocation{"/x/y", {"one.example.org", "192.0.2.1.8.1"}}));
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

TEST(ExportsFile, NetgroupsAreClients) {
  const auto clients = good("/a @trusted(rw) @Other\n").entries[0].clients;
  ASSERT_EQ(clients.size(), 2u);
  EXPECT_EQ(clients[0].kind, ExportClient::Kind::kNetgroup);
  EXPECT_EQ(clients[0].netgroup(), "trusted");
  EXPECT_FALSE(clients[0].options.read_only);
  EXPECT_EQ(clients[1].netgroup(), "Other");
}

TEST(ExportsFile, KindsDecideInTheOrderOfExports5) {
  const auto clients =
      good("/a * @g *.example.org 192.0.2.0/24 h 192.0.2.1 2001:db8::1/128\n").entries[0].clients;
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_GT(clients[i - 1].rank(), clients[i].rank()) << clients[i].text;
  // Single addresses go with names.
  EXPECT_EQ(clients[4].rank(), clients[5].rank());
  EXPECT_EQ(clients[4].rank(), clients[6].rank());
}

TEST(ExportsFile, ANetworkBehindOneThatHasItIsNoticed) {
  const ParsedExports covered = good("/a 192.0.0.0/16(ro) 192.0.2.0/24(rw)\n");
  ASSERT_EQ(covered.notices.size(), 1u);
  EXPECT_EQ(covered.notices[0].text(),
            "exports:1:21: 192.0.2.0/24 never counts: 192.0.0.0/16 stands before it and has all of "
            "it; of networks the first that matches decides");
  EXPECT_TRUE(good("/a 192.0.2.0/24(rw) 192.0.0.0/16(ro)\n").notices.empty());
  EXPECT_TRUE(good("/a 192.0.0.0/16(rw) 192.0.2.1(ro)\n").notices.empty());
  // In a line of its own it is not different.
  const ParsedExports below = good("/a 192.0.0.0/16(ro)\n/a *(ro) 192.0.2.0/24(rw)\n");
  ASSERT_EQ(below.notices.size(), 1u);
  EXPECT_THAT(below.notices[0].text(), HasSubstr("exports:2:10: 192.0.2.0/24 never counts"));
  EXPECT_TRUE(good("/a 192.0.2.0/24(rw)\n/a 192.0.0.0/16(ro)\n").notices.empty());
}

TEST(ExportsFile, NetworksAreTheSameHoweverTheyAreWritten) {
  for (const char* text : {"/a 192.0.2.7(rw)\n/a 192.0.2.7/32(ro)\n",
                           "/a 192.0.2.0/24(rw)\n/a 192.0.2.9/255.255.255.0(ro)\n",
                           "/a 2001:db8::(rw)\n/a 2001:DB8:0::0/128(ro)\n"}) {
    const ParsedExports parsed = good(text);
    EXPECT_EQ(parsed.entries[0].clients.size(), 1u) << text;
    ASSERT_EQ(parsed.notices.size(), 1u) << text;
    EXPECT_THAT(parsed.notices[0].text(), HasSubstr("already in exports:1, which counts"));
  }
  EXPECT_TRUE(good("/a 0.0.0.0/0(rw)\n/a ::/0(ro)\n").notices.empty()) << "of another family";
}

TEST(ExportsFile, WithoutSecBothFlavorsAreServedAlike) {
  const ExportOptions o = good("/a *(rw)\n").entries[0].clients[0].options;
  EXPECT_TRUE(o.serves_sys);
  EXPECT_TRUE(o.serves_none);
  EXPECT_FALSE(o.read_only);
  EXPECT_FALSE(o.none_read_only);
}

TEST(ExportsFile, KerberosAloneIsAnErrorWithoutANoticeBeside) {
  const ParsedExports parsed = parse_exports("/a *(rw) h(sec=krb5,rw)\n", "exports");
  EXPECT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.notices.size(), 0u);
}

TEST(ExportsFile, KerberosInAListWithSysIsNoticed) {
  const ParsedExports parsed = good("/a *(sec=krb5p:krb5:sys,rw)\n");
  const ExportOptions o = parsed.entries[0].clients[0].options;
  EXPECT_TRUE(o.serves_sys);
  EXPECT_FALSE(o.serves_none);
  EXPECT_FALSE(o.read_only);
  ASSERT_EQ(parsed.notices.size(), 1u);
  EXPECT_EQ(parsed.notices[0].message, "sec: krb5p, krb5 is not served, nor what is said for it");
}

TEST(ExportsFile, OptionsBehindASecAreOfItsFlavorsAlone) {
  const ExportOptions o =
      good("/a *(anonuid=7,sec=krb5,rw,no_root_squash,sec=sys,ro,sec=none,rw,sync)\n")
          .entries[0]
          .clients[0]
          .options;
  EXPECT_TRUE(o.read_only);
  EXPECT_TRUE(o.root_squash);
  EXPECT_TRUE(o.serves_none);
  EXPECT_FALSE(o.none_read_only);
  EXPECT_EQ(o.anon_uid, 7u);
}

TEST(ExportsFile, OptionsBeforeTheFirstSecAreOfAll) {
  const ExportOptions o =
      good("/a *(rw,no_root_squash,sec=none,ro,sec=sys)\n").entries[0].clients[0].options;
  EXPECT_FALSE(o.read_only);
  EXPECT_FALSE(o.root_squash);
  EXPECT_TRUE(o.none_read_only);
}

TEST(ExportsFile, ASecOfTheClientReplacesThatOfTheDefaults) {
  const ExportOptions o = good("/a -sec=sys,rw *(sec=none)\n").entries[0].clients[0].options;
  EXPECT_FALSE(o.serves_sys);
  EXPECT_TRUE(o.serves_none);
}

TEST(ExportsFile, ClientsOfOnePathComeTogether) {
  const ParsedExports parsed = good("/a one(rw)\n/b *\n/a/ two(ro)\n");
  ASSERT_EQ(parsed.entries.size(), 2u);
  ASSERT_EQ(parsed.entries[0].clients.size(), 2u);
  EXPECT_EQ(parsed.entries[0].clients[1].text, "two");
  EXPECT_EQ(parsed.entries[0].clients[1].line, 3u);
  EXPECT_TRUE(parsed.notices.empty());
}

TEST(ExportsFile, OfAClientThatIsNamedInTwoLinesTheFirstCountsWithANotice) {
  const ParsedExports parsed = good("/a *(rw)\n/a *(ro)\n/a *(rw)\n");
  ASSERT_EQ(parsed.entries.size(), 1u);
  ASSERT_EQ(parsed.entries[0].clients.size(), 1u);
  EXPECT_FALSE(parsed.entries[0].clients[0].options.read_only);
  ASSERT_EQ(parsed.notices.size(), 2u);
  EXPECT_EQ(parsed.notices[0].text(),
            "exports:2:4: /a is exported to * already in exports:1, which counts; the options "
            "differ");
  EXPECT_EQ(parsed.notices[1].text(),
            "exports:3:4: /a is exported to * already in exports:1, which counts");
}

class ExportsDirectory : public testing::Test {
 protected:
  ExportsDirectory() {
    char name[] = "/tmp/exports-XXXXXX";
    home_ = ::mkdtemp(name);
    file = home_ + "/exports";
  }
  ~ExportsDirectory() override { std::filesystem::remove_all(home_); }
  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path path(home_ + "/" + name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string paths() {
    const ParsedExports parsed = read_exports_files(file);
    for (const ConfigProblem& problem : parsed.problems)
      ADD_FAILURE() << problem.text();
    std::string out;
    for (const ExportEntry& entry : parsed.entries)
      out += entry.path + " ";
    return out;
  }
  std::string home_;
  std::string file;
};

TEST_F(ExportsDirectory, ComesBehindTheFileInTheOrderOfVersions) {
  put("exports", "/first *\n");
  put("exports.d/10.exports", "/ten *\n");
  put("exports.d/9.exports", "/nine *\n");
  put("exports.d/.hidden.exports", "/hidden *\n");
  put("exports.d/readme", "/readme *\n");
  put("exports.d/old.exports~", "/old *\n");
  std::filesystem::create_directory(file + ".d/directory.exports");
  EXPECT_EQ(paths(), "/first /nine /ten ");
}

TEST_F(ExportsDirectory, NeedsNoFileBesideIt) {
  put("exports.d/a.exports", "/a *\n");
  EXPECT_EQ(paths(), "/a ");
}

TEST_F(ExportsDirectory, WithoutBothTheFileIsMissed) {
  const ParsedExports parsed = read_exports_files(file);
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].file, file);
}

TEST_F(ExportsDirectory, ClientsOfOnePathComeTogetherAcrossFiles) {
  put("exports", "/a one(rw)\n");
  put("exports.d/more.exports", "\n/a two(ro) one(ro)\n");
  const ParsedExports parsed = read_exports_files(file);
  ASSERT_EQ(parsed.entries.size(), 1u);
  ASSERT_EQ(parsed.entries[0].clients.size(), 2u);
  EXPECT_EQ(parsed.entries[0].clients[1].file, file + ".d/more.exports");
  ASSERT_EQ(parsed.notices.size(), 1u);
  EXPECT_THAT(parsed.notices[0].text(),
              HasSubstr("more.exports:2:12: /a is exported to one already"));
}

TEST_F(ExportsDirectory, AMistakeInItRefusesAll) {
  put("exports", "/a *\n");
  put("exports.d/bad.exports", "/b *(rww)\n");
  std::filesystem::create_symlink("/nonexistent", file + ".d/dangling.exports");
  const ParsedExports parsed = read_exports_files(file);
  ASSERT_EQ(parsed.problems.size(), 2u);
  EXPECT_THAT(parsed.problems[0].text(), HasSubstr("bad.exports:1:6: unknown option 'rww'"));
  EXPECT_THAT(parsed.problems[1].text(), HasSubstr("dangling.exports: cannot be read"));
}

TEST(ExportText, OptionsAreReadAsTheSame) {
  for (const char* options :
       {"", "rw", "ro,async,insecure,all_squash,anonuid=7,anongid=8", "rw,no_root_squash,nohide",
        "crossmnt,subtree_check,no_wdelay,insecure_locks,nordirplus", "mp", "mp=/m,fsid=root",
        "fsid=12345678-1234-1234-1234-1234567890ab", "refer=/x@h+i:/y@[2001:db8::1]",
        "replicas=/x@h", "mp=/\\040\\054\\050\\051\\134\\042\\043\\012\\177,ro",
        "refer=/a\\040b\\054@h:/c\\011@i", "sec=sys,rw", "sec=none",
        "sec=none,rw,sec=sys,ro,all_squash", "anonuid=-2", "rw,sec=sys", "rw,sec=none"}) {
    const ExportOptions o =
        good("/a *(" + std::string(options) + ")\n").entries[0].clients[0].options;
    const ExportOptions again =
        good("/a *(" + options_text(o) + ")\n").entries[0].clients[0].options;
    EXPECT_EQ(o, again) << options << " -> " << options_text(o);
  }
}

TEST(ExportText, OptionsAreNamedOneByOne) {
  EXPECT_EQ(options_text(ExportOptions()),
            "sync,wdelay,hide,secure,no_subtree_check,secure_locks,anonuid=65534,anongid=65534,ro,"
            "root_squash,no_all_squash");
}

TEST(ExportText, OnlyWhatDiffersIsShown) {
  ExportOptions before, after;
  after.read_only = after.none_read_only = false;
  after.fsid = "7";
  EXPECT_EQ(changed_options(before, after),
            (std::pair<std::string, std::string>("ro", "fsid=7,rw")));
  EXPECT_EQ(changed_options(after, after), (std::pair<std::string, std::string>("-", "-")));
}

TEST(ExportText, PathsAreReadAsTheSame) {
  for (const char* path : {"/a b", "/a\"b", "/a\\b", "/#", "/a\tb", "/\377"})
    EXPECT_EQ(good(escaped_path(path) + " *\n").entries[0].path, path);
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
                    BadExport{"/a *(anonuid=-1)\n", 1, 6, "anonuid: '-1' is wrong, expected a"},
                    BadExport{"/a *(anonuid=4294967295)\n", 1, 6, "a user id (number, but not -1)"},
                    BadExport{"/a *(rw,anongid=-1)\n", 1, 9, "anongid: '-1' is wrong"},
                    BadExport{"/a *(anongid=4294967295)\n", 1, 6,
                              "a group id (number, but not -1)"},
                    BadExport{"/a *(fsid=zero)\n", 1, 6, "a number, root, or a UUID"},
                    BadExport{"/a *(fsid=5)\n/b 192.0.2.1 192.0.2.2(fsid=5)\n", 2, 14,
                              "fsid=5 is that of /a in exports:1 already: give /b another"},
                    BadExport{"/a *(fsid=root)\n/b *(fsid=0)\n", 2, 4, "fsid=0 is that of /a"},
                    BadExport{"/a *(fsid=5)\n/b *(fsid=05)\n", 2, 4, "fsid=5 is that of /a"},
                    BadExport{"/a 192.0.2.1(fsid=5) 192.0.2.2(fsid=6)\n", 1, 22,
                              "fsid=6 for /a here and fsid=5 in exports:1: give it one"},
                    BadExport{"/a *(sec=krb5)\n", 1, 6, "expected sys, none or a list"},
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
                    BadExport{"/a *(rw)#x \\\n/b *\n", 1, 9, "after ')'"},
                    BadExport{"/a @(rw)\n", 1, 4, "expected @NAME"},
                    BadExport{"/a @a,b(rw)\n", 1, 4, "expected @NAME"},
                    BadExport{"/a 192.0.2.*(rw)\n", 1, 4, "such as 192.0.2.0/24"},
                    BadExport{"/a 10.*(rw)\n", 1, 4, "such as 10.0.0.0/8"},
                    BadExport{"/a 192.168.*.*(rw)\n", 1, 4, "such as 192.168.0.0/16"},
                    BadExport{"/a 192.0.2.1?(rw)\n", 1, 4, "wildcards match names, never"},
                    BadExport{"/a [2001:db8::1](rw)\n", 1, 4, "without them"},
                    BadExport{"/a 2001:db8::/ffff::1\n", 1, 4, "contiguous netmask"},
                    BadExport{"/a *(sec=krb5:krb5i)\n", 1, 6, "Kerberos is not supported"},
                    BadExport{"/a *(rw,sec=krb5,ro)\n", 1, 9, "Kerberos is not supported"},
                    BadExport{"/a *(sec=sys:krb6)\n", 1, 6, "'krb6' is no flavour"},
                    BadExport{"/a *(sec=sys:)\n", 1, 6, "'' is no flavour"},
                    BadExport{"/a -sec=krb5 *\n", 1, 5, "Kerberos is not supported"},
                    BadExport{"/a *(xprtsec=tls:mtls)\n", 1, 6, "RPC-with-TLS"},
                    BadExport{"/a gss/krb5(rw)\n", 1, 4, "not supported"},
                    BadExport{"/a 192.0.2.1/33\n", 1, 4, "expected /0 to /32"},
                    BadExport{"/a 192.0.2.1/255.0.255.0\n", 1, 4, "contiguous netmask"},
                    BadExport{"/a 2001:db8::/129\n", 1, 4, "expected /0 to /128"},
                    BadExport{"/a 2001:db8::x\n", 1, 4, "no IPv4 or IPv6 address"},
                    BadExport{"/a host/24\n", 1, 4, "no IPv4 or IPv6 address"},
                    BadExport{"/a ho=st\n", 1, 4, "no host name has"},
                    BadExport{"/a * *\n", 1, 6, "named twice"},
                    BadExport{"/a 192.0.2.7 192.0.2.7/32\n", 1, 14,
                              "192.0.2.7/32 is named twice for /a, as 192.0.2.7"},
                    BadExport{"/a *(rw,mp=/a\\4)\n", 1, 14, "three octal digits"},
                    BadExport{"/a *(rw,mp=/a\\000)\n", 1, 9, "NUL in an option"},
                    BadExport{"/a *(rw,mp=\"/a b)\n", 1, 12, "no closing '\"'"},
                    BadExport{"/a *(rw,mp=\"/a)b\")\n", 1, 12, "no closing '\"'"},
                    BadExport{"/a \"*(rw) b\n", 1, 4, "no closing '\"'"},
                    BadExport{"/a \"*\n", 1, 4, "no closing '\"'"},
                    BadExport{"/a -mp=\"/b *\n", 1, 8, "no closing '\"'"},
                    BadExport{"/a *(mp=/x\") # \\\n/b *\n", 1, 11, "no closing '\"'"},
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
        Match{"2001:db8::/ffff:ffff::", "2001:db8:1::1", true},
        Match{"2001:db8::/ffff:ffff::", "2001:db9::1", false},
        Match{"2001:db8::/ffff:ffff:8000::", "2001:db8:8000::1", false},
        Match{"192.0.2.1/32", "192.0.2.1", true}, Match{"2001:db8::1", "2001:db8::1", true},
        Match{"::/0", "192.0.2.1", false}, Match{"*", "192.0.2.1", true},
        Match{"host", "192.0.2.1", false}));

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

TEST(ExportArgument, SecHasColonsOfItsOwn) {
  for (const char* text : {"/a:b:sec=sys:none,rw", "/a:b:rw,sec=sys:none"}) {
    const ParsedExports parsed = parse_export_argument(text);
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    EXPECT_EQ(parsed.entries[0].path, "/a:b");
    EXPECT_FALSE(parsed.entries[0].clients[0].options.none_read_only);
  }
  EXPECT_THAT(parse_export_argument("/a:sec=krb5").problems.at(0).message, HasSubstr("Kerberos"));
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
