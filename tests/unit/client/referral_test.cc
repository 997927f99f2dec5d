// SPDX-License-Identifier: Apache-2.0
// What a server says of where a file system is (RFC 8881 11.16, RFC 7530 8), checked and computed
// with: hosts, ports, names and paths.
#include "client/referral.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

ReferralTarget server(std::string_view text) {
  ReferralTarget target;
  EXPECT_TRUE(parse_referral_server(text, &target)) << text;
  return target;
}

TEST(ReferralServer, IsANameOrAnAddress) {
  EXPECT_EQ(server("fs-2.example.org"), (ReferralTarget{"fs-2.example.org", 0, ""}));
  EXPECT_EQ(server("192.0.2.1"), (ReferralTarget{"192.0.2.1", 0, ""}));
  EXPECT_EQ(server("2001:db8::7"), (ReferralTarget{"2001:db8::7", 0, ""}));
  EXPECT_EQ(server("::1"), (ReferralTarget{"::1", 0, ""}));
  EXPECT_EQ(server("fe80::1%eth0"), (ReferralTarget{"fe80::1%eth0", 0, ""}));
}

/// RFC 8881 11.16: a universal address may end in ".p1.p2", its port.
TEST(ReferralServer, AnAddressMayHaveItsPort) {
  EXPECT_EQ(server("192.0.2.1.78.82"), (ReferralTarget{"192.0.2.1", 20050, ""}));
  EXPECT_EQ(server("2001:db8::7.8.1"), (ReferralTarget{"2001:db8::7", 2049, ""}));
  EXPECT_EQ(server("::ffff:192.0.2.1"), (ReferralTarget{"::ffff:192.0.2.1", 0, ""}));
  EXPECT_EQ(server("::ffff:192.0.2.1.78.81"), (ReferralTarget{"::ffff:192.0.2.1", 20049, ""}));
  EXPECT_EQ(server("192.0.2.1.0.0").port, 0)
      << "no port: whatever that is, no server is asked there";
  EXPECT_EQ(server("192.0.2.1.256.1").host, "192.0.2.1.256.1") << "no octet, so some name";
}

TEST(ReferralServer, NoNameIsTheServerItself) {
  EXPECT_EQ(server(""), (ReferralTarget{"", 0, ""}));
}

TEST(ReferralServer, WhatNoHostIsCalledIsNone) {
  ReferralTarget target;
  const std::string long_name(256, 'a');
  for (std::string_view bad :
       {std::string_view("a b"), std::string_view("-o"), std::string_view("a/b"),
        std::string_view("a\0b", 3), std::string_view("a\nb"), std::string_view("[::1]"),
        std::string_view("a:b"), std::string_view("host:2049"), std::string_view(".."),
        std::string_view("\xc3\xa4"), std::string_view("a,b"), std::string_view("a;b"),
        std::string_view("\x1b[2J"), std::string_view(long_name)}) {
    EXPECT_FALSE(parse_referral_server(bad, &target)) << bad;
  }
}

TEST(ReferralComponent, NeverLeadsUpOrOut) {
  std::string path;
  for (std::string_view bad : {std::string_view("."), std::string_view(".."), std::string_view("/"),
                               std::string_view("a/b"), std::string_view("a\0b", 3)}) {
    EXPECT_FALSE(append_component(bad, &path)) << bad;
  }
  EXPECT_EQ(path, "");
  EXPECT_TRUE(append_component("a", &path) && append_component("", &path) &&
              append_component("...", &path));
  EXPECT_EQ(path, "/a/...");
}

TEST(ReferralComponent, PathsAreBounded) {
  std::string path;
  while (append_component(std::string(254, 'x'), &path)) {
  }
  EXPECT_LE(path.size(), kLongestReferralPath);
  EXPECT_GT(path.size(), kLongestReferralPath - 255);
}

std::string there(const std::string& root, const std::string& met, const std::string& rest,
                  const std::string& target) {
  const ReferralMet found{{root, {}, 0, 0}, met, rest};
  Result<std::string> path = path_at_target(found, {"h", 0, target});
  return path.ok() ? *path : std::string(::strerrorname_np(path.error().sys));
}

/// RFC 8881 11.16: what stands behind fs_root stands behind rootpath.
TEST(ReferralPath, WhatIsBehindTheRootIsBehindThatThere) {
  EXPECT_EQ(there("/a/b", "/a/b", "", "/x"), "/x");
  EXPECT_EQ(there("/a/b", "/a/b", "c/d", "/x/y"), "/x/y/c/d");
  EXPECT_EQ(there("/a", "/a/b", "c", "/x"), "/x/b/c");
  EXPECT_EQ(there("/", "/a/b", "c", "/x"), "/x/a/b/c");
  EXPECT_EQ(there("/a", "/a", "", "/"), "/");
  EXPECT_EQ(there("/a", "/a", "b", "/"), "/b");
  EXPECT_EQ(there("/", "/", "", "/"), "/");
}

/// Linux's client says the same.
TEST(ReferralPath, ARootThatIsNotOnTheWayLeadsNowhere) {
  EXPECT_EQ(there("/b", "/a/b", "", "/x"), "ENOENT");
  EXPECT_EQ(there("/a/b", "/a/bc", "", "/x"), "ENOENT") << "whole names count";
  EXPECT_EQ(there("/a/b/c", "/a/b", "", "/x"), "ENOENT");
}

TEST(ReferralPath, StaysBoundedAndBelow) {
  EXPECT_EQ(there("/a", "/a", "../b", "/x"), "ENAMETOOLONG");
  EXPECT_EQ(there("/a", "/a", std::string(4000, 'y'), "/" + std::string(1000, 'x')),
            "ENAMETOOLONG");
}

TEST(ReferralText, NamesHostsAndPathsButNotAllOfMany) {
  Referral referral;
  referral.targets = {{"one", 0, "/a"}, {"2001:db8::1", 20050, "/b"}, {"", 0, "/c"}};
  EXPECT_EQ(referral.text(), "one:/a or [2001:db8::1] port 20050:/b or the same server:/c");
  referral.targets.assign(64, {"h", 0, "/"});
  EXPECT_EQ(referral.text(), "h:/ or h:/ or h:/ or h:/ or 60 others");
}

TEST(ReferralText, TheDirectoryIsShownAsLinuxShowsIt) {
  const Attributes attributes = Referral{"/a", {}, 77, 5}.attributes();
  EXPECT_EQ(attributes.type, FileType::kDirectory);
  EXPECT_EQ(attributes.mode, 0555u);
  EXPECT_EQ(attributes.fsid, 77u);
  EXPECT_EQ(attributes.fileid, 5u);
}

TEST(ReferralError, IsToldFromAnObjectThatMoved) {
  EXPECT_TRUE(is_referral_met(kReferralMet));
  EXPECT_FALSE(is_referral_met({Errc::kSystem, EREMOTE, "another"}));
  EXPECT_FALSE(is_referral_met({Errc::kSystem, ENOENT, kReferralMet.where}));
}

}  // namespace
}  // namespace nfsrdma
