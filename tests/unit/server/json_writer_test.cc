// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "rpcrdma/base/json_value.h"

namespace nfsrdma {
namespace {

std::string quoted(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

TEST(JsonValue, CountsAreWhatWasWritten) {
  const auto count = [](const char* text) {
    const auto value = JsonValue::parse(text);
    return value ? value->count() : 4711;
  };
  EXPECT_EQ(count("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(count("9007199254740993"), 9007199254740993u);  // 2^53 + 1
  EXPECT_EQ(count("18446744073709551616"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(count("1e300"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(count("2.5e3"), 2500u);
  EXPECT_EQ(count("2.9"), 2u);
  EXPECT_EQ(count("-1"), 0u);
  EXPECT_EQ(count("\"7\""), 0u);
}

TEST(JsonWriter, PutsCommasWhereTheyBelong) {
  JsonWriter json;
  json.begin_object();
  json.field("a", 1);
  json.key("b");
  json.begin_array();
  json.value(true);
  json.begin_object();
  json.end_object();
  json.begin_array();
  json.end_array();
  json.null();
  json.end_array();
  json.field("c", "x");
  json.end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[true,{},[],null],"c":"x"})");
}

TEST(JsonWriter, EscapesWhatMustBe) {
  EXPECT_EQ(quoted("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
}

TEST(JsonWriter, KeepsGoodUtf8AndReplacesBad) {
  EXPECT_EQ(quoted("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(quoted(bad).substr(0, 4), "\"\xef\xbf\xbd") << bad;
  }
}

TEST(JsonWriter, NumbersAreNumbers) {
  JsonWriter json;
  json.begin_array();
  json.value(std::numeric_limits<std::uint64_t>::max());
  json.value(-1);
  json.value(0.5);
  json.value(std::numeric_limits<double>::infinity());
  json.end_array();
  EXPECT_EQ(json.text(), "[18446744073709551615,-1,0.5,null]");
}

}  // namespace
}  // namespace nfsrdma
