// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/posix_acl.h"

#include <gtest/gtest.h>

#include <random>

namespace nfsrdma {
namespace {

/// As the kernel has them, piece by piece.
struct Entry {
  std::uint16_t tag;
  std::uint16_t rights;
  std::uint32_t id = ~0u;
};
constexpr Entry kOwner{0x01, 6}, kGroup{0x04, 4}, kMask{0x10, 4}, kOther{0x20, 0};

std::vector<std::byte> bytes_of(const std::vector<Entry>& entries, std::uint32_t version = 2) {
  std::vector<std::byte> out;
  auto put = [&out](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  put(version, 4);
  for (const Entry& entry : entries) {
    put(entry.tag, 2);
    put(entry.rights, 2);
    put(entry.id, 4);
  }
  return out;
}

bool is_good(const std::vector<Entry>& entries) {
  PosixAcl acl;
  return decode_given_posix_acl(bytes_of(entries), &acl);
}

TEST(PosixAcl, WhatIsGivenComesBackAsItWas) {
  std::mt19937 random(1);
  auto rights = [&random] { return static_cast<std::uint8_t>(random() % 8); };
  for (int round = 0; round < 500; ++round) {
    PosixAcl acl;
    acl.owner = rights();
    acl.group = rights();
    acl.other = rights();
    std::uint32_t id = 0;
    for (std::uint32_t n = random() % 4; n > 0; --n)
      acl.users.push_back({id += 1 + random() % 1'000'000'000, rights()});
    for (std::uint32_t n = random() % 4; n > 0; --n)
      acl.groups.push_back({id += 1 + random() % 100'000'000, rights()});
    if (!acl.users.empty() || !acl.groups.empty() || random() % 2 == 0) acl.mask = rights();
    const std::vector<std::byte> bytes = encode_posix_acl(acl);
    EXPECT_EQ(bytes.size(), 4 + 8 * acl.entries());
    PosixAcl back;
    ASSERT_TRUE(decode_given_posix_acl(bytes, &back));
    EXPECT_EQ(back, acl);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decode_given_posix_acl(ByteSpan(bytes).first(size), &back));
  }
}

TEST(PosixAcl, ModeAndAclOfIt) {
  PosixAcl acl = PosixAcl::of_mode(0100751);
  EXPECT_TRUE(acl.is_of_mode());
  EXPECT_EQ(acl.mode(), 0751u);
  acl.mask = 2;
  EXPECT_FALSE(acl.is_of_mode());
  EXPECT_EQ(acl.mode(), 0721u);
}

TEST(PosixAcl, WhatIsNoneIsRefused) {
  const Entry user{0x02, 7, 1000}, second{0x02, 4, 2000}, group{0x08, 4, 1000};
  EXPECT_TRUE(is_good({kOwner, kGroup, kOther}));
  EXPECT_TRUE(is_good({kOwner, kGroup, kMask, kOther}));
  EXPECT_TRUE(is_good({kOwner, user, second, kGroup, group, kMask, kOther}));
  EXPECT_TRUE(is_good({kOwner, second, user, kGroup, kMask, kOther})) << "as the kernel takes it";
  const std::vector<std::vector<Entry>> bad = {
      {},
      {kOwner, kGroup},
      {kOwner, kOther},
      {kGroup, kOther},
      {kOwner, user, kGroup, kOther},  // has to have a mask
      {kOwner, kGroup, group, kOther},
      {kOwner, kGroup, kOther, kMask},  // order
      {kOther, kGroup, kOwner},
      {user, kOwner, kGroup, kMask, kOther},
      {kOwner, kOwner, kGroup, kOther},  // twice
      {kOwner, kGroup, kMask, kMask, kOther},
      {kOwner, user, user, kGroup, kMask, kOther},
      {kOwner, user, second, user, kGroup, kMask, kOther},
      {kOwner, kGroup, group, group, kMask, kOther},
      {kOwner, {0x02, 4}, kGroup, kMask, kOther},  // nobody
      {kOwner, {0x04, 8}, kOther},                 // rights
      {kOwner, kGroup, {0x20, 0x104}},
      {kOwner, kGroup, kOther, {0x40, 0}},
      {{0, 0}, kOwner, kGroup, kOther},
  };
  for (std::size_t i = 0; i < bad.size(); ++i)
    EXPECT_FALSE(is_good(bad[i])) << i;
  PosixAcl acl;
  for (std::uint32_t version : {0u, 1u, 3u, 0x02000000u})
    EXPECT_FALSE(decode_given_posix_acl(bytes_of({kOwner, kGroup, kOther}, version), &acl));
}

}  // namespace
}  // namespace nfsrdma
