// SPDX-License-Identifier: Apache-2.0
#include "xdr/universal_address.h"

#include <gtest/gtest.h>

namespace nfsrdma::xdr {
namespace {

TEST(UniversalAddress, PortGoesBehindTheHostInTwoOctets) {
  EXPECT_EQ(format_universal_address("192.0.2.1", 2049), "192.0.2.1.8.1");
}

TEST(UniversalAddress, Ipv6KeepsItsColons) {
  EXPECT_EQ(format_universal_address("2001:db8::1", 20049), "2001:db8::1.78.81");
}

TEST(UniversalAddress, ParsesWhatItFormats) {
  for (std::uint16_t port : {0, 1, 255, 256, 2049, 65535}) {
    auto text = format_universal_address("::", port);
    auto address = parse_universal_address(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(address->host, "::");
    EXPECT_EQ(address->port, port);
  }
}

TEST(UniversalAddress, Ipv6WithIpv4InsideIsSplitAtTheLastTwoNumbers) {
  auto address = parse_universal_address("::ffff:192.0.2.1.8.1");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->host, "::ffff:192.0.2.1");
  EXPECT_EQ(address->port, 2049);
}

class NotAnAddress : public ::testing::TestWithParam<const char*> {};
TEST_P(NotAnAddress, IsRefused) {
  EXPECT_FALSE(parse_universal_address(GetParam()).has_value());
}
INSTANTIATE_TEST_SUITE_P(UniversalAddress, NotAnAddress,
                         ::testing::Values("", ".", "..", "8.1", ".8.1", "host", "1.2.3.4.256.1",
                                           "1.2.3.4.8.256", "1.2.3.4.8.", "1.2.3.4..1",
                                           "1.2.3.4.-8.1", "1.2.3.4.8.1x", "1.2.3.4.0008.1"));

}  // namespace
}  // namespace nfsrdma::xdr
