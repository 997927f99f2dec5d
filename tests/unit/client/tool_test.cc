// SPDX-License-Identifier: Apache-2.0
// The small parts of the tool.
#include <gtest/gtest.h>

#include "client/tool/arguments.h"
#include "client/tool/format.h"
#include "client/tool/histogram.h"
#include "client/tool/json_value.h"
#include "client/tool/progress.h"
#include "client/tool/side.h"
#include "client/tool/status_verdict.h"

namespace nfsrdma::tool {
namespace {

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4k"), 4096u);
  EXPECT_EQ(parse_bytes("1M"), 1048576u);
  EXPECT_EQ(parse_bytes("2g"), 2147483648u);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text : {"", "k", "-1", "1kb", "1.5M", "1x", "99999999999999999T"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Histogram, PercentilesAreWithinTheirBuckets) {
  Histogram histogram;
  for (std::uint64_t i = 1; i <= 100'000; ++i)
    histogram.add(i);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(0.5)), 50'000, 50'000 * 0.016);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(0.99)), 99'000, 99'000 * 0.016);
  EXPECT_EQ(histogram.least(), 1u);
  EXPECT_EQ(histogram.most(), 100'000u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50'000.5);
}

TEST(Histogram, TakesTheLargestValues) {
  Histogram histogram;
  histogram.add(UINT64_MAX);
  histogram.add(0);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.percentile(1), UINT64_MAX);
}

TEST(JsonValue, ReadsWhatTheStatusDocumentHas) {
  auto value = JsonValue::parse(R"({"a":[{"b":"x\"\u00e4"},2.5],"c":true,"d":null})");
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"].items()[0]["b"].text(), "x\"\xc3\xa4");
  EXPECT_DOUBLE_EQ((*value)["a"].items()[1].number(), 2.5);
  EXPECT_TRUE((*value)["c"].truth());
  EXPECT_EQ((*value)["none"].kind(), JsonValue::Kind::kNull);
}

TEST(JsonValue, RefusesBrokenText) {
  for (const char* text : {"", "{", "[1,", "{\"a\"}", "\"x", "1 2", "tru", "\"\\u12\"", "nul"}) {
    EXPECT_FALSE(JsonValue::parse(text)) << text;
  }
}

TEST(JsonValue, BoundsItsDepth) {
  EXPECT_FALSE(JsonValue::parse(std::string(100'000, '[')));
}

int verdict_of(const std::string& connections) {
  return status_verdict(*JsonValue::parse("{\"connections\":[" + connections + "]}"));
}

TEST(StatusVerdict, SaysWhetherRdmaIsInUse) {
  EXPECT_EQ(verdict_of(R"({"fabric":"iwarp"},{"fabric":"verbs"})"), 0);
  EXPECT_EQ(verdict_of(R"({"fabric":"iwarp"},{"fabric":"tcp"})"), 2);
  EXPECT_EQ(verdict_of(R"({"fabric":"tcp"})"), 3);
  EXPECT_EQ(verdict_of(""), 4);
}

TEST(ProgressLine, ShowsShareRateAndRest) {
  const std::string line = progress_line(50 << 20, 100 << 20, 5, 79);
  EXPECT_NE(line.find("50 %"), std::string::npos) << line;
  EXPECT_NE(line.find("10.0 MiB/s"), std::string::npos) << line;
  EXPECT_NE(line.find("0:05 left"), std::string::npos) << line;
  EXPECT_LE(line.size(), 79u);
}

TEST(ProgressLine, FitsNarrowTerminals) {
  EXPECT_LE(progress_line(1, 2, 1, 20).size(), 20u);
}

TEST(ModeText, ShowsTypeAndSpecialBits) {
  EXPECT_EQ(mode_text(S_IFDIR | 01755), "drwxr-xr-t");
  EXPECT_EQ(mode_text(S_IFREG | 04644), "-rwSr--r--");
  EXPECT_EQ(mode_text(S_IFLNK | 0777), "lrwxrwxrwx");
}

TEST(LastComponent, IgnoresSlashesAtTheEnd) {
  EXPECT_EQ(last_component("a/b/"), "b");
  EXPECT_EQ(last_component("/"), "");
  EXPECT_EQ(last_component("nfs://h/x/y"), "y");
}

}  // namespace
}  // namespace nfsrdma::tool
