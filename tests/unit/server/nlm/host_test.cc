// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/host.h"

#include <gtest/gtest.h>

namespace nfsrdma::nlm {
namespace {

SocketAddress address(std::string_view text) {
  return SocketAddress::parse(text, 700).value();
}

TEST(NlmHost, IsKnownByAddressAndName) {
  EXPECT_EQ(host_key(address("192.0.2.7"), "Host"), "192.0.2.7 host");
  EXPECT_EQ(host_key(address("::ffff:192.0.2.7"), "host"), "192.0.2.7 host");
  EXPECT_EQ(host_key(address("2001:db8::7"), "host"), "2001:db8::7 host");
}

TEST(NlmHost, AKeyIsReadBack) {
  SocketAddress peer;
  std::string name;
  ASSERT_TRUE(parse_host_key("192.0.2.7 a b", &peer, &name));
  EXPECT_EQ(peer.host_text(), "192.0.2.7");
  EXPECT_EQ(name, "a b");
  EXPECT_FALSE(parse_host_key("192.0.2.7", &peer, &name));
  EXPECT_FALSE(parse_host_key("nowhere name", &peer, &name));
}

TEST(NlmHost, NamesMayHaveTheirDomainOrNot) {
  EXPECT_TRUE(same_host_name("host", "HOST"));
  EXPECT_TRUE(same_host_name("host.example.org", "host"));
  EXPECT_TRUE(same_host_name("host", "host.example.org"));
  EXPECT_FALSE(same_host_name("host", "hosts.example.org"));
  EXPECT_FALSE(same_host_name("host", "other"));
  EXPECT_FALSE(same_host_name("", "host"));
  EXPECT_FALSE(same_host_name("host.a", "host.b"));
}

}  // namespace
}  // namespace nfsrdma::nlm
