// SPDX-License-Identifier: Apache-2.0
// ACLs of the client: the bytes that the server and applications see.
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Stat = xdr::nfsstat4;

class AclTest : public SessionTest {
 protected:
  /// `count` ACEs that allow `who` to read.
  static std::string acl_of(std::uint32_t count, std::string_view who = "1000") {
    std::vector<std::byte> room(200'000);
    xdr::Encoder out(room);
    out.u32(count);
    for (std::uint32_t i = 0; i < count; ++i)
      xdr::encode(out, xdr::nfsace4{0, 0, xdr::ACE4_READ_DATA, who});
    return std::string(as_text(out.bytes()));
  }
  Result<std::string> get() { return finish(nfs_->get_acl(op_, file_)); }
  Result<Wcc> set(const std::string& acl) {
    return finish(nfs_->set_acl(op_, file_, as_bytes(acl)));
  }
};

TEST_F(AclTest, TheValueIsTheXdrOfTheAttribute) {
  ASSERT_TRUE(begin().ok());
  const std::string acl = acl_of(3);
  Result<Wcc> done = set(acl);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->after->size, 4711u);
  EXPECT_EQ(*server_->acl, acl);
  EXPECT_EQ(get().value(), acl);
}

TEST_F(AclTest, AnEmptyAclIsOne) {
  ASSERT_TRUE(begin().ok());
  ASSERT_TRUE(set(acl_of(0)).ok());
  EXPECT_EQ(get().value(), std::string(4, '\0'));
}

TEST_F(AclTest, OtherBytesAreRefusedUnsent) {
  ASSERT_TRUE(begin().ok());
  std::string count_too_large = acl_of(2);
  count_too_large[3] = 3;
  for (const std::string& bad :
       {std::string(), std::string("x"), acl_of(1) + "more", acl_of(2) + '\0',
        acl_of(2).substr(0, 20), count_too_large, acl_of(1, std::string(2000, 'w'))}) {
    EXPECT_EQ(set(bad).error().sys, EINVAL) << bad.size();
  }
  EXPECT_TRUE(server_->settings.empty());
}

TEST_F(AclTest, AnAclMayBeLongerThanAllOtherArguments) {
  ASSERT_TRUE(begin().ok());
  const std::string long_one = acl_of(60, std::string(1000, 'w'));
  ASSERT_LT(long_one.size(), kMaxAclBytes);
  ASSERT_TRUE(set(long_one).ok());
  EXPECT_EQ(*server_->acl, long_one);
  EXPECT_EQ(set(acl_of(65, std::string(1000, 'w'))).error().sys, E2BIG);
}

TEST_F(AclTest, AnObjectWithoutAnAclSaysSo) {
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(get().error().sys, EOPNOTSUPP);
  server_->setattr_errors = {Stat::NFS4ERR_ATTRNOTSUPP, Stat::NFS4ERR_BADOWNER};
  EXPECT_EQ(set(acl_of(1)).error().sys, EOPNOTSUPP);
  EXPECT_EQ(set(acl_of(1, "nobody@nowhere")).error().sys, EINVAL);
}

TEST_F(AclTest, WhatCannotBeReadIsNotGivenOn) {
  ASSERT_TRUE(begin().ok());
  server_->acl = acl_of(2).substr(0, 24);
  EXPECT_EQ(get().error().code, Errc::kProtocol);
}

TEST_F(AclTest, AServerIsAskedOnceForEachFileSystemWhetherItHasAcls) {
  ASSERT_TRUE(begin().ok());
  EXPECT_TRUE(finish(nfs_->acls_in(op_, file_, 1)).value());
  server_->aclsupport = xdr::ACL4_SUPPORT_DENY_ACL;
  EXPECT_TRUE(finish(nfs_->acls_in(op_, file_, 1)).value());
  EXPECT_EQ(server_->seen.size(), 1u);
  EXPECT_FALSE(finish(nfs_->acls_in(op_, file_, 2)).value());
  server_->supported = {};
  EXPECT_FALSE(finish(nfs_->acls_in(op_, file_, 3)).value());
}

}  // namespace
}  // namespace nfsrdma
