// SPDX-License-Identifier: Apache-2.0
#include "xdr/mount3.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(Mount3, TheResultOfMntHasTheWordsOfTheRfc) {
  auto handle = words({0xaabbccdd});
  mountres3 result;
  result.mountinfo.fhandle = handle;
  result.mountinfo.auth_flavors.push_back(1);
  result.mountinfo.auth_flavors.push_back(0);
  EXPECT_EQ(encode_flat(result), words({0, 4, 0xaabbccdd, 2, 1, 0}));
}

TEST(Mount3, AFailureOfMntIsItsStatusAlone) {
  mountres3 result;
  result.fhs_status = mountstat3::MNT3ERR_ACCES;
  EXPECT_EQ(encode_flat(result), words({13}));
}

TEST(Mount3, APathOf1024BytesIsTaken) {
  std::string path(kMountMaxPath, 'p');
  dirpath back;
  EXPECT_TRUE(decode_exactly(encode_flat(dirpath{path}), back));
}

TEST(Mount3, APathOf1025BytesIsRefused) {
  std::string path(kMountMaxPath + 1, 'p');
  dirpath back;
  EXPECT_FALSE(decode_exactly(encode_flat(dirpath{path}), back));
}

TEST(Mount3, MoreFlavoursThanTheLimitAreRefused) {
  std::vector<std::byte> bytes((3 + kMountMaxAuthFlavors + 1) * 4);
  Encoder encoder(bytes);
  encoder.u32(0);
  encoder.u32(0);
  encoder.u32(kMountMaxAuthFlavors + 1);
  for (std::size_t i = 0; i <= kMountMaxAuthFlavors; ++i)
    encoder.u32(1);
  mountres3 result;
  EXPECT_FALSE(decode_exactly(bytes, result));
}

TEST(Mount3, ACountOfFlavoursIsNotBelievedBeforeTheBytesAreThere) {
  auto bytes = words({0, 0, 0xffffffff});
  mountres3 result;
  EXPECT_FALSE(decode_exactly(bytes, result));
}

}  // namespace
}  // namespace nfsrdma::xdr
