// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace nfsrdma {
namespace {

std::string quoted(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
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
