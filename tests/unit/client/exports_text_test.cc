// SPDX-License-Identifier: Apache-2.0
#include "client/tool/exports_text.h"

#include <gmock/gmock.h>

namespace nfsrdma::tool {
namespace {

using testing::HasSubstr;

TEST(ClientAndPath, AreSplitAtTheColonBetweenThem) {
  struct Case {
    const char* text;
    const char* client;
    const char* path;
  };
  for (const Case& c : {Case{"host:/srv", "host", "/srv"}, Case{"*:/srv/a b", "*", "/srv/a b"},
                        Case{"192.0.2.0/24:/srv", "192.0.2.0/24", "/srv"},
                        Case{"2001:db8::/32:/srv", "2001:db8::/32", "/srv"},
                        Case{"[2001:db8::/32]:/srv:/x", "2001:db8::/32", "/srv:/x"},
                        Case{"@group:/", "@group", "/"}}) {
    std::string client, path;
    EXPECT_TRUE(split_client_path(c.text, &client, &path)) << c.text;
    EXPECT_EQ(client, c.client);
    EXPECT_EQ(path, c.path);
  }
  std::string client, path;
  for (const char* text : {"", "host", "host:srv", ":/srv", "/srv", "[::1:/srv", "[]:/srv"})
    EXPECT_FALSE(split_client_path(text, &client, &path)) << text;
}

TEST(ExportLine, IsALineOfAnExportsFile) {
  const auto entry = JsonValue::parse(R"({"path":"/a b"})");
  const auto client = JsonValue::parse(R"({"client":"h","options":"rw","temporary":true})");
  EXPECT_EQ(export_line(*entry, *client), "/a\\040b\th(rw)  # temporary");
}

TEST(Explanation, MarksTheRuleThatDecides) {
  const auto exported = JsonValue::parse(R"({"path":"/a","rules":[
    {"client":"h","matches":false,"why":"it is x","decides":false,"file":"/e","line":2},
    {"client":"*","matches":true,"why":"everyone","decides":true,"file":"-e","line":0}],
    "allowed":true,"client":"*","options":"rw","privileged_port_over_tcp":true,
    "squash":{"root":{"uid":65534,"gid":65534},"user_1000":{"uid":1000,"gid":1000}}})");
  const std::string text = explanation_text(*exported);
  EXPECT_THAT(text, HasSubstr("    h                            -        it is x (/e:2)\n"));
  EXPECT_THAT(text, HasSubstr("  * *                            matches  everyone (-e)\n"));
  EXPECT_THAT(text, HasSubstr("    gets *(rw)\n"));
  EXPECT_THAT(text, HasSubstr("    root becomes 65534:65534, 1000:1000 becomes 1000:1000\n"));
  EXPECT_THAT(text, HasSubstr("only from ports below 1024"));
}

TEST(Explanation, SaysWhenNothingMatches) {
  const auto exported = JsonValue::parse(R"({"path":"/a","rules":[],"allowed":false})");
  EXPECT_THAT(explanation_text(*exported), HasSubstr("no rule matches: not exported to it"));
}

}  // namespace
}  // namespace nfsrdma::tool
