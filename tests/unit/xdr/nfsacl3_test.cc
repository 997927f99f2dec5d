// SPDX-License-Identifier: Apache-2.0
#include "xdr/nfsacl3.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;
using nfsrdma::testing::words;

TEST(NfsAcl3, TheResultOfGetaclHasCountsInFrontOfArrays) {
  const std::vector<aclent> entries = {{NFS_ACL_USER_OBJ, 1000, 7}, {NFS_ACL_OTHER_OBJ, 0, 5}};
  std::vector<std::byte> room(24);
  Encoder scratch(room);
  GETACL3res result;
  result.resok.acl.mask = NFS_ACL_MASK;
  result.resok.acl.aclcnt = 2;
  result.resok.acl.aclents = encode_array<aclent>(scratch, entries);
  result.resok.acl.dfaclcnt = 4;  // there, and not asked for
  EXPECT_EQ(encode_flat(result), words({0, 0, 15, 2, 2, 1, 1000, 7, 0x20, 0, 5, 4, 0}));
}

TEST(NfsAcl3, AFailureHasAttributesAlone) {
  GETACL3res result;
  result.status = nfsstat3::NFS3ERR_NOTSUPP;
  EXPECT_EQ(encode_flat(result), words({10004, 0}));
}

TEST(NfsAcl3, MoreThan1024EntriesAreRefused) {
  for (const std::uint32_t count : {kNfsAclMaxEntries, kNfsAclMaxEntries + 1}) {
    std::vector<std::byte> bytes(4 * (6 + std::size_t{3} * count));
    Encoder encoder(bytes);
    for (const std::uint32_t word : {0u, NFS_ACL, count, count})
      encoder.u32(word);
    for (std::uint32_t i = 0; i < 3 * count; ++i)
      encoder.u32(1);
    encoder.u32(0);
    encoder.u32(0);
    ASSERT_FALSE(encoder.overflowed());
    SETACL3args args;
    EXPECT_EQ(decode_exactly(bytes, args), count == kNfsAclMaxEntries) << count;
  }
}

TEST(NfsAcl3, ACountOfEntriesIsNotBelievedBeforeTheBytesAreThere) {
  SETACL3args args;
  EXPECT_FALSE(decode_exactly(words({0, NFS_ACL, 1024, 1024, 1, 0, 7}), args));
}

}  // namespace
}  // namespace nfsrdma::xdr
