// SPDX-License-Identifier: Apache-2.0
#include "xdr/rpcb.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(Rpcb, AMappingIsFourWords) {
  EXPECT_EQ(encode_flat(mapping{100003, 3, 6, 2049}), words({100003, 3, 6, 2049}));
}

TEST(Rpcb, AnEntryHasTheOrderOfTheRfc) {
  rpcb entry{.r_prog = 100003, .r_vers = 3, .r_netid = "tcp", .r_addr = "", .r_owner = "root"};
  EXPECT_EQ(encode_flat(entry), words({100003, 3, 3, 0x74637000, 0, 4, 0x726f6f74}));
}

TEST(Rpcb, AnAddressLongerThanTheLimitIsRefused) {
  std::string address(kRpcbMaxAddress + 1, '1');
  RpcbAddress back;
  EXPECT_FALSE(decode_exactly(encode_flat(RpcbAddress{address}), back));
}

TEST(Rpcb, NoAddressIsAnEmptyString) {
  auto bytes = words({0});
  RpcbAddress back;
  ASSERT_TRUE(decode_exactly(bytes, back));
  EXPECT_EQ(back.uaddr, "");
}

}  // namespace
}  // namespace nfsrdma::xdr
