// SPDX-License-Identifier: Apache-2.0
// Addresses with a port: what is taken, and that a slip is refused and not taken for something
// else.
#include "config/endpoint.h"

#include <gtest/gtest.h>

#include <string>

namespace nfsrdma {
namespace {

/// The address as text, "no" when it is refused.
std::string parsed(std::string_view text) {
  SocketAddress address;
  return parse_endpoint(text, &address) ? address.text() : "no";
}

TEST(EndpointTest, AnAddressOfVersion4) {
  EXPECT_EQ(parsed("127.0.0.1:9465"), "127.0.0.1:9465");
  EXPECT_EQ(parsed("0.0.0.0:1"), "0.0.0.0:1");
  EXPECT_EQ(parsed("192.0.2.255:65535"), "192.0.2.255:65535");
}

TEST(EndpointTest, AnAddressOfVersion6InBrackets) {
  EXPECT_EQ(parsed("[::1]:9465"), "[::1]:9465");
  EXPECT_EQ(parsed("[::]:9465"), "[::]:9465");
  EXPECT_EQ(parsed("[2001:DB8::0:2]:80"), "[2001:db8::2]:80");
}

TEST(EndpointTest, AnAddressOfALinkKeepsTheLink) {
  EXPECT_EQ(parsed("[fe80::1%lo]:9465"), "[fe80::1%lo]:9465");
  EXPECT_EQ(parsed("[fe80::1%nosuchlink]:9465"), "no");
}

/// Its last group would be taken for the port, and another address be listened on.
TEST(EndpointTest, AnAddressOfVersion6NeedsItsBrackets) {
  for (const char* text : {"::1:9465", "2001:db8::2:80", "fe80::2:1", "::1", "::"})
    EXPECT_EQ(parsed(text), "no") << text;
}

TEST(EndpointTest, BracketsStandInPairsOnceAndAroundVersion6) {
  for (const char* text : {"[::1:9465", "::1]:9465", "[[::1]]:9465", "[::1]]:9465", "[]:9465",
                           "[:9465", "]:9465", "[127.0.0.1]:9465", "x[::1]:9465", "[::1]x:9465"})
    EXPECT_EQ(parsed(text), "no") << text;
}

TEST(EndpointTest, NamesAreNotLookedUp) {
  for (const char* text : {"localhost:9465", "*:9465", ":9465", "example.com:80", "/run/socket:1"})
    EXPECT_EQ(parsed(text), "no") << text;
}

TEST(EndpointTest, ThePortIsThere) {
  for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "[::1]", "[::1]:", "9465"})
    EXPECT_EQ(parsed(text), "no") << text;
}

TEST(EndpointTest, ThePortIsANumberThatAPortCanBe) {
  for (const char* port :
       {"0", "65536", "99999999999999999999", "-1", "+80", " 80", "80 ", "80x", "0x50", "http"})
    EXPECT_EQ(parsed(std::string("127.0.0.1:") + port), "no") << port;
}

TEST(EndpointTest, SpaceIsNoPartOfIt) {
  for (const char* text : {" 127.0.0.1:80", "127.0.0.1 :80", "[::1] :80", "[ ::1]:80"})
    EXPECT_EQ(parsed(text), "no") << text;
}

TEST(EndpointTest, WhatIsRefusedChangesNothing) {
  SocketAddress address;
  ASSERT_TRUE(parse_endpoint("192.0.2.1:80", &address));
  EXPECT_FALSE(parse_endpoint("192.0.2.2:0", &address));
  EXPECT_FALSE(parse_endpoint("nobody:80", &address));
  EXPECT_EQ(address.text(), "192.0.2.1:80");
}

}  // namespace
}  // namespace nfsrdma
