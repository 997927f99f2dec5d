// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/nfsacl_entries.h"

#include <gmock/gmock.h>

#include "tests/support/acl_entries.h"

namespace nfsrdma::test {
namespace {

using ::testing::ElementsAre;
using xdr::aclent;

AclVerdict verdict(std::vector<aclent> entries) {
  PosixAcl acl;
  return from_aclents(Entries(std::move(entries)).array(), &acl);
}

TEST(AclEntries, AMinimalAclHasAMaskOnTheWire) {
  EXPECT_THAT(to_aclents(PosixAcl::of_mode(0754), {10, 20}, 0),
              ElementsAre(aclent{kOwner, 10, 7}, aclent{kOwningGroup, 20, 5}, aclent{kMask, 0, 5},
                          aclent{kOther, 0, 4}));
}

TEST(AclEntries, NamedEntriesStandBehindThoseOfTheFile) {
  PosixAcl acl{
      .owner = 7, .group = 5, .other = 0, .mask = 6, .users = {{1, 4}}, .groups = {{2, 6}}};
  EXPECT_THAT(to_aclents(acl, {10, 20}, kInitial),
              ElementsAre(aclent{kOwner | kInitial, 10, 7}, aclent{kUser | kInitial, 1, 4},
                          aclent{kOwningGroup | kInitial, 20, 5}, aclent{kGroup | kInitial, 2, 6},
                          aclent{kMask | kInitial, 0, 6}, aclent{kOther | kInitial, 0, 0}));
}

TEST(AclEntries, AnyOrderIsTaken) {
  PosixAcl acl;
  const Entries entries({{kOther, 0, 1},
                         {kUser, 9, 4},
                         {kMask, 0, 7},
                         {kGroup, 8, 2},
                         {kUser, 3, 6},
                         {kOwningGroup, 0, 5},
                         {kOwner, 0, 7}});
  ASSERT_EQ(from_aclents(entries.array(), &acl), AclVerdict::kGood);
  EXPECT_EQ(acl, (PosixAcl{.owner = 7,
                           .group = 5,
                           .other = 1,
                           .mask = 7,
                           .users = {{3, 6}, {9, 4}},
                           .groups = {{8, 2}}}));
}

TEST(AclEntries, AMaskThatIsTheOwningGroupsRightsIsNone) {
  PosixAcl acl;
  const Entries same({{kOwner, 0, 7}, {kOwningGroup, 0, 5}, {kMask, 0, 5}, {kOther, 0, 1}});
  ASSERT_EQ(from_aclents(same.array(), &acl), AclVerdict::kGood);
  EXPECT_EQ(acl, PosixAcl::of_mode(0751));
  const Entries less({{kOwner, 0, 7}, {kOwningGroup, 0, 5}, {kMask, 0, 4}, {kOther, 0, 1}});
  ASSERT_EQ(from_aclents(less.array(), &acl), AclVerdict::kGood);
  EXPECT_EQ(acl.mask, 4);
  const Entries named(
      {{kOwner, 0, 7}, {kUser, 1, 7}, {kOwningGroup, 0, 5}, {kMask, 0, 5}, {kOther, 0, 1}});
  ASSERT_EQ(from_aclents(named.array(), &acl), AclVerdict::kGood);
  EXPECT_EQ(acl.mask, 5);
}

TEST(AclEntries, NobodyIsNamedTwiceOrWithoutAnId) {
  const aclent owner{kOwner, 0, 7}, group{kOwningGroup, 0, 5}, mask{kMask, 0, 5},
      other{kOther, 0, 1};
  EXPECT_EQ(verdict({owner, {kUser, 1, 4}, {kUser, 1, 5}, group, mask, other}),
            AclVerdict::kInvalid);
  EXPECT_EQ(verdict({owner, group, {kGroup, 2, 4}, {kGroup, 2, 4}, mask, other}),
            AclVerdict::kInvalid);
  EXPECT_EQ(verdict({owner, {kUser, ~0u, 4}, group, mask, other}), AclVerdict::kInvalid);
  EXPECT_EQ(verdict({owner, {kUser, 1, 4}, group, {kGroup, 1, 4}, mask, other}), AclVerdict::kGood);
}

TEST(AclEntries, OnlyAMaskMayHaveMoreBits) {
  PosixAcl acl;
  const Entries mask({{kOwner, 0, 7}, {kOwningGroup, 0, 5}, {kMask, 0, 0xfff4}, {kOther, 0, 1}});
  ASSERT_EQ(from_aclents(mask.array(), &acl), AclVerdict::kGood);
  EXPECT_EQ(acl.mask, 4);
  EXPECT_EQ(verdict({{kOwner, 0, 8}, {kOwningGroup, 0, 5}, {kOther, 0, 1}}), AclVerdict::kGarbage);
}

TEST(AclEntries, WhatIsNoAclIsRefused) {
  EXPECT_EQ(verdict({{0x40, 0, 7}}), AclVerdict::kGarbage);
  EXPECT_EQ(verdict({}), AclVerdict::kInvalid);
  EXPECT_EQ(verdict({{kOwner, 0, 7}, {kOther, 0, 1}}), AclVerdict::kInvalid);
  EXPECT_EQ(verdict({{kOwner, 0, 7}, {kOwner, 0, 7}, {kOwningGroup, 0, 5}, {kOther, 0, 1}}),
            AclVerdict::kInvalid);
  EXPECT_EQ(verdict({{kOwner, 0, 7}, {kUser, 1, 7}, {kOwningGroup, 0, 5}, {kOther, 0, 1}}),
            AclVerdict::kInvalid);
}

}  // namespace
}  // namespace nfsrdma::test
