// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "config/text_file.h"

namespace nfsrdma {
namespace {

using testing::HasSubstr;

TEST(Config, EmptyFileGivesDefaults) {
  ParsedConfig parsed = parse_config("", "f");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed.config.load);
  EXPECT_EQ(parsed.config.port, 20049u);
  EXPECT_EQ(parsed.config.tcp_port, 2049u);
  EXPECT_EQ(parsed.config.fabric, "auto");
  EXPECT_EQ(parsed.config.inline_threshold, 4096u);
}

TEST(Config, TakesValuesCommentsAndQuotes) {
  ParsedConfig parsed = parse_config(
      "# comment\n"
      "  NFSoRDMA_PORT=20050   # why\n"
      "NFSoRDMA_LISTEN=\"192.0.2.1 ::1\"\r\n"
      "export NFSoRDMA_EXPORTS='/etc/a b'\\''c'\n"
      "NFSoRDMA_LOAD=no\n"
      "\n"
      "NFSoRDMA_MEMORY=1GiB\n"
      "NFSoRDMA_TCP_PORT=off\n",
      "f");
  ASSERT_TRUE(parsed.ok()) << parsed.problems.front().text();
  EXPECT_EQ(parsed.config.port, 20050u);
  EXPECT_EQ(parsed.config.listen, "192.0.2.1 ::1");
  EXPECT_EQ(parsed.config.exports_file, "/etc/a b'c");
  EXPECT_FALSE(parsed.config.load);
  EXPECT_EQ(parsed.config.memory_budget, 1u << 30);
  EXPECT_EQ(parsed.config.tcp_port, 0u);
}

TEST(Config, KeysOfTheRdmaServiceAreOnlyNoticed) {
  ParsedConfig parsed = parse_config("IPOIB_LOAD=yes\nXPRTRDMA_LOAD=yes\nSVCRDMA_LOAD=no\n", "f");
  EXPECT_TRUE(parsed.ok());
  ASSERT_EQ(parsed.notices.size(), 3u);
  EXPECT_EQ(parsed.notices[1].line, 2u);
  EXPECT_THAT(parsed.notices[1].message, HasSubstr("XPRTRDMA_LOAD"));
}

TEST(Config, AKeyThatIsSetTwiceIsAProblemThatNamesBothLines) {
  ParsedConfig parsed = parse_config("NFSoRDMA_PORT=1\n\nNFSoRDMA_PORT=2\n", "f");
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].text(),
            "f:3: NFSoRDMA_PORT is set in line 1 already; leave one of them");
}

TEST(Config, KnowsWhereEachKeyWasSet) {
  ParsedConfig parsed = parse_config("# x\nNFSoRDMA_PORT=1\nNFSoRDMA_LOAD=no\n", "f");
  EXPECT_EQ(parsed.lines.size(), 2u);
  EXPECT_EQ(parsed.lines["NFSoRDMA_PORT"], 2u);
  EXPECT_EQ(parsed.lines["NFSoRDMA_LOAD"], 3u);
}

TEST(Config, WhatIsWrittenOfAValueIsReadAsTheSame) {
  for (const char* value : {"", "/srv", "a b", "it's", "$HOME `x` \\", "\"", "#", "a'b'c"}) {
    Config config;
    config.exports_file = value;
    const std::string line =
        assignment_text("NFSoRDMA_EXPORTS", option_text(config, "NFSoRDMA_EXPORTS"));
    ParsedConfig parsed = parse_config(line + "  # why\n", "f");
    ASSERT_TRUE(parsed.ok()) << line << ": " << parsed.problems[0].text();
    EXPECT_EQ(parsed.config.exports_file, value) << line;
  }
}

TEST(Config, EveryKeyIsWrittenAndCopied) {
  // Values that are not the defaults, for every kind of key.
  ParsedConfig parsed = parse_config(
      "NFSoRDMA_LOAD=no\nNFSoRDMA_PORT=7\nNFSoRDMA_TCP_PORT=off\nNFSoRDMA_LISTEN='::1 192.0.2.1'\n"
      "NFSoRDMA_FABRIC=none\nNFSoRDMA_MEMORY=33M\nNFSoRDMA_RTMAX=5000\nNFSoRDMA_STATE_DIR='/a b'\n",
      "f");
  ASSERT_TRUE(parsed.ok());
  std::string text;
  Config copied;
  for (const OptionRow& row : option_rows()) {
    text += assignment_text(row.key, option_text(parsed.config, row.key)) + "\n";
    copy_option(copied, parsed.config, row.key);
  }
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_TCP_PORT=off\n"));
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_RTMAX=5000\n"));
  ParsedConfig again = parse_config(text, "f");
  ASSERT_TRUE(again.ok()) << again.problems[0].text();
  EXPECT_EQ(again.config, parsed.config);
  EXPECT_EQ(copied, parsed.config);
  EXPECT_FALSE(again.config == Config());
}

TEST(Config, EveryProblemIsReported) {
  ParsedConfig parsed = parse_config("A=1\n\nNFSoRDMA_PORT=0\n", "f");
  ASSERT_EQ(parsed.problems.size(), 2u);
  EXPECT_EQ(parsed.problems[0].line, 1u);
  EXPECT_EQ(parsed.problems[1].line, 3u);
}

TEST(Config, MetricsAreAtAnAddressOrASocketOrNowhere) {
  for (const char* where : {"127.0.0.1:9465", "[::1]:9465", "/run/nfs-rdma/metrics.sock", ""}) {
    const ParsedConfig parsed = parse_config(assignment_text("NFSoRDMA_METRICS", where), "f");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    EXPECT_EQ(parsed.config.metrics, where);
  }
}

struct BadLine {
  const char* line;
  unsigned column;
  const char* says;
};
class ConfigErrors : public testing::TestWithParam<BadLine> {};

TEST_P(ConfigErrors, NameTheLineAndWhatWasExpected) {
  ParsedConfig parsed =
      parse_config(std::string("# first\n") + GetParam().line + "\n", "rdma.conf");
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].file, "rdma.conf");
  EXPECT_EQ(parsed.problems[0].line, 2u);
  EXPECT_EQ(parsed.problems[0].column, GetParam().column);
  EXPECT_THAT(parsed.problems[0].message, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ConfigErrors,
    testing::Values(BadLine{"NFSoRDMA_LISTEN=\"::1, eth0\"", 0, "not a list of numeric addresses"},
                    BadLine{"NFSoRDMA_PROT=20049", 0, "did you mean NFSoRDMA_PORT?"},
                    BadLine{"nfsordma_port=20049", 0, "did you mean NFSoRDMA_PORT?"},
                    BadLine{"NFSoRDMA_LOG_LEVL=info", 0, "did you mean NFSoRDMA_LOG_LEVEL?"},
                    BadLine{"NFSoRDMA_CREDITS=0", 0, "a number from 1 to 1024"},
                    BadLine{"NFSoRDMA_CREDITS=1025", 0, "a number from 1 to 1024"},
                    BadLine{"NFSoRDMA_MEMORY=15M", 0, "a size from 16M to 1T"},
                    BadLine{"NFSoRDMA_CREDITS=99999999999999999999", 0, "a number from 1 to 1024"},
                    BadLine{"SOMETHING_ELSE=1", 0, "unknown key 'SOMETHING_ELSE'"},
                    BadLine{"NFSoRDMA_PORT=0", 0, "a number from 1 to 65535"},
                    BadLine{"NFSoRDMA_PORT=65536", 0, "a number from 1 to 65535"},
                    BadLine{"NFSoRDMA_PORT=20049x", 0, "'20049x' is not a number"},
                    BadLine{"NFSoRDMA_PORT=-1", 0, "a number from 1 to 65535"},
                    BadLine{"NFSoRDMA_PORT=", 0, "'' is not a number"},
                    BadLine{"NFSoRDMA_PORT =20049", 14, "expected '='"},
                    BadLine{"NFSoRDMA_PORT= 20049", 16, "needs quotes"},
                    BadLine{"NFSoRDMA_LOAD=maybe", 0, "yes or no"},
                    BadLine{"NFSoRDMA_FABRIC=ib", 0, "one of auto, verbs, iwarp, none"},
                    BadLine{"NFSoRDMA_CRC=yes", 0, "one of auto, require"},
                    BadLine{"NFSoRDMA_FABRIC=auto|verbs", 21, "must be quoted"},
                    BadLine{"NFSoRDMA_INLINE=512", 0, "a size from 1K to 64K"},
                    BadLine{"NFSoRDMA_INLINE=4Q", 0, "a size from 1K to 64K"},
                    BadLine{"NFSoRDMA_METRICS=localhost:9000", 0,
                            "'localhost:9000' is not a numeric"},
                    BadLine{"NFSoRDMA_METRICS=127.0.0.1", 0, "address with a port"},
                    BadLine{"NFSoRDMA_METRICS=127.0.0.1:0", 0, "address with a port"},
                    BadLine{"NFSoRDMA_METRICS=[::1:9465", 0, "address with a port"},
                    BadLine{"NFSoRDMA_METRICS=metrics.sock", 0, "the path of a socket"},
                    BadLine{"NFSoRDMA_TCP_PORT=none", 0, "a port from 1 to 65535, or off"},
                    BadLine{"NFSoRDMA_EXPORTS=$HOME/x", 18, "shell expansion"},
                    BadLine{"NFSoRDMA_EXPORTS=\"a", 18, "no closing \""},
                    BadLine{"NFSoRDMA_EXPORTS='a", 18, "no closing '"},
                    BadLine{"NFSoRDMA_EXPORTS=a b", 20, "needs quotes"},
                    BadLine{"NFSoRDMA_PORT", 14, "expected '='"},
                    BadLine{"=1", 1, "expected KEY=VALUE"},
                    BadLine{"[section]", 1, "expected KEY=VALUE"}));

TEST(Config, SizesKnowUnitsAndOverflow) {
  std::uint64_t bytes = 0;
  EXPECT_TRUE(parse_size("4096", &bytes));
  EXPECT_EQ(bytes, 4096u);
  EXPECT_TRUE(parse_size("4k", &bytes));
  EXPECT_EQ(bytes, 4096u);
  EXPECT_TRUE(parse_size("2MB", &bytes));
  EXPECT_EQ(bytes, 2u << 20);
  EXPECT_FALSE(parse_size("", &bytes));
  EXPECT_FALSE(parse_size("k", &bytes));
  EXPECT_FALSE(parse_size("1 k", &bytes));
  EXPECT_FALSE(parse_size("18446744073709551616", &bytes));
  EXPECT_FALSE(parse_size("16777216T", &bytes));
}

TEST(Config, AMissingFileIsAProblemWithItsName) {
  ParsedConfig parsed = read_config_file("/nonexistent/rdma.conf");
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_EQ(parsed.problems[0].text(),
            "/nonexistent/rdma.conf: cannot be read: No such file or directory");
}

std::string source_file(const char* name) {
  std::string text;
  ConfigProblems problems;
  EXPECT_TRUE(
      read_text_file(std::string(NFSRDMA_SOURCE_DIR) + "/" + name, 1 << 20, &text, &problems));
  return text;
}

TEST(Config, TheSampleFileIsGoodAndNamesEveryKey) {
  const std::string sample = source_file("config/files/rdma.conf");
  ParsedConfig parsed = parse_config(sample, "sample");
  EXPECT_TRUE(parsed.ok());
  for (const OptionRow& row : option_rows())
    EXPECT_THAT(sample, HasSubstr(std::string(row.key)));
}

TEST(Config, WhatTheSampleFileCommentsOutIsValid) {
  std::string sample = source_file("config/files/rdma.conf");
  for (std::size_t at = 0; (at = sample.find("\n#NFSo", at)) != std::string::npos;) {
    sample.erase(at + 1, 1);
  }
  ParsedConfig parsed = parse_config(sample, "sample");
  EXPECT_TRUE(parsed.ok()) << parsed.problems.front().text();
  EXPECT_TRUE(parsed.notices.empty());
}

}  // namespace
}  // namespace nfsrdma
